"""Define the columns of the tidy tables, and fill those that follow from one result or placement. Base units only."""

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from statistics import fmean, median
from typing import Any, Literal

import numpy as np
import pandas as pd

from bench.registry import FRAMEWORKS
from bench.schema import (
    Calibration,
    CpuUse,
    DeviceProfile,
    Environment,
    Failure,
    Framework,
    GpuUse,
    HostPeak,
    Memory,
    Phases,
    Result,
    Roofline,
    Samples,
    Tenancy,
    TenantRecord,
)
from collector.results.hosts import identify_environment, identify_hardware, join_ids, name_machine

Row = dict[str, Any]
Columns = Mapping[str, str]

CELL_COLUMNS: Columns = {
    "model": "str",
    "framework": "str",
    "device": "str",
    "phase": "str",
    "precision": "str",
    "mode": "str",
    "num_gpus": "int64",
    "batch_size": "int64",
    "input_size": "int64",
    "num_classes": "Int64",
    "data_dir": "str",
    "tenants": "int64",
    "sharing": "str",
    "neighbour": "str",
    "num_warmup_steps": "int64",
    "max_warmup_seconds": "float64",
    "num_steps": "int64",
    "min_seconds": "float64",
    "sampling_seconds": "float64",
    "pipelined_seconds": "float64",
    "sustain_seconds": "float64",
    "num_profiled_steps": "int64",
    "seed": "int64",
}
DURATION_COLUMNS: Columns = dict.fromkeys(Phases.model_fields, "float64")
MEMORY_COLUMNS: Columns = dict.fromkeys(Memory.model_fields, "Int64")
ENVIRONMENT_COLUMNS: Columns = {
    "environment_id": "str",
    "hardware_id": "str",
    "cpu_model": "str",
    "num_threads": "Int64",
    "gpu_name": "str",
    "driver_version": "str",
    "python_version": "str",
    "framework_version": "str",
    "cuda_graph": "boolean",
}
# What was measured beside the timed window's steps: throughput as people train, speed that lasts, waits for data.
PACE_COLUMNS: Columns = {
    "pipelined_step_seconds": "float64",
    "pipelined_samples_per_s": "float64",
    "first_sustained_step_seconds": "float64",
    "settled_step_seconds": "float64",
    "flat_after_seconds": "float64",
    "sustained_seconds": "float64",
    "data_wait_share": "float64",
}
MACHINE_COLUMNS: Columns = {
    "hostname": "str",
    "gpu_uuid": "str",
    "boot_id": "str",
    "booted_at": "datetime64[us, UTC]",
    "lasting_ids": "str",
    "host": "str",
    "machine": "str",
}
"""Which machine a repeat ran on. Several GPUs and ids are joined; see `collector.results.hosts` for `host` and
`machine`, which depend on the other results: in the rows of the data set they are as one result alone gives them."""
NO_REASON = "none"
"""What is said of a GPU whose driver was asked why its clock was lowered, and gave no reason."""
VERDICT_COLUMNS = dict.fromkeys(("verdict", "fault_verdicts", "verdict_reasons", "unchecked", "notes"), "str")
ROOFLINE_COLUMNS = dict.fromkeys(Roofline.model_fields, "float64") | {
    "flops_per_step": "Int64",
    "least_flops_per_step": "Int64",
    "min_bytes_per_step": "Int64",
    "peak_source": "str",
    "bound": "str",
}
CPU_COLUMNS = {
    "cpu_own_cores": "float64",
    "cpu_other_cores": "float64",
    "num_machine_cores": "Int64",
    "cpu_affinity_cores": "Int64",
    "cpu_affinity_other_cores": "float64",
    "cpu_sibling_busy_cores": "float64",
    "cpu_pressure_share": "float64",
    "cpu_throttled_share": "float64",
    "cpu_throttled_seconds": "float64",
    "cpu_energy_per_sample_joules": "float64",
    "cpu_product_flops_per_second": "float64",
}
CALIBRATION_COLUMNS = {
    "gpu_product_flops_per_second": "float64",
    "copy_bytes_per_second": "float64",
    "copy_bytes": "Int64",
}
GPU_COLUMNS = {
    "gpu_idle_power_watts": "float64",
    "gpu_mean_power_watts": "float64",
    "gpu_energy_per_step_joules": "float64",
    "gpu_energy_per_sample_joules": "float64",
    "gpu_energy_source": "str",
    "gpu_sm_clock_mhz": "float64",
    "gpu_sm_clock_share": "float64",
    "gpu_power_limit_watts": "float64",
    "gpu_default_power_limit_watts": "float64",
    "gpu_max_temperature_celsius": "float64",
    "gpu_memory_before_bytes": "Int64",
    "gpu_memory_peak_bytes": "Int64",
    "gpu_throttle_reasons": "str",
    "num_foreign_processes": "Int64",
}
PROFILE_COLUMNS = {
    "kernels_per_step": "float64",
    "copies_per_step": "float64",
    "kernel_seconds_per_step": "float64",
    "kernel_busy_share": "float64",
    "profiled_step_seconds": "float64",
    "profiled_busy_share": "float64",
}
CONDITION_COLUMNS = ROOFLINE_COLUMNS | CPU_COLUMNS | CALIBRATION_COLUMNS | GPU_COLUMNS | PROFILE_COLUMNS
"""What of the conditions both results and their summary have; the summary counts the verdicts instead."""
CpuManagerPolicy = Literal["static", "none"]

PLACEMENT_COLUMNS: Mapping[str, str] = {
    "instance_type": "str",
    "region": "str",
    "zone": "str",
    "is_spot": "boolean",
    "image_id": "str",
    "kubelet_version": "str",
    "cpu_manager_policy": "str",
    "other_containers": "str",
}
RESULT_COLUMNS: Columns = {
    "run_id": "str",
    "cell_id": "str",
    "repeat": "int64",
    "attempt": "str",
    "num_attempts": "int64",
    "status": "str",
    **CELL_COLUMNS,
    "started_at": "datetime64[us, UTC]",
    "finished_at": "datetime64[us, UTC]",
    "written_by": "str",
    **DURATION_COLUMNS,
    "num_warmup_steps_taken": "Int64",
    "num_steps_taken": "Int64",
    "reached_steady": "boolean",
    "median_step_seconds": "float64",
    "mean_step_seconds": "float64",
    "center_step_seconds": "float64",
    "summarized_by": "str",
    "window_samples_per_s": "float64",
    **PACE_COLUMNS,
    **MEMORY_COLUMNS,
    **VERDICT_COLUMNS,
    **CONDITION_COLUMNS,
    **ENVIRONMENT_COLUMNS,
    **PLACEMENT_COLUMNS,
    **MACHINE_COLUMNS,
    "error_kind": "str",
    "error_message": "str",
    "exit_code": "Int64",
    "signal": "str",
    "stderr_tail": "str",
}
SAMPLE_COLUMNS: Columns = {
    "cell_id": "str",
    "repeat": "int64",
    "tenant": "int64",
    "kind": "str",
    "index": "int64",
    "seconds": "float64",
    "device_seconds": "float64",
}
TENANT_COLUMNS: Columns = {
    "run_id": "str",
    "cell_id": "str",
    "repeat": "int64",
    "attempt": "str",
    "tenant": "int64",
    "alone_cell_id": "str",
    **{name: CELL_COLUMNS[name] for name in ("model", "phase", "precision", "mode", "batch_size", "input_size")},
    "status": "str",
    "window_seconds": "float64",
    "lateness_seconds": "float64",
    "num_warmup_steps_taken": "Int64",
    "num_steps_taken": "Int64",
    "window_samples_per_s": "float64",
    "mean_step_seconds": "float64",
    **MEMORY_COLUMNS,
    "device_memory_bytes": "Int64",
    "error_kind": "str",
    "error_message": "str",
}
"""One row per tenant of an attempt that had several."""
# The package whose version names a framework's version.
FRAMEWORK_PACKAGES: dict[Framework, str] = {name: framework.package for name, framework in FRAMEWORKS.items()}
MISSING_REASON = "no result was found"


def make_frame(rows: list[Row], columns: Columns) -> pd.DataFrame:
    """Return `rows` as a DataFrame with exactly `columns` (name to dtype); a field that a row lacks is missing."""
    return pd.DataFrame(
        {name: pd.Series([row.get(name) for row in rows], dtype=dtype) for name, dtype in columns.items()}
    )


def list_rows(frame: pd.DataFrame) -> list[Row]:
    """Return the rows of `frame`, the inverse of `make_frame`. A missing integer or boolean is None.

    Whole columns become Python values at once: `DataFrame.to_dict` takes each value by itself, up to eight times as
    long.
    """
    if frame.columns.empty or frame.index.empty:
        return [{} for _ in frame.index]
    columns = {str(name): _list_values(column) for name, column in frame.items()}
    return [dict(zip(columns, values, strict=True)) for values in zip(*columns.values(), strict=True)]


def _list_values(column: "pd.Series[Any]") -> list[Any]:
    values: list[Any] = column.tolist()
    return values if isinstance(column.dtype, np.dtype) else [None if value is pd.NA else value for value in values]


def describe_result(result: Result) -> Row:
    """Return the columns of RESULT_COLUMNS that follow from one result alone, less those of its environment."""
    row = result.model_dump(include={"attempt", "status", "started_at", "finished_at", "written_by"})
    row |= result.phases.model_dump() | describe_conditions(result)
    row["window_samples_per_s"] = result.window_samples_per_s
    if result.samples is not None:
        row |= {
            "num_warmup_steps_taken": len(result.samples.warmup_step_seconds),
            "num_steps_taken": len(result.samples.step_seconds),
            "reached_steady": result.samples.reached_steady,
            "median_step_seconds": float(np.median(result.samples.step_seconds)),
            "mean_step_seconds": fmean(result.samples.step_seconds or [math.nan]),
            "center_step_seconds": result.samples.center_step_seconds,
            "summarized_by": result.samples.summarized_by,
        }
        row |= _describe_pace(result, result.samples)
    if result.memory is not None:
        row |= result.memory.model_dump()
    if result.error is not None:
        row |= _describe_error(result.error)
    return row


def _describe_pace(result: Result, samples: Samples) -> Row:
    row: Row = {}
    if result.pipelined is not None:
        row["pipelined_step_seconds"] = result.pipelined.step_seconds
        row["pipelined_samples_per_s"] = result.cell.batch_size / result.pipelined.step_seconds
    if result.sustained is not None:
        row |= {
            "first_sustained_step_seconds": result.sustained.window_step_seconds[0],
            "settled_step_seconds": result.sustained.window_step_seconds[-1],
            "flat_after_seconds": result.sustained.flat_after_seconds,
            "sustained_seconds": result.sustained.seconds,
        }
    if samples.data_wait_seconds:
        row["data_wait_share"] = sum(samples.data_wait_seconds) / sum(samples.step_seconds)
    return row


def describe_environment(environment: Environment, framework: Framework) -> Row:
    """Return the columns of RESULT_COLUMNS that an environment says, for a result of this framework."""
    gpu = environment.gpu
    gpu_uuid = join_ids(gpu.uuid for gpu in environment.gpus)
    identity = environment.identity
    return {
        "environment_id": identify_environment(environment),
        "hardware_id": identify_hardware(environment),
        "hostname": environment.hostname,
        "gpu_uuid": gpu_uuid,
        "boot_id": identity.boot_id if identity else None,
        "booted_at": identity.booted_at if identity else None,
        "lasting_ids": join_ids(identity.lasting_ids) if identity else None,
        "host": environment.hostname,
        "machine": name_machine(environment.hostname, gpu_uuid),
        "cpu_model": environment.cpu_model,
        "num_threads": environment.num_threads,
        "gpu_name": gpu.name if gpu else None,
        "driver_version": gpu.driver_version if gpu else None,
        "python_version": environment.python_version,
        "framework_version": environment.versions.get(FRAMEWORK_PACKAGES[framework]),
        "cuda_graph": environment.settings.get("cuda_graph"),
    }


def _describe_error(error: Failure) -> Row:
    return {"error_kind": error.kind, "error_message": error.message} | error.model_dump(
        include={"exit_code", "signal", "stderr_tail"}
    )


def describe_conditions(result: Result) -> Row:
    """Return the columns VERDICT_COLUMNS and CONDITION_COLUMNS of one result; what it does not say is left out."""
    row: Row = {}
    if result.validity is not None:
        messages = "; ".join(reason.message for reason in result.validity.reasons)
        unchecked = "; ".join(result.validity.unchecked)
        notes = "; ".join(result.validity.notes)
        row |= {
            "verdict": result.validity.verdict,
            "fault_verdicts": " ".join(reason.verdict for reason in result.validity.reasons),
            "verdict_reasons": messages or None,
            "unchecked": unchecked or None,
            "notes": notes or None,
        }
    if result.roofline is not None:
        row |= result.roofline.model_dump()
    if result.cpu_use is not None:
        num_samples = len(result.samples.step_seconds) * result.cell.batch_size if result.samples else 0
        rate = sum_sample_rates(result)
        # The energy is the machine's, and so that of all tenants: they share it by their samples.
        row |= _describe_cpu(result.cpu_use, rate * result.cpu_use.window_seconds if rate else num_samples)
    if result.host_peak is not None:
        row["cpu_product_flops_per_second"] = _find_product(result.host_peak)
    if result.calibration is not None:
        row |= _describe_calibration(result.calibration)
    if result.gpu_use:
        row |= _describe_gpus(result.gpu_use, result.cell.batch_size)
    if result.gpu_use and result.tenancy is not None:
        row |= _describe_shared_gpu(result.gpu_use[0], result.tenancy, sum_sample_rates(result))
    if result.device_profile is not None:
        row |= _describe_profile(result.device_profile)
    return row


def _find_product(host: HostPeak) -> float | None:
    """Return the rate of the faster matrix product of a CPU cell's process; None where neither was measured."""
    return max(filter(None, (host.before_flops_per_second, host.after_flops_per_second)), default=None)


def _describe_calibration(calibration: Calibration) -> Row:
    return {
        "gpu_product_flops_per_second": calibration.product_flops_per_second,
        "copy_bytes_per_second": calibration.copy_bytes_per_second,
        "copy_bytes": calibration.copy_bytes,
    }


def _describe_shared_gpu(gpu: GpuUse, tenancy: Tenancy, samples_per_second: float | None) -> Row:
    """Return the columns of GPU_COLUMNS that tenants share: there is no sampling pass, the window was watched instead.

    A step has no energy of its own then, a sample has: that of the GPU in the window over the samples of all tenants.
    """
    power = _divide(gpu.window.energy_joules, gpu.window.seconds) if gpu.window is not None else None
    return {
        "gpu_mean_power_watts": power,
        "gpu_energy_per_step_joules": None,
        "gpu_energy_per_sample_joules": _divide(power, samples_per_second),
        "gpu_energy_source": None if power is None else "energy-counter",
        "gpu_memory_peak_bytes": tenancy.device_memory_used_bytes,
    }


def _describe_cpu(use: CpuUse, num_samples: float) -> Row:
    """Return CPU_COLUMNS but the matrix product; `num_samples`: of the timed window, in which the CPUs were watched."""
    return {
        "cpu_own_cores": use.own_cores,
        "cpu_other_cores": use.other_cores,
        "num_machine_cores": use.num_machine_cores,
        "cpu_affinity_cores": use.num_affinity_cores,
        "cpu_affinity_other_cores": use.affinity_other_cores,
        "cpu_sibling_busy_cores": use.sibling_busy_cores,
        "cpu_pressure_share": use.pressure_share,
        "cpu_throttled_share": _divide(use.num_throttled_periods, use.num_periods),
        "cpu_throttled_seconds": use.throttled_seconds,
        "cpu_energy_per_sample_joules": _divide(use.energy_joules, num_samples),
    }


def _describe_gpus(gpus: Sequence[GpuUse], batch_size: int) -> Row:
    """Return GPU_COLUMNS; `batch_size`: the global one."""
    energy_per_step = _add(_divide(gpu.energy_joules, gpu.num_steps) for gpu in gpus)
    clocks = [(float(median(gpu.sm_clock_mhz)), gpu.max_sm_clock_mhz) for gpu in gpus if gpu.sm_clock_mhz]
    return {
        "gpu_idle_power_watts": _add(gpu.idle_power_watts for gpu in gpus),
        "gpu_mean_power_watts": _add(_divide(gpu.energy_joules, gpu.window_seconds) for gpu in gpus),
        "gpu_energy_per_step_joules": energy_per_step,
        "gpu_energy_per_sample_joules": _divide(energy_per_step, batch_size),
        "gpu_energy_source": gpus[0].energy_source,
        "gpu_sm_clock_mhz": min((clock for clock, _ in clocks), default=None),
        "gpu_sm_clock_share": min((clock / most for clock, most in clocks if most), default=None),
        "gpu_power_limit_watts": _add(gpu.power_limit_watts for gpu in gpus),
        "gpu_default_power_limit_watts": _add(gpu.default_power_limit_watts for gpu in gpus),
        "gpu_max_temperature_celsius": max((value for gpu in gpus for value in gpu.temperature_celsius), default=None),
        "gpu_memory_before_bytes": _find_largest(gpu.memory_used_before_bytes for gpu in gpus),
        "gpu_memory_peak_bytes": _find_largest(gpu.memory_used_peak_bytes for gpu in gpus),
        "gpu_throttle_reasons": _describe_throttling(gpus),
        "num_foreign_processes": _count_foreign_processes(gpus),
    }


def _describe_profile(profile: DeviceProfile) -> Row:
    """Return PROFILE_COLUMNS, of the busiest GPU; a profiled step is the median of all but the first."""
    num_steps = len(profile.step_seconds)
    busiest = max(profile.gpus, key=lambda gpu: gpu.busy_seconds)
    return {
        "kernels_per_step": busiest.num_kernels / num_steps,
        "copies_per_step": busiest.num_copies / num_steps,
        "kernel_seconds_per_step": profile.kernel_seconds_per_step,
        "kernel_busy_share": profile.kernel_busy_share,
        "profiled_step_seconds": median(profile.step_seconds[1:] or profile.step_seconds),
        "profiled_busy_share": profile.profiled_busy_share,
    }


def _count_foreign_processes(gpus: Sequence[GpuUse]) -> int | None:
    """Return the processes of others that were seen; None where there are none and they cannot be seen."""
    pids = {
        (gpu.uuid, process.pid)
        for gpu in gpus
        for process in (*(gpu.foreign_processes or ()), *(gpu.foreign_processes_after or ()))
    }
    hidden = any(gpu.foreign_processes is None or not gpu.processes_visible for gpu in gpus)
    return None if hidden and not pids else len(pids)


def _describe_throttling(gpus: Sequence[GpuUse]) -> str | None:
    """Return `power cap 40 %, ...`: each reason with the largest share of samples on any of the GPUs.

    `none` where the driver was asked in every sample and gave no reason; None where it did not answer, or results do
    not say whether it was asked.
    """
    shares: dict[str, float] = {}
    for gpu in gpus:
        for reason, share in gpu.throttle_reasons.items():
            shares[reason] = max(share, shares.get(reason, 0.0))
    given = sorted((item for item in shares.items() if item[1] > 0), key=lambda item: -item[1])
    if given:
        return ", ".join(f"{reason} {share:.0%}".replace("%", " %") for reason, share in given)
    return NO_REASON if all(gpu.sample_reasons or gpu.throttle_reasons for gpu in gpus) else None


def _add(values: Iterable[float | None]) -> float | None:
    """Return the sum; None where one of the values is not known."""
    found = list(values)
    return None if None in found else sum(value for value in found if value is not None)


def _divide(amount: float | None, by: float | None) -> float | None:
    return amount / by if amount is not None and by else None


def _find_largest(values: Iterable[int | None]) -> int | None:
    return max((value for value in values if value is not None), default=None)


def find_cpu_manager_policies(
    requests: Iterable[float | None],
    num_cpus: Iterable[int | None],
    qos_classes: Iterable[str | None],
    num_visible_cores: Iterable[int | None],
) -> list[CpuManagerPolicy | None]:
    """Return what `find_cpu_manager_policy` finds of each attempt."""
    attempts = zip(requests, num_cpus, qos_classes, num_visible_cores, strict=True)
    return [find_cpu_manager_policy(*attempt) for attempt in attempts]


def find_cpu_manager_policy(
    request: float | None, num_cpus: int | None, qos_class: str | None, num_visible_cores: int | None
) -> CpuManagerPolicy | None:
    """Return the kubelet's CPU manager policy, as far as the cores that the attempt saw give it away; None: unknown.

    `request`: the cores that its container requested; `num_cpus`: those of its node.

    The policy `static` gives a container of a Guaranteed pod that requests whole cores exactly these cores as its
    affinity, and `none` gives it all cores of the node:
    https://kubernetes.io/docs/tasks/administer-cluster/cpu-management-policies/
    """
    if num_visible_cores is None or num_cpus is None or request is None or qos_class != "Guaranteed":
        return None
    if request != int(request) or request >= num_cpus:
        return None
    if num_visible_cores == request:
        return "static"
    return "none" if num_visible_cores == num_cpus else None


STEP_SERIES = ("warmup_step_seconds", "step_seconds", "device_step_seconds")
WORK_FIELDS = ("model", "phase", "precision", "mode", "batch_size", "input_size")
"""What a neighbour may run otherwise than the cell, and every model has."""


def describe_tenants(result: Result) -> Iterator[Row]:
    """Yield the columns of TENANT_COLUMNS of each tenant; nothing of a result without tenants."""
    if result.tenancy is None:
        return
    for record in result.tenancy.tenants:
        cell = result.cell.as_tenant(record.tenant)
        row = cell.model_dump(include=set(WORK_FIELDS)) | _describe_samples(record, cell.batch_size)
        row |= record.model_dump(include={"tenant", "status", "lateness_seconds", "device_memory_bytes"})
        row |= {"alone_cell_id": cell.cell_id, "window_seconds": result.tenancy.window_seconds}
        if record.memory is not None:
            row |= record.memory.model_dump()
        if record.error is not None:
            row |= {"error_kind": record.error.kind, "error_message": record.error.message}
        yield row


def list_series(result: Result) -> Iterator[Row]:
    """Yield the steps of the result itself, as tenant 0's, and those of each further tenant that has any."""
    if result.samples is not None:
        yield _take_series(0, result.samples)
    for record in result.tenancy.tenants if result.tenancy is not None else ():
        if record.tenant > 0 and record.samples is not None:
            yield _take_series(record.tenant, record.samples)


def sum_sample_rates(result: Result) -> float | None:
    """Return the samples that all tenants of a result did in a second; None without tenants, or without their steps."""
    if result.tenancy is None:
        return None
    rates = [
        (record.steps_per_second or 0.0) * result.cell.as_tenant(record.tenant).batch_size
        for record in result.tenancy.tenants
    ]
    return sum(rates) or None


def _take_series(tenant: int, samples: Samples) -> Row:
    return {"tenant": tenant} | {name: getattr(samples, name) for name in STEP_SERIES}


def _describe_samples(record: TenantRecord, batch_size: int) -> Row:
    if record.samples is None:
        return {}
    steps, rate = record.samples.step_seconds, record.steps_per_second
    return {
        "num_warmup_steps_taken": len(record.samples.warmup_step_seconds),
        "num_steps_taken": len(steps),
        "mean_step_seconds": fmean(steps) if steps else None,
        "window_samples_per_s": rate * batch_size if rate is not None else None,
    }
