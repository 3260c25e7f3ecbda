"""The verdict on a measurement: what was measured and what was seen around it in, a Validity with its reasons out."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from statistics import median
from typing import get_args

from bench.probes.nvml import HARDWARE_POWER_BRAKE, HARDWARE_SLOWDOWN, HARDWARE_THERMAL, SOFTWARE_THERMAL
from bench.schema import Cell, CpuUse, Device, GpuUse, Phases, Reason, Roofline, Samples, Validity, Verdict

# noisy. Identical runs differ by up to 10% (TorchBench, issue 1681): steps that spread further inside one run, by the
# median absolute deviation scaled to a standard deviation, say little about anything smaller. The median absolute
# deviation leaves single outliers alone: a laptop has them.
MAX_SPREAD = 0.10
MAD_TO_DEVIATION = 1.4826

# not-steady. As the warm-up's own bound (bench.harness.STEADY_TOLERANCE): below it no drift is worth reporting.
MAX_DRIFT = 0.05
# Medians of few noisy steps differ by chance: a drift counts from three standard errors on, one false alarm in 370.
# A median's standard error is 1.2533 deviations over the root of the number of steps; two of them are compared.
DRIFT_STANDARD_ERRORS = 3 * 1.2533 * 2**0.5
# The deviation of steps from the median of |step - step before|, which a drift does not raise: 1 / (0.6745 sqrt 2).
DIFFERENCE_TO_DEVIATION = 1.0483

# too-short. Below half a second a window sees one state of clocks, scheduler and neighbours (nvbench asks for as much);
# fewer than ten steps give no spread worth the name, unless they are so long that three fill five seconds.
MIN_WINDOW_SECONDS = 0.5
MIN_STEPS = 10
MIN_LONG_STEPS = 3
MIN_LONG_WINDOW_SECONDS = 5.0

# throttled. nvbench discards what ran below 75% of the clock (NVIDIA/nvbench, pull request 231): then heat or the power
# limit is measured, not the device. A power limit in force is no fault by itself; the clock that it leaves is judged.
MIN_CLOCK_SHARE = 0.75
# What cooling or supply force on a device makes it faulty at any clock. One sample in twenty may catch a passing one.
FAULTY_REASONS = (SOFTWARE_THERMAL, HARDWARE_SLOWDOWN, HARDWARE_THERMAL, HARDWARE_POWER_BRAKE)
MAX_FAULTY_SHARE = 0.05
# Time that threads stood still because the CPU quota was used up, over the time they had. Not the share of periods that
# were cut: as many busy threads as the quota has cores run into it in every period, for an instant.
MAX_THROTTLED_SHARE = 0.05

# contaminated. A CUDA context alone takes more than this on any GPU; what a display or a driver keeps takes less.
# Bytes count where the processes behind them cannot be seen, as in most containers.
MAX_FOREIGN_BYTES = 100 * 2**20
# CPU: others may use the cores that this cell's threads leave free. A tenth of the cell's threads without a core is the
# size of what runs differ by anyway, and above what an idle desktop does.
MAX_MISSING_SHARE = 0.10

# over-peak. A datasheet's figure is a bound of physics. A measured matrix product is not: it may miss the CPU's peak by
# a tenth (libraries reach about 90%), and clocks rise and fall between the two measurements.
MAX_SHARE_OF_TABLE_PEAK = 1.0
MAX_SHARE_OF_MEASURED_PEAK = 1.1

GRAVITY: tuple[Verdict, ...] = get_args(Verdict)


@dataclass(frozen=True, kw_only=True)
class Evidence:
    """All that a verdict rests on."""

    cell: Cell
    phases: Phases
    samples: Samples
    device_kind: Device | None
    """Where the last step's output lives; None: not known."""
    num_threads: int
    cpu_use: CpuUse
    gpu_use: Sequence[GpuUse]
    roofline: Roofline | None


def judge(evidence: Evidence) -> Validity:
    """Return the verdict on a measurement: the gravest of all reasons that hold, `valid` without any."""
    found = [Reason(verdict=verdict, message=text) for check in CHECKS for verdict, text in check(evidence)]
    reasons = tuple(sorted(found, key=lambda reason: GRAVITY.index(reason.verdict)))
    return Validity(verdict=reasons[0].verdict if reasons else "valid", reasons=reasons)


Found = Iterator[tuple[Verdict, str]]


def _check_device(evidence: Evidence) -> Found:
    asked = evidence.cell.device
    if evidence.device_kind not in (None, asked):
        yield "wrong-device", f"the step's output lives on the {evidence.device_kind}, the cell asks for the {asked}"


def _check_roofline(evidence: Evidence) -> Found:
    roofline = evidence.roofline
    if roofline is None:
        return
    bound = MAX_SHARE_OF_TABLE_PEAK if evidence.cell.device == "gpu" else MAX_SHARE_OF_MEASURED_PEAK
    if roofline.share_of_peak is not None and roofline.share_of_peak > bound:
        yield (
            "over-peak",
            f"{roofline.share_of_peak:.0%} of the device's peak, more than {bound:.0%}: the work was not done as "
            "counted, or not in the window (Winograd and FFT convolutions do need fewer operations than counted)",
        )
    share = roofline.share_of_roofline
    if roofline.bound == "memory" and share is not None and share > bound:
        yield "over-peak", f"{share:.0%} of what the memory's bandwidth allows, more than {bound:.0%}"


def _check_neighbours(evidence: Evidence) -> Found:
    for gpu in evidence.gpu_use:
        if gpu.foreign_processes:
            pids = ", ".join(str(process.pid) for process in gpu.foreign_processes)
            yield "contaminated", f"{gpu.uuid} was computing for others before the start (process {pids})"
        elif (gpu.memory_used_before_bytes or 0) > MAX_FOREIGN_BYTES:
            used, bound = (value / 2**20 for value in (gpu.memory_used_before_bytes or 0, MAX_FOREIGN_BYTES))
            yield "contaminated", f"{used:.0f} MiB of {gpu.uuid} were in use before the start, more than {bound:.0f}"
    use = evidence.cpu_use
    # A GPU cell needs the cores that it uses; the threads of a CPU cell wait for the slowest among them.
    needed = evidence.num_threads if evidence.cell.device == "cpu" else use.own_cores
    missing = needed + (use.other_cores or 0.0) - use.num_machine_cores
    if missing > MAX_MISSING_SHARE * needed:
        yield (
            "contaminated",
            f"others kept {use.other_cores:.1f} of {use.num_machine_cores} cores busy: of the {needed:.1f} that the "
            f"cell needs {missing:.1f} were missing, more than {MAX_MISSING_SHARE:.0%}",
        )


def _check_clocks(evidence: Evidence) -> Found:
    for gpu in evidence.gpu_use:
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


def _check_quota(evidence: Evidence) -> Found:
    use = evidence.cpu_use
    if use.throttled_seconds is None:
        return
    share = use.throttled_seconds / (use.window_seconds * evidence.num_threads)
    if share > MAX_THROTTLED_SHARE:
        yield (
            "throttled",
            f"the CPU quota stopped the threads for {share:.0%} of their time, more than {MAX_THROTTLED_SHARE:.0%} "
            f"(in {use.num_throttled_periods} of {use.num_periods} periods)",
        )


def _check_length(evidence: Evidence) -> Found:
    num_steps, seconds = len(evidence.samples.step_seconds), evidence.phases.steady_seconds or 0.0
    if seconds < MIN_WINDOW_SECONDS:
        yield "too-short", f"the timed window lasted {seconds:.2f} s, less than {MIN_WINDOW_SECONDS} s"
    if num_steps < (MIN_STEPS if seconds < MIN_LONG_WINDOW_SECONDS else MIN_LONG_STEPS):
        yield (
            "too-short",
            f"{num_steps} steps in {seconds:.1f} s: it takes {MIN_STEPS}, or {MIN_LONG_STEPS} in "
            f"{MIN_LONG_WINDOW_SECONDS:.0f} s",
        )


def _check_drift(evidence: Evidence) -> Found:
    if not evidence.samples.reached_steady:
        yield "not-steady", "the warm-up ended at its time limit, before the series was steady"
    steps = evidence.samples.step_seconds
    drift, bound = measure_drift(steps), find_drift_bound(steps)
    if abs(drift) > bound:
        yield "not-steady", f"the last third of the window is {drift:+.1%} off the first, more than {bound:.1%}"


def _check_spread(evidence: Evidence) -> Found:
    spread = measure_spread(evidence.samples.step_seconds)
    if spread > MAX_SPREAD:
        yield "noisy", f"steps spread by {spread:.0%} around their median, more than {MAX_SPREAD:.0%}"


CHECKS = (
    _check_device,
    _check_roofline,
    _check_neighbours,
    _check_clocks,
    _check_quota,
    _check_length,
    _check_drift,
    _check_spread,
)


def measure_spread(steps: Sequence[float]) -> float:
    """Return the standard deviation that the median absolute deviation stands for, over the median."""
    middle = median(steps)
    return MAD_TO_DEVIATION * median(abs(step - middle) for step in steps) / middle


def measure_drift(steps: Sequence[float]) -> float:
    """Return how much longer the median of the last third is than that of the first, over the latter; 0 below three."""
    third = len(steps) // 3
    if third == 0:
        return 0.0
    first, last = median(steps[:third]), median(steps[-third:])
    return float((last - first) / first)


def find_drift_bound(steps: Sequence[float]) -> float:
    """Return the drift from which on chance does not explain it, at least MAX_DRIFT."""
    third = len(steps) // 3
    if third == 0:
        return MAX_DRIFT
    differences = [abs(later - step) for step, later in zip(steps, steps[1:], strict=False)]
    deviation = DIFFERENCE_TO_DEVIATION * median(differences) / median(steps)
    return max(MAX_DRIFT, float(DRIFT_STANDARD_ERRORS * deviation / third**0.5))


def _list_reasons(gpu: GpuUse) -> str:
    reasons = (f"{name} in {share:.0%} of samples" for name, share in gpu.throttle_reasons.items())
    return ", ".join(reasons) or "no reason given"
