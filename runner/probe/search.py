"""Find the largest batch of a cell that fits into memory on this machine; each batch is tried in a fresh process."""

import os
import tempfile
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

from bench.schema import Cell, Document, Framework, PlannedCell
from bench.store import Store
from runner.local.executor import LocalExecutor, SilentObserver
from runner.local.memory import read_available_bytes
from runner.matrix.plan import Repeat
from runner.probe.batch_search import BatchSearch, StopReason, Trial, search_largest_batch
from runner.probe.outcomes import name_outcome, read_needed_bytes, read_obtainable_bytes, read_peak_bytes

# The rest is for the libraries' code, which the limit does not count, for what a process takes between two checks, and
# for other programs on the machine.
CPU_MEMORY_SHARE = 0.9


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
        """Return whether the search finished with a batch that fits."""
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
                observer=SilentObserver(),
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
