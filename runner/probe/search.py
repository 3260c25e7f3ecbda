"""Find the largest batch of a cell that fits into memory on this machine; each batch is tried in a fresh process."""

import os
import tempfile
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from bench.errors import UserError
from bench.registry import MODELS
from bench.schema import Cell, Document, Framework, PlannedCell, Result
from bench.store import Store
from runner.local.executor import LocalExecutor, Observer
from runner.local.process import read_available_bytes
from runner.matrix.expansion import DEFAULT_MODES
from runner.matrix.plan import Repeat
from runner.probe.batch_search import BatchSearch, StopReason, Trial, TrialOutcome, search_largest_batch
from runner.yaml_input import suggest_word

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

# Where PyTorch (TorchInductor and Triton) and JAX keep what they have compiled, for the processes that come after.
COMPILATION_CACHES = {
    "TORCHINDUCTOR_CACHE_DIR": "inductor",
    "TRITON_CACHE_DIR": "triton",
    "JAX_COMPILATION_CACHE_DIR": "jax",
}


def make_cache_variables(folder: Path, given: Mapping[str, str]) -> dict[str, str]:
    """Return the variables of compilation caches in `folder` that all trials share; one that is `given` is left."""
    return {name: str(folder / part) for name, part in COMPILATION_CACHES.items() if name not in given}


class ProbeReport(Document):
    """What a search for the largest batch found."""

    cell: Cell
    """What was tried; its `batch_size` is that of the first trial."""
    gpu: str | None
    """The GPU's name; null for a CPU."""
    max_batch_size: int
    time_limit_seconds: float
    memory_limit_bytes: int | None
    """The memory that each process was allowed to take before it was killed, on a CPU; null for a GPU."""
    tries: tuple[Trial, ...]
    ended_by: StopReason
    """`found`: the next larger batch does not fit. `max-batch-size`: the upper bound fits."""
    largest_batch_size: int | None
    """The largest batch that was seen to fit; null: none was."""
    smallest_failing_batch_size: int | None
    """The smallest batch that ran out of memory; null: none did."""

    @property
    def is_conclusive(self) -> bool:
        return self.ended_by in ("found", "max-batch-size") and self.largest_batch_size is not None


@dataclass(frozen=True, kw_only=True)
class Probe:
    """A search on this machine."""

    cell: Cell
    gpu_name: str | None
    """None for a CPU."""
    max_batch_size: int
    time_limit_seconds: float

    def search(
        self,
        interpreters: Mapping[Framework, Path],
        lock: int,
        on_start: Callable[[int], None],
        on_finish: Callable[[Trial], None],
    ) -> ProbeReport:
        """Try one batch size after the other; `on_start` gets each batch size, `on_finish` each finished trial.

        `lock`: file descriptor of the host lock, which every process inherits.
        """
        limit_bytes = None if self.cell.device == "gpu" else int(CPU_MEMORY_SHARE * read_available_bytes())
        with tempfile.TemporaryDirectory(prefix="benchmatrix-probe-") as folder:
            executor = LocalExecutor(
                run_id="probe",
                store=Store.open(f"file://{folder}"),
                interpreters=interpreters,
                lock=lock,
                observer=Observer(),
                memory_limit_bytes=limit_bytes,
                variables=make_cache_variables(Path(folder), os.environ),
            )
            found = self._search_with(executor, on_start, on_finish)
        return ProbeReport(
            cell=self.cell,
            gpu=self.gpu_name,
            max_batch_size=self.max_batch_size,
            time_limit_seconds=self.time_limit_seconds,
            memory_limit_bytes=limit_bytes,
            tries=found.trials,
            ended_by=found.stop_reason,
            largest_batch_size=found.largest_batch_size,
            smallest_failing_batch_size=found.smallest_failing_batch_size,
        )

    def _search_with(
        self, executor: LocalExecutor, on_start: Callable[[int], None], on_finish: Callable[[Trial], None]
    ) -> BatchSearch:
        deadline = time.monotonic() + self.time_limit_seconds

        def try_batch(batch_size: int) -> Trial:
            on_start(batch_size)
            trial = _try_batch(executor, self.cell, batch_size, deadline - time.monotonic())
            on_finish(trial)
            return trial

        return search_largest_batch(
            try_batch,
            multiple=self.cell.num_gpus,
            max_batch_size=self.max_batch_size,
            is_time_up=lambda: time.monotonic() >= deadline,
        )


def _try_batch(executor: LocalExecutor, cell: Cell, batch_size: int, seconds_left: float) -> Trial:
    planned = PlannedCell(
        cell=Cell.model_validate(cell.model_dump() | {"batch_size": batch_size}),
        repeats=1,
        timeout_seconds=max(1.0, seconds_left),
    )
    start = time.monotonic()
    result = executor.measure_repeat(Repeat(planned=planned, number=1))
    outcome = name_outcome(result)
    error = result.error
    return Trial(
        batch_size=batch_size,
        outcome=outcome,
        seconds=time.monotonic() - start,
        peak_bytes=read_peak_bytes(result) if outcome == "fits" else None,
        needed_bytes=read_needed_bytes(result) if outcome == "fits" else None,
        available_bytes=read_obtainable_bytes(result, executor.memory_limit_bytes) if outcome == "fits" else None,
        bytes_requested=error.bytes_requested if error and outcome == "out-of-memory" else None,
        message=error.message if error else "",
    )


def make_cell(model: str, framework: str, **options: Any) -> Cell:
    """Return the cell of the first trial; an option that is None gets the value of the model or the framework.

    Raise UserError that names the wrong option.
    """
    if model not in MODELS:
        raise UserError(f"MODEL {model}: unknown; {suggest_word(model, list(MODELS))}")
    spec = MODELS[model]
    defaults = {
        "phase": spec.phases[0],
        "input_size": spec.input_size,
        "num_classes": spec.num_classes,
        "mode": DEFAULT_MODES.get(framework),
    }
    given = {key: value for key, value in options.items() if value is not None}
    fields = defaults | given | SHORT_PROTOCOL | {"model": model, "framework": framework}
    try:
        return Cell.model_validate(fields | {"batch_size": options["num_gpus"]})
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


def read_peak_bytes(result: Result) -> int | None:
    """Return the peak memory of the process on a CPU; on a GPU what the allocator reserved or, without that, allocated.

    None if the record has no memory.
    """
    memory = result.memory
    if memory is None:
        return None
    if result.cell.device == "cpu":
        return memory.peak_rss_bytes
    reserved = memory.peak_memory_reserved_bytes
    return memory.peak_memory_allocated_bytes if reserved is None else reserved


def read_needed_bytes(result: Result) -> int | None:
    """Return the memory that the batch needed: on a GPU what was allocated, on a CPU what the process took."""
    memory = result.memory
    if memory is None:
        return None
    return memory.peak_rss_bytes if result.cell.device == "cpu" else memory.peak_memory_allocated_bytes


def read_obtainable_bytes(result: Result, memory_limit_bytes: int | None) -> int | None:
    """Return what the batch could have taken at most: on a CPU the limit, on a GPU what the process held and was free.

    Of several GPUs the one with the least free memory counts.
    """
    if result.cell.device == "cpu":
        return memory_limit_bytes
    free = [use.memory_free_after_bytes for use in result.gpu_use]
    held = read_peak_bytes(result)
    if held is None or not free or None in free:
        return None
    return held + min(number for number in free if number is not None)
