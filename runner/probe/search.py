"""A cell in, the largest batch of it that fits into memory here out; each batch is tried in a fresh process."""

import tempfile
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

from bench.schema import Cell, Document, Framework, PlannedCell, Result
from bench.store import Store
from runner.local.executor import LocalExecutor
from runner.local.memory import read_available_bytes
from runner.matrix.plan import Repeat
from runner.probe.batch_search import Ending, Outcome, Try, search_largest_batch

# The rest is for the libraries' code, which the limit does not count, for what a process takes between two looks at it,
# and for what else runs on the machine.
CPU_MEMORY_SHARE = 0.9
# Adam makes its state in the first step, and the peak comes after that: three steps, the fewest that the harness takes.
SHORT_PROTOCOL = {
    "num_warmup_steps": 1,
    "max_warmup_seconds": 1e-3,
    "num_steps": 1,
    "min_seconds": 0.0,
    "sampling_seconds": 0.0,
}
OUTCOMES: dict[str, Outcome] = {"ok": "fits", "oom": "out-of-memory", "timeout": "time-limit"}
# How a message begins, and what is in it, where the host's memory ran out: Python's and NumPy's error; PyTorch's
# allocator on CPUs, a tensor that TensorFlow keeps on the CPU, its allocator of host memory for copies to the GPU.
HOST_ERRORS = ("MemoryError", "_ArrayMemoryError")
HOST_WORDS = ("DefaultCPUAllocator", "device:CPU:", "_host_bfc")


class ProbeReport(Document):
    """What a search for the largest batch found."""

    cell: Cell
    """What was tried; its `batch_size` is the first one."""
    gpu: str | None
    """The GPU's name; null for a CPU."""
    max_batch_size: int
    time_limit_seconds: float
    memory_limit_bytes: int | None
    """What each process was allowed to take before it was killed, on a CPU; null for a GPU."""
    tries: tuple[Try, ...]
    ended_by: Ending
    """`found`: the next larger batch does not fit. `max-batch-size`: the upper bound fits."""
    largest_batch_size: int | None
    """The largest batch that was seen to fit; null: none was."""
    smallest_failing_batch_size: int | None
    """The smallest batch that ran out of memory; null: none did."""

    @property
    def is_conclusive(self) -> bool:
        """Whether the search came to its end with a batch that fits."""
        return self.ended_by in ("found", "max-batch-size") and self.largest_batch_size is not None


@dataclass(frozen=True, kw_only=True)
class Probe:
    """A search on this machine. `lock`: file descriptor of the host lock, which every process inherits."""

    cell: Cell
    gpu_name: str | None
    max_batch_size: int
    time_limit_seconds: float
    interpreters: Mapping[Framework, Path]
    lock: int

    def search(self, start_try: Callable[[int], None], finish_try: Callable[[Try], None]) -> ProbeReport:
        """Try one batch size after the other; `start_try` and `finish_try` are told of each."""
        limit_bytes = None if self.cell.device == "gpu" else int(CPU_MEMORY_SHARE * read_available_bytes())
        deadline = time.monotonic() + self.time_limit_seconds
        with tempfile.TemporaryDirectory(prefix="benchmatrix-probe-") as folder:
            executor = LocalExecutor(
                run_id="probe",
                store=Store.open(f"file://{folder}"),
                interpreters=self.interpreters,
                lock=self.lock,
                observer=_Silent(),
                memory_limit_bytes=limit_bytes,
            )

            def try_batch(batch_size: int) -> Try:
                start_try(batch_size)
                tried = _try_batch(executor, self.cell, batch_size, deadline - time.monotonic())
                finish_try(tried)
                return tried

            found = search_largest_batch(
                try_batch,
                multiple=self.cell.num_gpus,
                max_batch_size=self.max_batch_size,
                is_time_up=lambda: time.monotonic() >= deadline,
            )
        return ProbeReport(
            cell=self.cell,
            gpu=self.gpu_name,
            max_batch_size=self.max_batch_size,
            time_limit_seconds=self.time_limit_seconds,
            memory_limit_bytes=limit_bytes,
            tries=found.tries,
            ended_by=found.ended_by,
            largest_batch_size=found.largest_batch_size,
            smallest_failing_batch_size=found.smallest_failing_batch_size,
        )


class _Silent:
    """An observer of a single repeat: there is nothing to count."""

    def start_repeat(self, repeat: Repeat) -> None:
        pass

    def tick(self) -> None:
        pass

    def finish_repeat(self, repeat: Repeat, result: Result) -> None:
        pass


def _try_batch(executor: LocalExecutor, cell: Cell, batch_size: int, seconds_left: float) -> Try:
    planned = PlannedCell(
        cell=Cell.model_validate(cell.model_dump() | {"batch_size": batch_size}),
        repeats=1,
        timeout_seconds=max(1.0, seconds_left),
    )
    start = time.monotonic()
    result = executor.measure_repeat(Repeat(planned=planned, number=1))
    outcome = name_outcome(result)
    error = result.error
    return Try(
        batch_size=batch_size,
        outcome=outcome,
        seconds=time.monotonic() - start,
        peak_bytes=read_peak_bytes(result) if outcome == "fits" else None,
        bytes_requested=error.bytes_requested if error and outcome == "out-of-memory" else None,
        message=error.message if error else "",
    )


def name_outcome(result: Result) -> Outcome:
    """Return what a try's record says of its batch.

    A GPU cell for which the host's memory did not suffice is a failure: it says nothing of the GPU's. A process that
    died without a record of its own died of the host's.
    """
    is_on_gpu, message = result.cell.device == "gpu", result.error.message if result.error else ""
    is_of_host = message.startswith(HOST_ERRORS) or any(words in message for words in HOST_WORDS)
    if result.status == "oom" and is_on_gpu and (is_of_host or result.written_by == "runner"):
        return "failure"
    return OUTCOMES.get(result.status, "failure")


def read_peak_bytes(result: Result) -> int | None:
    """Return the peak of the process on a CPU; on a GPU what the allocator held, or had given out where that is all."""
    memory = result.memory
    if memory is None:
        return None
    if result.cell.device == "cpu":
        return memory.peak_rss_bytes
    reserved = memory.peak_memory_reserved_bytes
    return memory.peak_memory_allocated_bytes if reserved is None else reserved
