"""Find the largest batch or context of a cell that fits into memory on this machine, each tried in a fresh process.

The search goes around the prediction from smaller batches, then by bisection: the memory that batches take grows with
them in a line. Without a prediction, because the memory of a batch is not known or does not grow, it goes by doubling.
"""

import itertools
import os
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator
from math import isqrt
from typing import Any, Literal

from pydantic import ValidationError
from rich.console import Console
from rich.text import Text

from bench.errors import UserError
from bench.probes.memory import read_available_bytes
from bench.registry import DECODERS, FRAMEWORKS, MODELS
from bench.schema import Cell, Document, PlannedCell, Result
from bench.store import Store
from bench.worker.compilers import CACHE_FOLDERS
from runner.local.process import hold_host_lock
from runner.local.run import LocalExecutor, find_interpreters, parse_interpreters
from runner.matrix import DEFAULT_MODES, Repeat
from runner.terminal import join_printable
from runner.yaml_input import suggest_word

Axis = Literal["batch_size", "input_size"]
TrialOutcome = Literal["fits", "out-of-memory", "time-limit", "failure"]
StopReason = Literal["found", "max-size", "time-limit", "failure"]

CONTEXT_STEP = 1024
"""Tokens from one context that is tried to the next."""
SECOND_UNITS = 4
"""The second batch, in units, from whose memory and the first's the line is drawn: two are too near for a slope."""
MAX_REACH = 16
"""A line that reaches further than this many times its largest batch is first made longer."""


class Trial(Document):
    """One batch or context, tried in a process of its own."""

    size: int
    outcome: TrialOutcome
    """`time-limit`: the time for the whole search was up before the trial had ended."""
    seconds: float
    """How long the trial took, starting the framework included."""
    peak_bytes: int | None = None
    """Peak memory where it fits: of the framework's allocator on a GPU, of the process on a CPU."""
    needed_bytes: int | None = None
    """The part of it that was needed: on a GPU without what the allocator kept unused."""
    available_bytes: int | None = None
    """What could have been taken at most: on a GPU what the process held and what was still free."""
    message: str = ""
    """Why it does not fit or the trial failed, in one line."""


class Search(Document):
    """What a search for the largest batch or context found."""

    tries: tuple[Trial, ...]
    ended_by: StopReason
    """`found`: the next larger one does not fit. `max-size`: the upper bound fits."""
    largest: int | None
    """The largest that was seen to fit; null: none was."""
    smallest_failing: int | None
    """The smallest that ran out of memory; null: none did."""


def search_largest(
    try_batch: Callable[[int], Trial], *, multiple: int, max_size: int, is_time_up: Callable[[], bool]
) -> Search:
    """Return the largest multiple of `multiple` up to `max_size` that fits.

    If a batch fits, every smaller one is taken to fit too. A trial that neither fits nor runs out of memory stops the
    search, and so does `is_time_up`, which is called before each trial.
    """
    trials: list[Trial] = []
    bound, fitting, failing = max_size // multiple, 0, None
    steps = itertools.chain([1], (2**number for number in itertools.count()))
    ended_by: StopReason | None = None
    while ended_by is None:
        if (bound + 1 if failing is None else failing) - fitting <= 1:
            ended_by = "max-size" if failing is None else "found"
        elif is_time_up():
            ended_by = "time-limit"
        else:
            predicted = predict_limit(trials)
            chosen = _choose_next(fitting, failing, bound, None if predicted is None else predicted // multiple, steps)
            trials.append(try_batch(chosen * multiple))
            match trials[-1].outcome:
                case "fits":
                    fitting = chosen
                case "out-of-memory":
                    failing = chosen
                case "time-limit" | "failure" as outcome:
                    ended_by = outcome
    return Search(
        tries=tuple(trials),
        ended_by=ended_by,
        largest=fitting * multiple or None,
        smallest_failing=None if failing is None else failing * multiple,
    )


def _choose_next(fitting: int, failing: int | None, bound: int, predicted: int | None, steps: Iterator[int]) -> int:
    """Return the next number of units to try: the prediction, then around it in steps that double, at last the middle.

    Steps longer than twice the root of the interval end it, so that at most about twice as many batches are tried as by
    bisection. Without a prediction, or where twice what it says fits, by doubling up to the middle.
    """
    high = bound + 1 if failing is None else failing
    middle = (fitting + high) // 2
    if predicted is None or 2 * predicted < fitting or fitting == 0:
        return min(SECOND_UNITS if fitting == 1 else max(1, 2 * fitting), bound if failing is None else middle)
    if min(predicted, high) > MAX_REACH * fitting:
        return min(predicted, bound) // 2 if failing is None else isqrt(fitting * min(predicted, failing))
    step = next(steps)
    interval = high - fitting
    is_left = 2 * step >= interval or step * step > 4 * interval
    return middle if is_left else max(fitting + step, min(predicted, high - step))


def predict_limit(trials: Iterable[Trial]) -> int | None:
    """Return the largest batch on the line of needed memory below what is available; None without a line.

    The line goes through the largest batch and the largest of at most half its size: neighbours would make a slope of
    their rounding. The most that any process saw available counts: allocators keep some of it for themselves.
    """
    known = sorted(
        (one.size, one.needed_bytes, one.available_bytes)
        for one in trials
        if one.needed_bytes is not None and one.available_bytes is not None
    )
    if len(known) < 2:
        return None
    *others, (largest, needed, _) = known
    distant, less, _ = next((one for one in reversed(others) if 2 * one[0] <= largest), others[0])
    slope = (needed - less) / (largest - distant)
    if slope <= 0:
        return None
    return max(0, largest + int((max(available for _, _, available in known) - needed) // slope))


# The rest is for the libraries' code, which the limit does not count, for what a process takes between two checks, and
# for other programs on the machine.
CPU_MEMORY_SHARE = 0.9

# Adam makes its state in the first step, and the peak comes after that: three steps, the fewest that the harness takes.
SHORT_PROTOCOL = {
    "num_warmup_steps": 1,
    "max_warmup_seconds": 1e-3,
    "num_steps": 1,
    "min_seconds": 0.0,
    "sampling_seconds": 0.0,
    "pipelined_seconds": 0.0,
    "num_profiled_steps": 0,
}

_OUTCOMES: dict[str, TrialOutcome] = {"ok": "fits", "oom": "out-of-memory", "timeout": "time-limit"}
# How a message begins, and what is in it, where the host's memory ran out: Python's and NumPy's error; PyTorch's
# allocator on CPUs, a tensor that TensorFlow keeps on the CPU, its allocator of host memory for copies to the GPU.
HOST_ERRORS = ("MemoryError", "_ArrayMemoryError")
HOST_WORDS = ("DefaultCPUAllocator", "device:CPU:", "_host_bfc")


class ProbeReport(Search):
    """What a search on a machine found."""

    cell: Cell
    """What was tried first."""
    axis: Axis
    """What was searched: the batch, or the tokens of context (`input_size`)."""
    gpu: str | None
    """The GPU's name; null for a CPU."""
    max_size: int
    time_limit_seconds: float
    memory_limit_bytes: int | None
    """The memory that each process was allowed to take before it was killed, on a CPU; null for a GPU."""

    @property
    def is_conclusive(self) -> bool:
        return self.ended_by in ("found", "max-size") and self.largest is not None


def search_here(
    cell: Cell,
    gpu_name: str | None,
    python: list[str],
    console: Console,
    max_batch_size: int | None,
    time_limit_seconds: float,
) -> ProbeReport:
    """Try one batch after the other on this machine; print each trial as it ends, then what was found.

    `max_batch_size`: None to try contexts instead.
    """
    axis: Axis = "batch_size" if max_batch_size else "input_size"
    max_size = max_batch_size or MODELS[cell.model].max_input_size
    given = parse_interpreters(python, tuple(FRAMEWORKS))
    bounds = f"up to {AXIS_WORDS[axis]} {max_size:,} and {time_limit_seconds:,.0f} s"
    what = f"{cell.model}, {cell.framework}, {cell.phase}, {cell.precision}, {cell.mode}"
    with hold_host_lock("probe") as lock, tempfile.TemporaryDirectory(prefix="benchmatrix-probe-") as folder:
        # After the lock, which has ended what a killed run left.
        limit_bytes = None if cell.device == "gpu" else int(CPU_MEMORY_SHARE * read_available_bytes())
        executor = LocalExecutor(
            run_id="probe",
            store=Store.open(f"file://{folder}"),
            interpreters=find_interpreters({cell.framework}, given, console, lock),
            lock=lock,
            memory_limit_bytes=limit_bytes,
            # What is compiled is kept for the trials that come after.
            variables={name: f"{folder}/{part}" for name, part in CACHE_FOLDERS.items() if name not in os.environ},
        )

        console.print(f"probing {what} on {gpu_name or 'the CPU'}: {bounds}", soft_wrap=True)
        deadline = time.monotonic() + time_limit_seconds

        def try_size(size: int) -> Trial:
            trial = _try_size(executor, cell, {axis: size}, deadline - time.monotonic())
            console.print(describe_trial(trial, axis), soft_wrap=True)
            return trial

        found = search_largest(
            try_size,
            multiple=cell.num_gpus if axis == "batch_size" else CONTEXT_STEP,
            max_size=max_size,
            is_time_up=lambda: time.monotonic() >= deadline,
        )
    report = ProbeReport(
        **dict(found),
        cell=cell,
        axis=axis,
        gpu=gpu_name,
        max_size=max_size,
        time_limit_seconds=time_limit_seconds,
        memory_limit_bytes=limit_bytes,
    )
    console.print(describe_report(report), soft_wrap=True)
    return report


def _try_size(executor: LocalExecutor, cell: Cell, size: dict[Axis, int], seconds_left: float) -> Trial:
    planned = PlannedCell(
        cell=Cell.model_validate(cell.model_dump() | size),
        repeats=1,
        timeout_seconds=max(1.0, seconds_left),
    )
    start = time.monotonic()
    result = executor.measure_repeat(Repeat(planned=planned, number=1))
    outcome = name_outcome(result)
    return Trial(
        size=next(iter(size.values())),
        outcome=outcome,
        seconds=time.monotonic() - start,
        message=result.error.message if result.error else "",
        **(read_memory(result, executor.memory_limit_bytes) if outcome == "fits" else {}),
    )


def make_cell(model: str, framework: str, context_of: int | None = None, **options: Any) -> Cell:
    """Return the cell of the first trial, with defaults for options that are None. Raise UserError if one is wrong.

    `context_of`: the sequences whose largest context is searched; None to search the batch.
    """
    if model not in MODELS:
        raise UserError(f"MODEL {model}: unknown; {suggest_word(model, list(MODELS))}")
    spec = MODELS[model]
    if context_of is not None:
        if model not in DECODERS:
            raise UserError(f"--context-of {context_of}: {model} has no context; {', '.join(DECODERS)} have one")
        options |= {"batch_size": context_of, "input_size": CONTEXT_STEP}
    defaults = {
        "phase": spec.phases[0],
        "input_size": spec.input_size,
        "num_classes": spec.num_classes,
        "mode": DEFAULT_MODES.get(framework),
    }
    given = {key: value for key, value in options.items() if value is not None}
    fields = defaults | {"batch_size": options["num_gpus"]} | given | SHORT_PROTOCOL
    try:
        return Cell.model_validate(fields | {"model": model, "framework": framework})
    except ValidationError as error:
        raise _name_option(error, fields) from None


def _name_option(error: ValidationError, fields: dict[str, Any]) -> UserError:
    """Return the error for the option that pydantic, or a validator of Cell at the start of its message, names."""
    first = error.errors()[0]
    if first["loc"]:
        key, message = str(first["loc"][0]), first["msg"]
    else:
        key, _, message = str(first["ctx"]["error"]).partition(": ")
    return UserError(f"--{key.replace('_', '-')} {fields[key]}: {message}")


def name_outcome(result: Result) -> TrialOutcome:
    """Return what the record of a trial says of its batch.

    A GPU cell that ran out of the host's memory is a failure: it says nothing about the GPU's. A process that died
    without a record of its own ran out of the host's.
    """
    is_on_gpu, message = result.cell.device == "gpu", result.error.message if result.error else ""
    is_of_host = message.startswith(HOST_ERRORS) or any(words in message for words in HOST_WORDS)
    if result.status == "oom" and is_on_gpu and (is_of_host or result.written_by == "runner"):
        return "failure"
    return _OUTCOMES.get(result.status, "failure")


def read_memory(result: Result, memory_limit_bytes: int | None) -> dict[str, int | None]:
    """Return peak, need and what could have been taken at most, as a Trial has them: of the process on a CPU.

    On a GPU the peak is what the allocator reserved or, without that, allocated; what it kept unused can be used, and
    of several GPUs the one with the least free memory counts.
    """
    memory = result.memory
    if memory is None:
        return {}
    if result.cell.device == "cpu":
        peak = memory.peak_rss_bytes
        return {"peak_bytes": peak, "needed_bytes": peak, "available_bytes": memory_limit_bytes}
    needed, reserved = memory.peak_memory_allocated_bytes, memory.peak_memory_reserved_bytes
    peak = needed if reserved is None else reserved
    free = [use.memory_free_after_bytes for use in result.gpu_use]
    least = min((number for number in free if number is not None), default=None)
    available = None if peak is None or least is None or None in free else peak + least
    return {"peak_bytes": peak, "needed_bytes": needed, "available_bytes": available}


OUTCOME_STYLES = {"fits": "green", "out-of-memory": "yellow", "time-limit": "red", "failure": "red"}


AXIS_WORDS: dict[Axis, str] = {"batch_size": "batch", "input_size": "context"}


def describe_trial(trial: Trial, axis: Axis) -> Text:
    line = Text.assemble(
        f"{AXIS_WORDS[axis]} {trial.size:>9,}  ",
        (f"{trial.outcome:<13}", OUTCOME_STYLES[trial.outcome]),
        f"  {trial.seconds:6.1f} s",
    )
    if trial.peak_bytes is not None:
        line.append(f"  peak {_format_gibibytes(trial.peak_bytes)}")
    if trial.message:
        line.append(f"  {join_printable(trial.message)}")
    return line


def describe_report(report: ProbeReport) -> str:
    largest, failing, what = report.largest, report.smallest_failing, AXIS_WORDS[report.axis]
    within = ""
    if report.memory_limit_bytes is not None:
        within = f" into {_format_gibibytes(report.memory_limit_bytes)}, the memory available here"
    known = f"{what} {largest:,} fits{within}" if largest else f"no {what} is known to fit{within}"
    if failing:
        known += f", {failing:,} does not"
    match report.ended_by:
        case "found" if largest:
            return f"largest {what} that fits{within}: {largest:,} ({failing:,} does not)"
        case "found":
            return f"not even a {what} of {failing:,} fits{within}"
        case "max-size" if report.axis == "input_size":
            return f"{known}, the most that {report.cell.model} has positions for"
        case "max-size":
            return f"{known}; this is the upper bound, raise --max-batch-size to look further"
        case "time-limit":
            return f"the time is up: {known}; raise --deadline to look further"
        case "failure":
            memory = "the GPU's memory" if report.cell.device == "gpu" else "memory"
            return f"the last trial failed for another reason than {memory}; {known}"


def _format_gibibytes(number: int) -> str:
    return f"{number / 2**30:.2f} GiB"
