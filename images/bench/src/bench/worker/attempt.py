"""Carries out one attempt at one repeat of a cell and makes its Result, whatever the framework does."""

import os
from datetime import timedelta
from time import perf_counter
from typing import Any

from pydantic import ValidationError

from bench.errors import UserError
from bench.frameworks.interface import Framework, load_framework
from bench.measure.harness import StepRecorder, WatchWindow, Workload, measure
from bench.probes.cpu import count_threads, limit_library_threads
from bench.probes.cuda import read_mps_state
from bench.probes.gpu import restrict_to_cell
from bench.probes.library_files import read_library_files
from bench.probes.machine import read_environment
from bench.schema import (
    CpuUse,
    Environment,
    Failure,
    Memory,
    Phases,
    Result,
    Samples,
    Status,
    Validity,
    bound_time,
    read_time_of_day,
)
from bench.store import ResultKey, interrupted_key, result_key
from bench.tenants.meeting import GroupOverError
from bench.verdicts import ValidityInputs, judge_validity
from bench.worker.compilers import read_chosen_variables, use_compile_cache
from bench.worker.failures import describe_failure, is_node_fault, summarize_error
from bench.worker.observe import Observer
from bench.worker.preflight import check_place
from bench.worker.request import Order, read_timing_variables


class Alone:
    """What the only process of a repeat does for it; `Tenant` says what one of several does instead."""

    def __init__(self, order: Order) -> None:
        self._order = order
        self.cell = order.cell
        """What this process runs."""

    def begin(self, *, is_container: bool) -> None:
        """Return when this process may begin; raise UserError where its container lacks what the cell needs."""
        if is_container:
            check_place(self._order)

    def read_baseline(self, probes: Observer) -> None:
        probes.read_baseline()

    def measure(
        self, workload: Workload, phases: Phases, recorder: StepRecorder, watch: WatchWindow
    ) -> tuple[Phases, Samples, CpuUse | None]:
        """Run first step, warm-up and the window, as `bench.measure.harness.measure`.

        Raise UserError where the device is not shared as the cell asks for; its context is there.
        """
        if self.cell.sharing == "mps" and read_mps_state() is False:
            raise UserError("MPS is not in force: CUDA found no MPS daemon, and would run on without it")
        return measure(workload, self.cell, phases, recorder, watch)

    def run_passes(
        self, probes: Observer, workload: Workload, framework: Framework, samples: Samples
    ) -> dict[str, Any]:
        """Run what comes after the window; return what was measured, by the names of a Result's fields."""
        return probes.run_passes(workload, framework, samples)

    def judge(self, inputs: ValidityInputs) -> Validity:
        return judge_validity(inputs)

    def conclude(self, result: Result, probes: Observer, framework: Framework | None) -> Result:
        """Return the record of what this process was to measure, from what it measured itself."""
        return result

    def encode(self, result: Result, *, is_interrupted: bool) -> tuple[str, bytes]:
        """Return the key and the bytes of the record; an interrupted one lies beside the results."""
        make_key = interrupted_key if is_interrupted else result_key
        return make_key(*ResultKey.of(result)), result.to_json()

    def end(self) -> None:
        """Tidy up when the record is in the store."""


class Attempt:
    """One attempt and its progress: what is known so far goes into the record, also when a later part fails."""

    def __init__(self, order: Order, part: Alone) -> None:
        self._order = order
        self.part = part
        self._cell = part.cell
        self._started_at = read_time_of_day()
        self._start = perf_counter()
        self._num_threads = count_threads()
        self._probes = Observer(self._cell, self._num_threads, is_under_mps=order.cell.sharing == "mps")
        self._phases = Phases()
        self._environment: Environment | None = None
        self._variables: dict[str, str] = {}
        self._framework: Framework | None = None
        self._recorder = StepRecorder(self._probes.failures)
        self.result: Result | None = None
        """The record, once there is one."""
        self.is_node_fault = False
        """The machine is at fault: it could not come to the first step, whatever the cell."""

    def run(self) -> Result:
        """Measure the order's cell and return its record: ok, oom or failed. Only errors in this package are raised."""
        try:
            measured = self._measure()
        except GroupOverError:
            raise
        except Exception as error:  # whatever a framework raises becomes the record, with its traceback
            status, failure = describe_failure(error, self._framework)
            has_stepped = self._phases.first_step_seconds is not None or self._recorder.warmup_steps
            self.is_node_fault = status == "failed" and not has_stepped and is_node_fault(error)
            result = self._make_result(status, error=failure)
        else:
            result = self._make_result("ok", **measured)
        self.result = self.part.conclude(result, self._probes, self._framework)
        return self.result

    def cut_short(self, status: Status, failure: Failure) -> Result:
        """Return the record of an attempt that another thread ends while `run` is at work, with what it has so far."""
        warmup, steps = tuple(self._recorder.warmup_steps), tuple(self._recorder.steps)
        samples = None
        if steps:
            samples = Samples(warmup_step_seconds=warmup, step_seconds=steps, reached_steady=False)
        return self._make_result(status, error=failure, samples=samples)

    def _measure(self) -> dict[str, Any]:
        """Return what only a complete measurement has, by the names of a Result's fields."""
        probes = self._probes
        self._set_variables()
        if self._cell.device == "gpu":
            read_library_files()
        self.part.read_baseline(probes)
        start = perf_counter()
        framework = self._framework = load_framework(self._cell, self._num_threads)
        self._phases = Phases(import_seconds=perf_counter() - start)
        self._try_environment(framework)  # whether the GPU is there is for the build to say, in the framework's words
        probes.end_idle_watch()
        workload = self._build(framework)
        environment = self._environment
        assert environment is not None
        probes.measure_host_before(framework)
        self._phases, samples, cpu_use = self.part.measure(workload, self._phases, self._recorder, probes.watch_window)
        memory = probes.read_memory(framework)
        device_kind = probes.run("device of the output", None, workload.device_kind)
        is_compiled = probes.run("compiled programs", None, workload.is_compiled)
        programs = probes.run("compile cache", None, framework.count_programs)
        passes = self.part.run_passes(probes, workload, framework, samples)
        del workload  # what follows on a CPU needs memory of its own
        roofline = probes.make_roofline(framework, environment, samples)
        probes.calibrate(framework, environment)
        wants_error = self._cell.sampling_seconds > 0 and not self._cell.is_shared
        if wants_error and self._order.repeat == 1:  # every repeat has the same weights
            error = probes.run("error of the precision", None, framework.measure_precision_error, self._cell)
            passes = passes | {"precision_error": error}
        inputs = ValidityInputs(
            cell=self._cell,
            phases=self._phases,
            samples=samples,
            device_kind=device_kind,
            is_compiled=is_compiled,
            num_threads=self._num_threads,
            cpu_use=cpu_use,
            gpu_use=probes.gpu_use,
            roofline=roofline,
            host_peak=probes.host_peak,
            is_under_mps=self._order.cell.sharing == "mps",
        )
        parts = {"samples": samples, "memory": memory, "cpu_use": cpu_use, "roofline": roofline}
        return parts | passes | {"compiled_programs": programs, "validity": self.part.judge(inputs)}

    def _set_variables(self) -> None:
        self._variables = read_timing_variables(os.environ) | read_chosen_variables()
        # The libraries read these variables when they are imported.
        limit_library_threads(self._num_threads)
        if self._order.compile_cache is not None:
            use_compile_cache(self._order.compile_cache)
        if self._cell.device == "cpu":
            os.environ["CUDA_VISIBLE_DEVICES"] = ""
        os.environ["CUDA_DEVICE_ORDER"] = "PCI_BUS_ID"  # as NVML counts; CUDA's own order puts the fastest first
        if self._cell.device == "gpu":
            restrict_to_cell(self._cell.num_gpus)

    def _build(self, framework: Framework) -> Workload:
        start = perf_counter()
        try:
            workload = framework.build_workload(self._cell)
        except Exception:
            self._try_environment(framework)
            raise
        self._phases = self._phases.model_copy(update={"build_seconds": perf_counter() - start})
        # Again: building decides on settings, and some versions are known only with a context on the GPU.
        self._environment = read_environment(self._order, framework, self._num_threads, self._variables)
        return workload

    def _try_environment(self, framework: Framework) -> None:
        """Read the environment as far as it is known before a GPU was used; note where it cannot be."""
        given = (self._order, framework, self._num_threads, self._variables)
        self._environment = self._probes.run("environment", self._environment, read_environment, *given)

    def _make_result(self, status: Status, error: Failure | None = None, **fields: Any) -> Result:
        """Return the record; `fields`: those of a Result that only some attempts have.

        What did not end well is of the repeat's cell; a tenant's own measurement is made that of all by `conclude`.
        """
        cell = self._cell if status == "ok" else self._order.cell
        parts: dict[str, Any] = {
            "run_id": self._order.run_id,
            "cell": cell,
            "cell_id": cell.cell_id,
            "repeat": self._order.repeat,
            "attempt": self._order.attempt,
            "written_by": "bench",
            "started_at": self._started_at,
            # Not the time of day again: it may have been set back since.
            "finished_at": bound_time(self._started_at + timedelta(seconds=perf_counter() - self._start)),
            "phases": self._phases,
            "memory": Memory(peak_rss_bytes=self._probes.read_peak_rss()) if status != "ok" else None,
            "gpu_use": self._probes.gpu_use,
            "host_peak": self._probes.host_peak,
            "calibration": self._probes.calibration,
            "environment": self._environment,
        } | fields
        parts["probe_failures"] = tuple(self._probes.failures)
        try:
            return Result(**parts, status=status, error=error)
        except ValidationError as violation:  # parts that contradict each other are kept, and no record is lost
            failure = error or Failure(kind="exception", message=summarize_error(violation))
        return Result(**parts, status="failed" if status == "ok" else status, error=failure)
