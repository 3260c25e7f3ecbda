"""Flatten what a Result says of its conditions into columns: verdict, roofline, CPUs, GPUs.

Base units: seconds, bytes, joules, watts, FLOP/s; shares from 0 to 1. GPUs of one cell are taken together: power,
its limits and energy are summed, of clocks the slowest GPU counts, of temperatures and memory the largest.
"""

from collections.abc import Iterable, Sequence
from statistics import median
from typing import Any

from bench.schema import Calibration, CpuUse, DeviceProfile, GpuUse, HostPeak, Result, Roofline, Tenancy
from collector.results.tenancy import sum_sample_rates

Row = dict[str, Any]

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
