"""One attempt at one repeat: an Order in, its terminal Result out, whatever the framework does."""

import os
import re
import traceback
from datetime import UTC, datetime, timedelta
from time import perf_counter

from bench.frameworks.interface import Framework, load_framework
from bench.harness import measure
from bench.order import Order
from bench.probes.cpu import count_threads, limit_library_threads
from bench.probes.environment import read_environment
from bench.probes.memory import read_peak_rss_bytes
from bench.schema import Environment, Failure, Memory, Phases, Result, Samples, Status

TRACEBACK_CHARACTERS = 8_000
MESSAGE_CHARACTERS = 500
# TensorFlow's words for what did not fit, on lines below the layer's name (eager) or the traceback of the graph.
TELLING_WORDS = ("OOM when allocating", "failed to allocate memory")


class Attempt:
    """The progress of one attempt: what is known so far goes into the record, also when a later part fails."""

    def __init__(self, order: Order) -> None:
        self._order = order
        self._started_at = datetime.now(UTC)
        self._start = perf_counter()
        self._phases = Phases()
        self._environment: Environment | None = None
        self._framework: Framework | None = None

    def run(self) -> Result:
        """Measure the order's cell and return its record: ok, oom or failed. Only faults of this package raise."""
        try:
            samples = self._measure()
        except Exception as error:  # whatever a framework raises becomes the record, with its traceback
            status, failure = self._describe_failure(error)
            return self._make_result(status, error=failure)
        return self._make_result("ok", samples=samples)

    def _measure(self) -> Samples:
        cell = self._order.cell
        num_threads = count_threads()
        limit_library_threads(num_threads)
        if cell.device == "cpu":
            os.environ["CUDA_VISIBLE_DEVICES"] = ""
        os.environ["CUDA_DEVICE_ORDER"] = "PCI_BUS_ID"  # as NVML counts; CUDA's own order puts the fastest first
        start = perf_counter()
        self._framework = load_framework(cell, num_threads)
        imported = perf_counter()
        self._phases = Phases(import_seconds=imported - start)
        self._environment = read_environment(
            cell, self._framework, num_threads, image=self._order.image, git_revision=self._order.git_revision
        )
        start = perf_counter()
        workload = self._framework.build_workload(cell)
        self._phases = self._phases.model_copy(update={"build_seconds": perf_counter() - start})
        self._phases, samples = measure(workload, cell, self._phases)
        return samples

    def _describe_failure(self, error: Exception) -> tuple[Status, Failure]:
        message = summarize_error(error)
        tail = make_printable(traceback.format_exc())[-TRACEBACK_CHARACTERS:]
        if isinstance(error, ImportError) and self._framework is None:
            return "failed", Failure(kind="missing-framework", message=message, stderr_tail=tail)
        if isinstance(error, MemoryError) or (self._framework and self._framework.is_out_of_memory(error)):
            return "oom", Failure(kind="out-of-memory", message=message, stderr_tail=tail)
        return "failed", Failure(kind="exception", message=message, stderr_tail=tail)

    def _make_result(self, status: Status, *, samples: Samples | None = None, error: Failure | None = None) -> Result:
        allocated, reserved = (None, None)
        if samples is not None and self._framework is not None:
            allocated, reserved = self._framework.read_peak_memory()
        memory = Memory(
            peak_rss_bytes=read_peak_rss_bytes(),
            peak_memory_allocated_bytes=allocated,
            peak_memory_reserved_bytes=reserved,
        )
        return Result(
            run_id=self._order.run_id,
            cell=self._order.cell,
            cell_id=self._order.cell.cell_id,
            repeat=self._order.repeat,
            attempt=self._order.attempt,
            status=status,
            written_by="bench",
            started_at=self._started_at,
            # Not the time of day again: it may have been set back meanwhile.
            finished_at=self._started_at + timedelta(seconds=perf_counter() - self._start),
            phases=self._phases,
            samples=samples,
            memory=memory,
            environment=self._environment,
            error=error,
        )


def summarize_error(error: Exception) -> str:
    """Return one line for people: the error's type and its first line, or the line with TELLING_WORDS."""
    lines = [line.strip() for line in make_printable(str(error)).splitlines() if line.strip()]
    telling = [line for line in lines if any(words in line for words in TELLING_WORDS)]
    return f"{type(error).__name__}: {[*telling, *lines, 'no message'][0]}"[:MESSAGE_CHARACTERS]


def make_printable(text: str) -> str:
    """Return `text` without colour codes and with `?` for what UTF-8 cannot hold."""
    return re.sub(r"\x1b\[[0-9;]*m", "", text).encode(errors="replace").decode()
