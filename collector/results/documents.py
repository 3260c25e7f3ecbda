"""Turn the JSON documents of a run into rows, each checked against the key that it was found under."""

import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import lru_cache
from statistics import fmean, median
from typing import NamedTuple

import numpy as np

from bench.registry import FRAMEWORKS
from bench.schema import (
    CompiledPrograms,
    DeviceProfile,
    Environment,
    Framework,
    GpuUse,
    InvalidDocumentError,
    Phases,
    Result,
    Samples,
    Tenancy,
    read_document,
    read_placement,
    read_result,
)
from bench.store import ResultKey, parse_placement_key, parse_result_key, placements_prefix, results_prefix
from collector.results.frames import (
    ATTEMPTS,
    IDENTITY,
    PATHS,
    PLACEMENT_COLUMNS,
    PLACEMENTS,
    STEP_SERIES,
    Row,
    describe_cell,
)
from collector.results.hosts import identify_environment, identify_hardware, join_ids, name_machine


class Kind(NamedTuple):
    """A kind of document: where a run has them, and the row that each becomes."""

    table: str
    find_prefix: Callable[[str], str]
    parse_key: Callable[[str], ResultKey | None]
    describe: Callable[[bytes, ResultKey], Row]
    """Raises InvalidDocumentError."""
    noun: str


def _describe_attempt(data: bytes, key: ResultKey) -> Row:
    result = read_result(data)
    for name in IDENTITY:
        held, expected = getattr(result, name), getattr(key, name)
        if held != expected:
            raise InvalidDocumentError(f"{name} is '{held}' inside, '{expected}' in its key")
    row = describe_cell(result.cell) | describe_result(result)
    if result.samples is not None:
        row |= _list_series(result.samples)
    if result.environment is not None:
        text = result.environment.model_dump_json()
        row |= describe_environment(text, result.cell.framework) | {"environment": text}
    return row | {"tenant_records": list(describe_tenants(result)) or None}


def _describe_placement(data: bytes, key: ResultKey) -> Row:
    placement = read_placement(data)
    row = placement.model_dump(include={*IDENTITY})
    if ResultKey(**row) != key:
        raise InvalidDocumentError("the placement is of another attempt than its key says")
    row |= placement.model_dump(include={"node_name", "image_id"})
    row["other_containers"] = ", ".join(placement.other_containers) or None
    if placement.node is not None:
        row |= placement.node.model_dump(include={*PLACEMENT_COLUMNS})
    return row


RESULT_KIND = Kind(ATTEMPTS, results_prefix, parse_result_key, _describe_attempt, "result")
PLACEMENT_KIND = Kind(PLACEMENTS, placements_prefix, parse_placement_key, _describe_placement, "placement")

NO_REASON = "none"
"""What is said of a GPU whose driver was asked why its clock was lowered, and gave no reason."""
RESULT_PATHS = {name: path for name, path in PATHS.items() if path[0] != "environment"}
ENVIRONMENT_PATHS = {name: path[1:] for name, path in PATHS.items() if path[0] == "environment"}
FRAMEWORK_PACKAGES: dict[Framework, str] = {name: framework.package for name, framework in FRAMEWORKS.items()}


def read_fields(document: object, paths: Mapping[str, Sequence[str]]) -> Row:
    """Follow each path of attribute names into a document; return what it leads to, None where a part is missing."""
    row: Row = {}
    for name, path in paths.items():
        value = document
        for field in path:
            value = getattr(value, field, None)
        row[name] = value
    return row


def describe_result(result: Result) -> Row:
    """Return the columns of RESULT_COLUMNS that follow from one result alone, less those of its cell and environment.

    What the result does not say is missing or None.
    """
    row = read_fields(result, RESULT_PATHS) | _describe_steps(result)
    if result.compiled_programs is not None:
        row |= _describe_start(result.phases, result.compiled_programs)
    batch_size, validity = result.cell.batch_size, result.validity
    if validity is not None:
        row["fault_verdicts"] = " ".join(reason.verdict for reason in validity.reasons)
        row["verdict_reasons"] = "; ".join(reason.message for reason in validity.reasons) or None
        row |= {name: "; ".join(getattr(validity, name)) or None for name in ("unchecked", "notes")}
    if (use := result.cpu_use) is not None:
        row["cpu_throttled_share"] = _divide(use.num_throttled_periods, use.num_periods)
        # The energy is the machine's, and so that of all tenants: they share it by their samples in the timed window.
        rate, num_steps = sum_sample_rates(result), row.get("num_steps_taken", 0)
        num_samples = rate * use.window_seconds if rate else num_steps * batch_size
        row["cpu_energy_per_sample_joules"] = _divide(use.energy_joules, num_samples)
    if result.host_peak is not None:
        products = (result.host_peak.before_flops_per_second, result.host_peak.after_flops_per_second)
        row["cpu_product_flops_per_second"] = max(filter(None, products), default=None)
    if result.gpu_use:
        row |= _describe_gpus(result.gpu_use, batch_size)
        if result.tenancy is not None:
            row |= _describe_shared_gpu(result.gpu_use[0], result.tenancy, sum_sample_rates(result))
    if result.device_profile is not None:
        row |= _describe_profile(result.device_profile)
    return row


def _describe_start(phases: Phases, programs: CompiledPrograms) -> Row:
    seconds = _add((phases.import_seconds, phases.build_seconds, phases.first_step_seconds))
    is_warm = programs.num_loaded > 0 and programs.num_compiled == 0
    name = "warm_start_seconds" if is_warm else "cold_start_seconds"
    return {name: seconds} if is_warm or programs.num_loaded == 0 else {}  # partly warm is neither


def _describe_steps(result: Result) -> Row:
    row: Row = {}
    if (samples := result.samples) is not None:
        row = _count_steps(samples)
        row["median_step_seconds"] = float(np.median(samples.step_seconds))
        row["mean_step_seconds"] = fmean(samples.step_seconds or [math.nan])
        if samples.data_wait_seconds:
            row["data_wait_share"] = sum(samples.data_wait_seconds) / sum(samples.step_seconds)
    if result.pipelined is not None:
        row["pipelined_samples_per_s"] = result.cell.batch_size / result.pipelined.step_seconds
    if result.sustained is not None:
        windows = result.sustained.window_step_seconds
        row |= {"first_sustained_step_seconds": windows[0], "settled_step_seconds": windows[-1]}
    return row


@lru_cache(maxsize=1024)
def describe_environment(text: str, framework: Framework) -> Row:
    """Return the columns of a result of this framework that its environment (JSON) says: most of a run share theirs."""
    environment = read_document(Environment, text.encode())
    gpu_uuid = join_ids(gpu.uuid for gpu in environment.gpus)
    return read_fields(environment, ENVIRONMENT_PATHS) | {
        "environment_id": identify_environment(environment),
        "hardware_id": identify_hardware(environment),
        "gpu_uuid": gpu_uuid,
        "lasting_ids": join_ids(environment.identity.lasting_ids) if environment.identity else None,
        "host": environment.hostname,
        "machine": name_machine(environment.hostname, gpu_uuid),
        "framework_version": environment.versions.get(FRAMEWORK_PACKAGES[framework]),
        "cuda_graph": graph if isinstance(graph := environment.settings.get("cuda_graph"), bool) else None,
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
        "profiled_step_seconds": median(profile.step_seconds[1:] or profile.step_seconds),
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


WORK_FIELDS = ("model", "phase", "precision", "mode", "batch_size", "input_size")
"""What a neighbour may run otherwise than the cell, and every model has."""


def describe_tenants(result: Result) -> Iterator[Row]:
    """Yield the columns of RECORD_COLUMNS of each tenant; nothing of a result without tenants."""
    if result.tenancy is None:
        return
    for record in result.tenancy.tenants:
        cell = result.cell.as_tenant(record.tenant)
        row = cell.model_dump(include=set(WORK_FIELDS))
        row |= record.model_dump(include={"tenant", "status", "lateness_seconds", "device_memory_bytes"})
        row |= {"alone_cell_id": cell.cell_id, "window_seconds": result.tenancy.window_seconds}
        if record.samples is not None:
            rate = record.steps_per_second
            row |= _count_steps(record.samples)
            row["mean_step_seconds"] = fmean(record.samples.step_seconds) if record.samples.step_seconds else None
            row["window_samples_per_s"] = None if rate is None else rate * cell.batch_size
            if record.tenant:
                row |= _list_series(record.samples)
        if record.memory is not None:
            row |= record.memory.model_dump()
        if record.error is not None:
            row |= {"error_kind": record.error.kind, "error_message": record.error.message}
        yield row


def sum_sample_rates(result: Result) -> float | None:
    """Return the samples that all tenants of a result did in a second; None without tenants, or without their steps."""
    if result.tenancy is None:
        return None
    rates = [
        (record.steps_per_second or 0.0) * result.cell.as_tenant(record.tenant).batch_size
        for record in result.tenancy.tenants
    ]
    return sum(rates) or None


def _count_steps(samples: Samples) -> Row:
    return {"num_warmup_steps_taken": len(samples.warmup_step_seconds), "num_steps_taken": len(samples.step_seconds)}


def _list_series(samples: Samples) -> Row:
    return {name: getattr(samples, name) for name in STEP_SERIES}
