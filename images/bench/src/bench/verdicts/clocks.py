"""Checks that nothing faulty or set by somebody held a GPU's clock down: throttled; and says what did otherwise.

A card at its power limit is not broken: T4, L4 and A10G run there under any heavy work, and an H200 runs a large bf16
product at 73 % of its highest clock. So a low clock alone proves nothing (docs/decisions/0009-conditions.md).
"""

from collections.abc import Iterator
from statistics import median

from bench.probes.nvml import (
    APPLICATIONS_CLOCKS,
    GPU_IDLE,
    HARDWARE_POWER_BRAKE,
    HARDWARE_SLOWDOWN,
    HARDWARE_THERMAL,
    SOFTWARE_POWER_CAP,
    SOFTWARE_THERMAL,
    THERMAL_POLICY,
)
from bench.schema import GpuUse
from bench.verdicts.inputs import ValidityInputs

# throttled. What cooling or supply force on a device makes it faulty at any clock. One sample in twenty may catch a
# passing one.
FAULTY_REASONS = (SOFTWARE_THERMAL, HARDWARE_SLOWDOWN, HARDWARE_THERMAL, HARDWARE_POWER_BRAKE)
MAX_FAULTY_SHARE = 0.05
# throttled. Power grows faster than the clock: a limit that is 1% lower costs less than 1% of the clock, below what is
# worth reporting. Limits are set in whole watts and read in milliwatts; this covers their rounding, too.
MAX_LIMIT_LOSS = 0.01
# throttled. Below 75% of the highest clock (the bound of nvbench, NVIDIA/nvbench pull request 231) something must
# explain the clock: most of the slow samples must name the power cap, the device's own default, or idleness.
MIN_CLOCK_SHARE = 0.75
MIN_EXPLAINED_SHARE = 0.5
# A device that has a kernel running less than half of the time has no reason to raise its clock: the work is bound by
# what launches it.
MAX_IDLE_UTILIZATION = 0.5
# A note. The difference between repeats that is worth reporting, as elsewhere (bench.measure.harness.STEADY_TOLERANCE).
MAX_UNNOTED_LOSS = 0.05


def check_clocks(inputs: ValidityInputs) -> Iterator[str]:
    for gpu in inputs.gpu_use:
        for name in FAULTY_REASONS:
            seen = gpu.throttle_reasons.get(name, 0.0)
            if seen > MAX_FAULTY_SHARE:
                yield f"{gpu.uuid}: {name} in {seen:.0%} of samples, more than {MAX_FAULTY_SHARE:.0%}"
        held = gpu.window.held_seconds.get(THERMAL_POLICY, 0.0) / gpu.window.seconds if gpu.window else 0.0
        if held > MAX_FAULTY_SHARE:
            much = f"{held:.0%} of the timed window, more than {MAX_FAULTY_SHARE:.0%}"
            yield f"{gpu.uuid}: heat held its clock down in {much}"
        for words, limit, default, unit in (
            ("power limit", gpu.power_limit_watts, gpu.default_power_limit_watts, "W"),
            (APPLICATIONS_CLOCKS, gpu.application_clock_mhz, gpu.default_application_clock_mhz, "MHz"),
        ):
            if limit is not None and default and limit < default * (1 - MAX_LIMIT_LOSS):
                yield f"{gpu.uuid}: its {words} is {limit:g} {unit}, lowered from the default of {default:g} {unit}"
        share = measure_clock_share(gpu)
        if share is not None and share < MIN_CLOCK_SHARE and explain_low_clock(gpu) is None:
            yield (
                f"{gpu.uuid} ran at {_describe_clock(gpu, share)}, less than {MIN_CLOCK_SHARE:.0%}, and neither the "
                f"power cap nor idleness explains it ({_list_reasons(gpu)}); NVML does not report clocks that were "
                "locked"
            )


def note_clocks(inputs: ValidityInputs) -> Iterator[str]:
    for gpu in inputs.gpu_use:
        share = measure_clock_share(gpu)
        if share is not None and share < 1 - MAX_UNNOTED_LOSS:
            reason = explain_low_clock(gpu)
            if reason is not None or share >= MIN_CLOCK_SHARE:
                yield f"{_name(gpu, inputs)} ran at {_describe_clock(gpu, share)}: {reason or _list_reasons(gpu)}"
        if gpu.window is not None and gpu.window.sm_clock_mhz and gpu.sm_clock_mhz:
            timed, sampled = median(gpu.window.sm_clock_mhz), median(gpu.sm_clock_mhz)
            if abs(timed - sampled) > MAX_UNNOTED_LOSS * sampled:
                clocks = f"{timed:.0f} MHz in the timed window, at {sampled:.0f} MHz in the sampling pass"
                yield f"{_name(gpu, inputs)} ran at {clocks}"
        limit, default = gpu.power_limit_watts, gpu.default_power_limit_watts
        if limit is not None and default and limit > default * (1 + MAX_LIMIT_LOSS):
            yield f"{_name(gpu, inputs)} may take {limit:g} W, by default {default:g} W"


def list_unchecked_clocks(inputs: ValidityInputs) -> Iterator[str]:
    if inputs.cell.device != "gpu":
        return
    gpus = inputs.gpu_use
    if any(gpu.is_slice for gpu in gpus):
        yield "a MIG slice shares clocks, heat and power with the other slices of its GPU: none of them observed"
        return
    if not gpus or not all(gpu.sm_clock_mhz and gpu.max_sm_clock_mhz for gpu in gpus):
        yield "clocks of the GPU not observed"
    elif not all(gpu.sample_reasons for gpu in gpus):
        yield "what holds the clock of the GPU down not observed"
    if gpus and not all(gpu.power_limit_watts and gpu.default_power_limit_watts for gpu in gpus):
        yield "power limit of the GPU, or its default one, not known"
    if any((gpu.application_clock_mhz is None) != (gpu.default_application_clock_mhz is None) for gpu in gpus):
        yield "clock that applications are set to, or its default one, not known"
    windows = [gpu.window for gpu in gpus if gpu.window is not None]
    if any(window.held_seconds and THERMAL_POLICY not in window.held_seconds for window in windows):
        yield "for how long heat held the clock of the GPU down in the timed window not known"


def measure_clock_share(gpu: GpuUse) -> float | None:
    """Divide the GPU's median clock while it computed by its highest clock; None where one of them is not known."""
    return median(gpu.sm_clock_mhz) / gpu.max_sm_clock_mhz if gpu.sm_clock_mhz and gpu.max_sm_clock_mhz else None


def explain_low_clock(gpu: GpuUse) -> str | None:
    """Return why a healthy device ran below its highest clock: power cap, own default, idleness; None for none."""
    capped = _find_share_when_slow(gpu, SOFTWARE_POWER_CAP)
    if capped > MIN_EXPLAINED_SHARE:
        return f"power-limited, {SOFTWARE_POWER_CAP} in {capped:.0%} of the slower samples"
    setting = gpu.application_clock_mhz
    is_default = setting is not None and setting == gpu.default_application_clock_mhz
    if is_default and _find_share_when_slow(gpu, APPLICATIONS_CLOCKS) > MIN_EXPLAINED_SHARE:
        return f"{APPLICATIONS_CLOCKS} of {setting} MHz, as the device has it by default"
    idle = _find_share_when_slow(gpu, GPU_IDLE)
    if idle > MIN_EXPLAINED_SHARE:
        return f"{GPU_IDLE} in {idle:.0%} of the slower samples"
    if gpu.utilization and median(gpu.utilization) < MAX_IDLE_UTILIZATION:
        return f"a kernel was running for {median(gpu.utilization):.0%} of the time only"
    return None


def _find_share_when_slow(gpu: GpuUse, reason: str) -> float:
    """Return the share of the samples at or below the median clock that gave `reason`; 0 where none can be read."""
    if not gpu.sample_reasons:
        return 0.0
    middle = median(gpu.sm_clock_mhz)
    slow = [given for clock, given in zip(gpu.sm_clock_mhz, gpu.sample_reasons, strict=True) if clock <= middle]
    return sum(reason in given for given in slow) / len(slow)


def _name(gpu: GpuUse, inputs: ValidityInputs) -> str:
    """Return words that are the same in all repeats of a cell on one GPU."""
    return gpu.uuid if len(inputs.gpu_use) > 1 else "the GPU"


def _describe_clock(gpu: GpuUse, share: float) -> str:
    return f"{share:.0%} of its {gpu.max_sm_clock_mhz} MHz"


def _list_reasons(gpu: GpuUse) -> str:
    reasons = (f"{name} in {share:.0%} of samples" for name, share in gpu.throttle_reasons.items())
    return ", ".join(reasons) or f"NVML {'gives no reason' if gpu.sample_reasons else 'cannot be asked for reasons'}"
