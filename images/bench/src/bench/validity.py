"""Judges whether a measurement is valid. Every bound is a constant here, with its reason or source."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
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
# A step time that jumps to and fro between two levels, as TensorFlow's do on two cores by 10 to 20% every few seconds,
# is spread, not drift. In a drift the medians of all blocks of the last third lie beyond those of all blocks of the
# first; three blocks a third distinguish the two, of three steps at least, so that no single outlier decides.
BLOCKS_PER_THIRD = 3
MIN_BLOCK_STEPS = 3
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
# limit is measured, not the device. A power limit in force is accepted by itself; the clock that it leaves is judged.
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
# CPU cells: others may use the cores that this cell's threads leave free. A tenth of the cell's threads without a core
# is the size of what runs differ by anyway, and above what an idle desktop does.
MAX_MISSING_SHARE = 0.10
# GPU cells launch kernels from one thread, which sleeps and wakes. It finds a free core at once while any is idle: the
# load of others counts only where less than this share of the machine stays idle, 0.4 of eight cores. And they must
# have a part in it: a tenth of the machine, more than an idle desktop uses beside a cell that fills the cores itself.
MIN_IDLE_SHARE = 0.05
MAX_OTHER_SHARE = 0.10

# over-peak. The float32 and memory figures of a datasheet are those of the highest clocks: nothing passes them. Those
# of tensor cores need not be: Hopper's do 16 operations for each of float32, and are quoted at a lower clock (1830 of
# 1980 MHz on an H100 SXM). What they cannot pass, 16 times the float32 figure, is 8% (SXM, PCIe) to 15% (NVL) more.
# A measured matrix product may miss the CPU's peak by a tenth (libraries reach about 90%), and clocks rise and fall
# between the two measurements.
MAX_SHARE_OF_TABLE_PEAK = 1.0
MAX_SHARE_OF_TENSOR_PEAK = 1.15
MAX_SHARE_OF_MEASURED_PEAK = 1.1

GRAVITY: tuple[Verdict, ...] = get_args(Verdict)


@dataclass(frozen=True, kw_only=True)
class ValidityInputs:
    """Everything that a verdict is based on."""

    cell: Cell
    phases: Phases
    samples: Samples
    device_kind: Device | None
    """Where the last step's output lives; None: not known."""
    num_threads: int
    cpu_use: CpuUse
    gpu_use: Sequence[GpuUse]
    roofline: Roofline | None


def judge_validity(inputs: ValidityInputs) -> Validity:
    """Return the verdict on a measurement: the gravest of all reasons that hold, `valid` without any."""
    found = [Reason(verdict=verdict, message=text) for check in CHECKS for verdict, text in check(inputs)]
    reasons = tuple(sorted(found, key=lambda reason: GRAVITY.index(reason.verdict)))
    verdict = reasons[0].verdict if reasons else "valid"
    return Validity(verdict=verdict, reasons=reasons, unchecked=tuple(_list_unchecked(inputs)))


Found = Iterator[tuple[Verdict, str]]


def _check_device(inputs: ValidityInputs) -> Found:
    asked = inputs.cell.device
    if inputs.device_kind not in (None, asked):
        yield "wrong-device", f"the step's output lives on the {inputs.device_kind}, the cell asks for the {asked}"


def _check_roofline(inputs: ValidityInputs) -> Found:
    roofline = inputs.roofline
    if roofline is None:
        return
    bound = find_peak_bound(inputs.cell)
    if roofline.share_of_peak is not None and roofline.share_of_peak > bound:
        yield (
            "over-peak",
            f"{roofline.share_of_peak:.0%} of the device's peak, more than {bound:.0%}: the work was not done as "
            "counted, or not in the window (Winograd and FFT convolutions do need fewer operations than counted)",
        )
    share = roofline.share_of_roofline
    if roofline.bound == "memory" and share is not None and share > MAX_SHARE_OF_TABLE_PEAK:
        yield (
            "over-peak",
            f"{share:.0%} of what the memory's bandwidth allows, more than {MAX_SHARE_OF_TABLE_PEAK:.0%}",
        )


def _check_gpu_neighbours(inputs: ValidityInputs) -> Found:
    for gpu in inputs.gpu_use:
        if gpu.foreign_processes:
            pids = ", ".join(str(process.pid) for process in gpu.foreign_processes)
            yield "contaminated", f"{gpu.uuid} was computing for others before the start (process {pids})"
        elif (gpu.memory_used_before_bytes or 0) > MAX_FOREIGN_BYTES:
            used, bound = (value / 2**20 for value in (gpu.memory_used_before_bytes or 0, MAX_FOREIGN_BYTES))
            yield "contaminated", f"{used:.0f} MiB of {gpu.uuid} were in use before the start, more than {bound:.0f}"


def _check_cpu_neighbours(inputs: ValidityInputs) -> Found:
    use = inputs.cpu_use
    busy = f"others kept {use.other_cores or 0.0:.1f} of {use.num_machine_cores} cores busy"
    if inputs.cell.device == "cpu":
        needed = inputs.num_threads  # they wait for the slowest among them
        if is_short_of_cores(use, needed):
            missing = count_missing_cores(use, needed)
            yield (
                "contaminated",
                f"{busy}: of the {needed} that the cell needs {missing:.1f} were missing, more than "
                f"{MAX_MISSING_SHARE:.0%}",
            )
        return
    others = (use.other_cores or 0.0) / use.num_machine_cores
    idle = 1 - use.own_cores / use.num_machine_cores - others
    if others > MAX_OTHER_SHARE and idle < MIN_IDLE_SHARE:
        yield (
            "contaminated",
            f"{busy}: {max(0.0, idle):.0%} of the machine were idle, less than {MIN_IDLE_SHARE:.0%}, so that the "
            "thread that launches the GPU's work had to wait for a core",
        )


def _check_clocks(inputs: ValidityInputs) -> Found:
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


def _check_quota(inputs: ValidityInputs) -> Found:
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


def _check_length(inputs: ValidityInputs) -> Found:
    num_steps, seconds = len(inputs.samples.step_seconds), inputs.phases.steady_seconds or 0.0
    if seconds < MIN_WINDOW_SECONDS:
        yield "too-short", f"the timed window lasted {seconds:.2f} s, less than {MIN_WINDOW_SECONDS} s"
    if num_steps < (MIN_STEPS if seconds < MIN_LONG_WINDOW_SECONDS else MIN_LONG_STEPS):
        yield (
            "too-short",
            f"{num_steps} steps in {seconds:.1f} s: it takes {MIN_STEPS}, or {MIN_LONG_STEPS} in "
            f"{MIN_LONG_WINDOW_SECONDS:.0f} s",
        )


def _check_drift(inputs: ValidityInputs) -> Found:
    if not inputs.samples.reached_steady:
        yield "not-steady", "the warm-up ended at its time limit, before the series was steady"
    steps = inputs.samples.step_seconds
    drift, bound = measure_drift(steps), find_drift_bound(steps)
    if abs(drift) > bound and are_thirds_apart(steps):
        yield "not-steady", f"the last third of the window is {drift:+.1%} off the first, more than {bound:.1%}"


def _check_spread(inputs: ValidityInputs) -> Found:
    spread = measure_spread(inputs.samples.step_seconds)
    if spread > MAX_SPREAD:
        yield "noisy", f"steps spread by {spread:.0%} around their median, more than {MAX_SPREAD:.0%}"


CHECKS = (
    _check_device,
    _check_roofline,
    _check_gpu_neighbours,
    _check_cpu_neighbours,
    _check_clocks,
    _check_quota,
    _check_length,
    _check_drift,
    _check_spread,
)


def find_peak_bound(cell: Cell) -> float:
    """Return the share of the peak in `bench.peaks`, or of the host's measured one, that a cell can reach at most."""
    if cell.device == "cpu":
        return MAX_SHARE_OF_MEASURED_PEAK
    return MAX_SHARE_OF_TABLE_PEAK if cell.precision == "fp32" else MAX_SHARE_OF_TENSOR_PEAK


def count_missing_cores(use: CpuUse, needed: float) -> float:
    """Return how many of the `needed` cores others left none for; 0 or less where there were enough, or not known."""
    return needed + (use.other_cores or 0.0) - use.num_machine_cores


def is_short_of_cores(use: CpuUse, needed: float) -> bool:
    """Return whether others kept `needed` threads from their cores, by more than MAX_MISSING_SHARE of them."""
    return count_missing_cores(use, needed) > MAX_MISSING_SHARE * needed


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


def are_thirds_apart(steps: Sequence[float]) -> bool:
    """Return whether all blocks of the last third lie on one side of all blocks of the first; also for few steps."""
    third = len(steps) // 3
    if third < BLOCKS_PER_THIRD * MIN_BLOCK_STEPS:
        return True
    first, last = _list_block_medians(steps[:third]), _list_block_medians(steps[-third:])
    return max(first) < min(last) or max(last) < min(first)


def find_drift_bound(steps: Sequence[float]) -> float:
    """Return the drift from which on chance does not explain it, at least MAX_DRIFT."""
    third = len(steps) // 3
    if third == 0:
        return MAX_DRIFT
    differences = [abs(later - step) for step, later in pairwise(steps)]
    deviation = DIFFERENCE_TO_DEVIATION * median(differences) / median(steps)
    return max(MAX_DRIFT, float(DRIFT_STANDARD_ERRORS * deviation / third**0.5))


def _list_block_medians(steps: Sequence[float]) -> list[float]:
    ends = [number * len(steps) // BLOCKS_PER_THIRD for number in range(BLOCKS_PER_THIRD + 1)]
    return [median(steps[start:end]) for start, end in pairwise(ends)]


def _list_unchecked(inputs: ValidityInputs) -> Iterator[str]:
    gpus = inputs.gpu_use
    if inputs.cell.device == "gpu" and not (gpus and all(gpu.sm_clock_mhz and gpu.max_sm_clock_mhz for gpu in gpus)):
        yield "clocks of the GPU not observed"


def _list_reasons(gpu: GpuUse) -> str:
    reasons = (f"{name} in {share:.0%} of samples" for name, share in gpu.throttle_reasons.items())
    return ", ".join(reasons) or "no reason given"
