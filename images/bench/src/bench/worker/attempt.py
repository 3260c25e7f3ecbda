"""Carries out one attempt at one repeat of a cell and makes its Result, whatever the framework does."""

import gc
import os
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from time import perf_counter
from typing import Any

from bench.errors import UserError
from bench.frameworks.interface import Framework, load_framework
from bench.measure.harness import StepRecorder, Workload, measure
from bench.measured_bounds import keep_series, make_record
from bench.probes.cpu import count_threads, limit_library_threads
from bench.probes.gpu_processes import restrict_to_cell
from bench.probes.library_files import read_library_files
from bench.probes.machine import read_environment, read_mps_state
from bench.schema import (
    CpuUse,
    Environment,
    Failure,
    Memory,
    Phases,
    Reason,
    Result,
    Roofline,
    Samples,
    Status,
    Validity,
    bound_time,
    describe_clock,
)
from bench.tenants.meeting import GroupOverError
from bench.tenants.tenant import Tenant
from bench.verdicts import ValidityInputs, judge_tenant, judge_tenants, judge_validity
from bench.worker.compilers import read_chosen_caches, use_compile_cache
from bench.worker.failures import describe_failure, is_node_fault
from bench.worker.observe import AttemptProbes, Passes
from bench.worker.request import Order


@dataclass(frozen=True, kw_only=True)
class Measured:
    """The parts of a Result that only a complete measurement has."""

    samples: Samples
    passes: Passes
    memory: Memory
    cpu_use: CpuUse | None
    roofline: Roofline | None
    validity: Validity

    def list_fields(self) -> dict[str, Any]:
        parts = {name: getattr(self, name) for name in ("samples", "memory", "cpu_use", "roofline", "validity")}
        return parts | {name: getattr(self.passes, name) for name in ("pipelined", "sustained", "device_profile")}


class Attempt:
    """One attempt and its progress: what is known so far goes into the record, also when a later part fails."""

    def __init__(self, order: Order, tenant: Tenant | None = None) -> None:
        self._order = order
        self._tenant = tenant
        """Of a cell with several tenants, which of them this process is."""
        self._cell = order.cell if tenant is None else tenant.cell
        clock = datetime.now(UTC)
        self._started_at = bound_time(clock)
        self._start = perf_counter()
        self._num_threads = count_threads()
        self._probes = AttemptProbes(self._cell, self._num_threads, is_under_mps=order.cell.sharing == "mps")
        self._probes.failures += filter(None, [describe_clock(clock)])
        self._phases = Phases()
        self._environment: Environment | None = None
        self._chosen_caches: dict[str, str] = {}
        self._framework: Framework | None = None
        self._recorder = StepRecorder(self._probes.failures)
        self._own_reasons: tuple[Reason, ...] = ()
        """Why the series of this process is not simply valid, of several tenants."""
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
            self.is_node_fault = status == "failed" and not self._has_stepped and is_node_fault(error)
            result = self._make_result(status, error=failure)
        else:
            result = self._make_result("ok", measured=measured)
        if self._tenant is not None and self._tenant.is_first:
            if result.error is not None and self._framework is not None:
                self._release_memory(self._framework)
            result = self._tenant.conclude(result, self._own_reasons, self._probes.device_memory)
        self.result = result
        return self.result

    def cut_short(self, status: Status, failure: Failure) -> Result:
        """Return the record of an attempt that is ended from outside, with what it has measured so far.

        May be called in another thread, while `run` is at work.
        """
        failures = self._probes.failures
        warmup = keep_series(failures, "steps of the warm-up", list(self._recorder.warmup_steps))
        steps = keep_series(failures, "steps of the timed window", list(self._recorder.steps))
        samples = None
        if steps and warmup is not None:
            samples = Samples(
                warmup_step_seconds=warmup, step_seconds=steps, device_step_seconds=None, reached_steady=False
            )
        result = self._make_result(status, error=failure, samples=samples)
        return self._tenant.name_result(result) if self._tenant is not None and self._tenant.is_first else result

    @property
    def _has_stepped(self) -> bool:
        return self._phases.first_step_seconds is not None or bool(self._recorder.warmup_steps or self._recorder.steps)

    def _measure(self) -> Measured:
        self._set_variables()
        if self._cell.device == "gpu":
            read_library_files()
        self._read_baseline()
        framework = self._load()
        self._probes.end_idle_watch()
        workload = self._build(framework)
        environment = self._environment
        assert environment is not None
        self._probes.measure_host_before(framework)
        samples, cpu_use = self._time_steps(workload)
        memory = self._probes.read_memory(framework)
        device_kind = self._probes.try_probe("device of the output", workload.device_kind, None)
        passes = self._run_passes(workload, framework, samples)
        del workload  # what follows on a CPU needs memory of its own
        roofline = self._probes.make_roofline(framework, environment, samples)
        self._probes.calibrate(framework, environment)
        inputs = ValidityInputs(
            cell=self._cell,
            phases=self._phases,
            samples=samples,
            device_kind=device_kind,
            num_threads=self._num_threads,
            cpu_use=cpu_use,
            gpu_use=self._probes.gpu_use,
            roofline=roofline,
            host_peak=self._probes.host_peak,
            is_under_mps=self._order.cell.sharing == "mps",
        )
        return Measured(
            samples=samples,
            passes=passes,
            memory=memory,
            cpu_use=cpu_use,
            roofline=roofline,
            validity=self._judge(inputs),
        )

    def _read_baseline(self) -> None:
        """Read the idle device and, as tenant 0, call the other tenants then; these leave the device to tenant 0."""
        if self._tenant is None:
            self._probes.read_baseline()
        elif self._tenant.is_first:
            self._probes.read_baseline(watches_idle=False)  # the others start while this process imports
            self._tenant.meeting.call()

    def _time_steps(self, workload: Workload) -> tuple[Samples, CpuUse | None]:
        watch = self._probes.watch_window
        if self._tenant is None:
            self._phases, samples, cpu_use = measure(workload, self._cell, self._phases, self._recorder, watch)
        else:
            self._phases, samples, cpu_use = self._tenant.measure(workload, self._phases, self._recorder, watch)
        return samples, cpu_use

    def _run_passes(self, workload: Workload, framework: Framework, samples: Samples) -> Passes:
        if self._tenant is None:
            return self._probes.run_passes(workload, framework, samples)
        if self._tenant.is_first:
            self._probes.look_at_tenants(self._tenant.read_pids)
        self._tenant.hold()
        return Passes(pipelined=None, sustained=None, device_profile=None)

    def _judge(self, inputs: ValidityInputs) -> Validity:
        if self._tenant is None:
            return judge_validity(inputs)
        own = judge_tenant(inputs)
        self._own_reasons = own.reasons
        if not self._tenant.is_first:
            return own
        records = self._tenant.gather_others()
        return judge_tenants(
            inputs,
            {0: own.reasons} | {record.tenant: record.reasons for record in records},
            tenant_cores=sum(record.own_cores or 0.0 for record in records),
        )

    def _set_variables(self) -> None:
        limit_library_threads(self._num_threads)
        self._chosen_caches = read_chosen_caches()
        if self._order.compile_cache is not None:
            use_compile_cache(self._order.compile_cache)
        if self._cell.device == "cpu":
            os.environ["CUDA_VISIBLE_DEVICES"] = ""
        os.environ["CUDA_DEVICE_ORDER"] = "PCI_BUS_ID"  # as NVML counts; CUDA's own order puts the fastest first
        if self._cell.device == "gpu":
            restrict_to_cell(self._cell.num_gpus)

    def _load(self) -> Framework:
        start = perf_counter()
        self._framework = load_framework(self._cell, self._num_threads)
        self._phases = Phases(import_seconds=perf_counter() - start)
        # Whether the GPU is there is for the build to say, in the framework's words.
        self._environment = self._try_environment(self._framework)
        return self._framework

    def _build(self, framework: Framework) -> Workload:
        start = perf_counter()
        try:
            workload = framework.build_workload(self._cell)
        except Exception:
            self._environment = self._try_environment(framework)
            raise
        self._phases = self._phases.model_copy(update={"build_seconds": perf_counter() - start})
        self._check_sharing()
        # Again: building decides on settings, and some versions are known only with a context on the GPU.
        self._environment = self._read_environment(framework)
        return workload

    def _release_memory(self, framework: Framework) -> None:
        gc.collect()  # the frames of the error are gone, and with them the model
        self._probes.try_probe("release of memory", framework.release_memory, None)

    def _check_sharing(self) -> None:
        """Raise UserError where a tenant that is alone asks for MPS and has it not; several check it together."""
        if self._order.cell.sharing == "mps" and self._tenant is None and read_mps_state() is False:
            raise UserError("MPS is not in force: CUDA found no MPS daemon, and would run on without it")

    def _try_environment(self, framework: Framework) -> Environment | None:
        """Return the environment as far as it is known before a GPU was used; None, and a note, where it cannot be."""
        return self._probes.try_probe("environment", lambda: self._read_environment(framework), self._environment)

    def _read_environment(self, framework: Framework) -> Environment:
        return read_environment(
            self._cell,
            framework,
            self._num_threads,
            image=self._order.image,
            git_revision=self._order.git_revision,
            node=self._order.node,
            chosen_caches=self._chosen_caches,
        )

    def _make_result(
        self,
        status: Status,
        *,
        measured: Measured | None = None,
        samples: Samples | None = None,
        error: Failure | None = None,
    ) -> Result:
        fields: dict[str, Any] = {
            "run_id": self._order.run_id,
            "cell": self._cell,
            "cell_id": self._cell.cell_id,
            "repeat": self._order.repeat,
            "attempt": self._order.attempt,
            "status": status,
            "written_by": "bench",
            "started_at": self._started_at,
            # Not the time of day again: it may have been set back since.
            "finished_at": bound_time(self._started_at + timedelta(seconds=perf_counter() - self._start)),
            "phases": self._phases,
            "samples": samples,
            "memory": None if measured else self._probes.read_early_memory(),
            "gpu_use": self._probes.gpu_use,
            "host_peak": self._probes.host_peak,
            "calibration": self._probes.calibration,
            "probe_failures": tuple(self._probes.failures),
            "environment": self._environment,
            "error": error,
        }
        return make_record(fields | ({} if measured is None else measured.list_fields()))
