"""Checks that nothing held the device or the threads back: throttled."""

from collections.abc import Iterator
from statistics import median

from bench.probes.nvml import HARDWARE_POWER_BRAKE, HARDWARE_SLOWDOWN, HARDWARE_THERMAL, SOFTWARE_THERMAL
from bench.schema import GpuUse
from bench.validity.inputs import Found, ValidityInputs

# throttled. nvbench discards what ran below 75% of the clock (NVIDIA/nvbench, pull request 231): then heat or the power
# limit is measured, not the device. A power limit in force is accepted by itself; the clock that it leaves is judged.
MIN_CLOCK_SHARE = 0.75
# What cooling or supply force on a device makes it faulty at any clock. One sample in twenty may catch a passing one.
FAULTY_REASONS = (SOFTWARE_THERMAL, HARDWARE_SLOWDOWN, HARDWARE_THERMAL, HARDWARE_POWER_BRAKE)
MAX_FAULTY_SHARE = 0.05
# Time that threads stood still because the CPU quota was used up, over the time they had. Not the share of periods that
# were cut: as many busy threads as the quota has cores run into it in every period, for an instant.
MAX_THROTTLED_SHARE = 0.05


def check_clocks(inputs: ValidityInputs) -> Found:
    """Yield throttled where a GPU ran at a low clock, or heat or supply held it back."""
    for gpu in inputs.gpu_use:
        if gpu.sm_clock_mhz and gpu.max_sm_clock_mhz:
            share = median(gpu.sm_clock_mhz) / gpu.max_sm_clock_mhz
            if share < MIN_CLOCK_SHARE:
                yield (
                    "throttled",
                    f"{gpu.uuid} ran at {share:.0%} of its {gpu.max_sm_clock_mhz} MHz, less than {MIN_CLOCK_SHARE:.0%}"
                    f" ({_list_reasons(gpu)})",
                )
        for name in FAULTY_REASONS:
            if gpu.throttle_reasons.get(name, 0.0) > MAX_FAULTY_SHARE:
                seen = gpu.throttle_reasons[name]
                yield "throttled", f"{gpu.uuid}: {name} in {seen:.0%} of samples, more than {MAX_FAULTY_SHARE:.0%}"


def list_unchecked_clocks(inputs: ValidityInputs) -> Iterator[str]:
    """Yield what could not be seen of the clocks."""
    gpus = inputs.gpu_use
    if inputs.cell.device == "gpu" and not (gpus and all(gpu.sm_clock_mhz and gpu.max_sm_clock_mhz for gpu in gpus)):
        yield "clocks of the GPU not observed"


def check_quota(inputs: ValidityInputs) -> Found:
    """Yield throttled where the CPU quota stopped the threads."""
    use = inputs.cpu_use
    if use.throttled_seconds is None:
        return
    share = use.throttled_seconds / (use.window_seconds * inputs.num_threads)
    if share > MAX_THROTTLED_SHARE:
        yield (
            "throttled",
            f"the CPU quota stopped the threads for {share:.0%} of their time, more than {MAX_THROTTLED_SHARE:.0%} "
            f"(in {use.num_throttled_periods} of {use.num_periods} periods)",
        )


def _list_reasons(gpu: GpuUse) -> str:
    reasons = (f"{name} in {share:.0%} of samples" for name, share in gpu.throttle_reasons.items())
    return ", ".join(reasons) or "no reason given"
