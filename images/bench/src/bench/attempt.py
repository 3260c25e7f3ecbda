"""Carries out one attempt at one repeat of a cell and makes its Result, whatever the framework does."""

import os
import re
import traceback
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from time import perf_counter

from bench.compile_cache import read_chosen_caches, use_compile_cache
from bench.errors import UserError
from bench.frameworks.interface import Framework, load_framework
from bench.harness import StepRecorder, Workload, measure
from bench.node_faults import is_node_fault
from bench.observation import Observer, Passes
from bench.order import Order
from bench.out_of_memory import parse_requested_bytes
from bench.probes.cpu import count_threads, limit_library_threads
from bench.probes.environment import read_environment
from bench.probes.library_files import read_library_files
from bench.probes.memory import read_peak_rss_bytes
from bench.probes.visible_gpus import restrict_to_cell
from bench.schema import (
    CpuUse,
    Environment,
    Failure,
    Memory,
    Phases,
    Result,
    Roofline,
    Samples,
    Status,
    Validity,
)
from bench.validity import ValidityInputs, judge_validity

TRACEBACK_CHARACTERS = 8_000
MESSAGE_CHARACTERS = 500
# TensorFlow's words for what did not fit, on lines below the layer's name (eager) or the traceback of the graph.
CAUSE_WORDS = ("OOM when allocating", "failed to allocate memory")


@dataclass(frozen=True, kw_only=True)
class Measured:
    """The parts of a Result that only a complete measurement has."""

    samples: Samples
    passes: Passes
    memory: Memory
    cpu_use: CpuUse
    roofline: Roofline | None
    validity: Validity


class Attempt:
    """One attempt and its progress: what is known so far goes into the record, also when a later part fails."""

    def __init__(self, order: Order) -> None:
        self._order = order
        self._started_at = datetime.now(UTC)
        self._start = perf_counter()
        self._num_threads = count_threads()
        self._observer = Observer(order.cell, self._num_threads)
        self._phases = Phases()
        self._environment: Environment | None = None
        self._chosen_caches: dict[str, str] = {}
        self._framework: Framework | None = None
        self._recorder = StepRecorder()
        self.result: Result | None = None
        """The record, once there is one."""
        self.is_node_fault = False
        """The machine is at fault: it could not come to the first step, whatever the cell."""

    def run(self) -> Result:
        """Measure the order's cell and return its record: ok, oom or failed. Only errors in this package are raised."""
        try:
            measured = self._measure()
        except Exception as error:  # whatever a framework raises becomes the record, with its traceback
            status, failure = self._describe_failure(error)
            self.is_node_fault = status == "failed" and not self._has_stepped and is_node_fault(error)
            self.result = self._make_result(status, error=failure)
        else:
            self.result = self._make_result("ok", measured=measured)
        return self.result

    def cut_short(self, status: Status, failure: Failure) -> Result:
        """Return the record of an attempt that is ended from outside, with what it has measured so far.

        May be called in another thread, while `run` is at work.
        """
        warmup, steps = tuple(self._recorder.warmup_steps), tuple(self._recorder.steps)
        samples = Samples(
            warmup_step_seconds=warmup, step_seconds=steps, device_step_seconds=None, reached_steady=False
        )
        return self._make_result(status, error=failure, samples=samples if steps else None)

    @property
    def _has_stepped(self) -> bool:
        return self._phases.first_step_seconds is not None or bool(self._recorder.warmup_steps or self._recorder.steps)

    def _measure(self) -> Measured:
        cell = self._order.cell
        self._set_variables()
        if cell.device == "gpu":
            read_library_files()
        self._observer.read_baseline()
        framework = self._load()
        self._observer.end_idle_watch()
        workload = self._build(framework)
        environment = self._environment
        assert environment is not None
        self._observer.measure_host_before(framework)
        self._phases, samples, cpu_use = measure(
            workload, cell, self._phases, self._recorder, self._observer.watch_window
        )
        memory = self._observer.read_memory(framework)
        device_kind = self._observer.try_probe("device of the output", workload.device_kind, None)
        passes = self._observer.run_passes(workload, framework, samples)
        del workload  # what follows on a CPU needs memory of its own
        roofline = self._observer.make_roofline(framework, environment, samples)
        self._observer.calibrate(framework, environment)
        inputs = ValidityInputs(
            cell=cell,
            phases=self._phases,
            samples=samples,
            device_kind=device_kind,
            num_threads=self._num_threads,
            cpu_use=cpu_use,
            gpu_use=self._observer.gpu_use,
            roofline=roofline,
            host_peak=self._observer.host_peak,
        )
        return Measured(
            samples=samples,
            passes=passes,
            memory=memory,
            cpu_use=cpu_use,
            roofline=roofline,
            validity=judge_validity(inputs),
        )

    def _set_variables(self) -> None:
        """Set the libraries' threads, devices and caches; they read these variables when they are imported."""
        limit_library_threads(self._num_threads)
        self._chosen_caches = read_chosen_caches()
        if self._order.compile_cache is not None:
            use_compile_cache(self._order.compile_cache)
        if self._order.cell.device == "cpu":
            os.environ["CUDA_VISIBLE_DEVICES"] = ""
        os.environ["CUDA_DEVICE_ORDER"] = "PCI_BUS_ID"  # as NVML counts; CUDA's own order puts the fastest first
        if self._order.cell.device == "gpu":
            restrict_to_cell(self._order.cell.num_gpus)

    def _load(self) -> Framework:
        start = perf_counter()
        self._framework = load_framework(self._order.cell, self._num_threads)
        self._phases = Phases(import_seconds=perf_counter() - start)
        # Whether the GPU is there is for the build to say, in the framework's words.
        self._environment = self._try_environment(self._framework)
        return self._framework

    def _build(self, framework: Framework) -> Workload:
        start = perf_counter()
        try:
            workload = framework.build_workload(self._order.cell)
        except Exception:
            self._environment = self._try_environment(framework)
            raise
        self._phases = self._phases.model_copy(update={"build_seconds": perf_counter() - start})
        # Again: building decides on settings, and some versions are known only with a context on the GPU.
        self._environment = self._read_environment(framework)
        return workload

    def _try_environment(self, framework: Framework) -> Environment | None:
        """Return the environment as far as it is known before a GPU was used; None, and a note, where it cannot be."""
        return self._observer.try_probe("environment", lambda: self._read_environment(framework), self._environment)

    def _read_environment(self, framework: Framework) -> Environment:
        return read_environment(
            self._order.cell,
            framework,
            self._num_threads,
            image=self._order.image,
            git_revision=self._order.git_revision,
            node=self._order.node,
            chosen_caches=self._chosen_caches,
        )

    def _describe_failure(self, error: Exception) -> tuple[Status, Failure]:
        if isinstance(error, UserError):  # about the user's data: no traceback is needed
            return "failed", Failure(kind="exception", message=make_printable(str(error))[:MESSAGE_CHARACTERS])
        message = summarize_error(error)
        tail = make_printable(traceback.format_exc())[-TRACEBACK_CHARACTERS:]
        if isinstance(error, ImportError) and self._framework is None:
            return "failed", Failure(kind="missing-framework", message=message, stderr_tail=tail)
        if isinstance(error, MemoryError) or (self._framework and self._framework.is_out_of_memory(error)):
            requested = parse_requested_bytes(make_printable(str(error)))
            return "oom", Failure(kind="out-of-memory", message=message, bytes_requested=requested, stderr_tail=tail)
        return "failed", Failure(kind="exception", message=message, stderr_tail=tail)

    def _make_result(
        self,
        status: Status,
        *,
        measured: Measured | None = None,
        samples: Samples | None = None,
        error: Failure | None = None,
    ) -> Result:
        cut_short = Memory(
            peak_rss_bytes=read_peak_rss_bytes(), peak_memory_allocated_bytes=None, peak_memory_reserved_bytes=None
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
            # Not the time of day again: it may have been set back since.
            finished_at=self._started_at + timedelta(seconds=perf_counter() - self._start),
            phases=self._phases,
            samples=measured.samples if measured else samples,
            pipelined=measured.passes.pipelined if measured else None,
            sustained=measured.passes.sustained if measured else None,
            memory=measured.memory if measured else cut_short,
            cpu_use=measured.cpu_use if measured else None,
            gpu_use=self._observer.gpu_use,
            device_profile=measured.passes.device_profile if measured else None,
            roofline=measured.roofline if measured else None,
            host_peak=self._observer.host_peak,
            calibration=self._observer.calibration,
            validity=measured.validity if measured else None,
            probe_failures=tuple(self._observer.failures),
            environment=self._environment,
            error=error,
        )


def summarize_error(error: Exception) -> str:
    """Return one line for people: the error's type and its first line, or the line with CAUSE_WORDS."""
    lines = [line.strip() for line in make_printable(str(error)).splitlines() if line.strip()]
    with_cause = [line for line in lines if any(words in line for words in CAUSE_WORDS)]
    return f"{type(error).__name__}: {[*with_cause, *lines, 'no message'][0]}"[:MESSAGE_CHARACTERS]


def make_printable(text: str) -> str:
    """Return `text` without colour codes and with `?` for what UTF-8 cannot hold."""
    return re.sub(r"\x1b\[[0-9;]*m", "", text).encode(errors="replace").decode()
