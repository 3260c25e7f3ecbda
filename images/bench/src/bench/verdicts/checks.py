"""Checks a measurement, each for one verdict; says what could not be checked, and what else a reader should know.

A card at its power limit is not broken: T4, L4 and A10G run there under any heavy work, and an H200 runs a large bf16
product at 73 % of its highest clock. So a low clock alone proves nothing (docs/decisions/0009-conditions.md).
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from statistics import fmean, median

from bench.measure.harness import STEADY_NUM_QUEUES
from bench.measure.levels import MAD_TO_DEVIATION, find_levels
from bench.probes import nvml
from bench.schema import Cell, CpuUse, Device, GpuUse, HostPeak, Phases, Roofline, Samples


@dataclass(frozen=True, kw_only=True)
class ValidityInputs:
    """Everything that a verdict is based on."""

    cell: Cell
    phases: Phases
    samples: Samples
    device_kind: Device | None
    """Where the last step's output lives; None: not known."""
    num_threads: int
    cpu_use: CpuUse | None
    """None: could not be read."""
    gpu_use: Sequence[GpuUse]
    roofline: Roofline | None
    is_under_mps: bool = False
    """Whether the GPU is used through MPS, whose server may have been there before with memory of its own."""
    is_compiled: bool | None = None
    """Whether the steps ran as programs that the framework made of them; None: not known."""
    host_peak: HostPeak | None = None
    """Of a CPU cell."""


# over-peak. The float32 and memory figures of a datasheet are those of the highest clocks: nothing passes them, unless
# the device has a higher clock than they are stated for (`find_peak_bound`). Those of tensor cores need not be:
# Hopper's do 16 operations for each of float32, and are quoted at a lower clock (1830 of 1980 MHz on an H100 SXM). What
# they cannot pass, 16 times the float32 figure, is 8% (SXM, PCIe) to 15% (NVL) more.
# A matrix product may miss a CPU's peak by a tenth (libraries reach about 90%), the clock that /proc shows may be the
# base clock, and clocks rise and fall between two measurements.
# All of this for the fewest operations that a known algorithm needs: Winograd's convolutions pass a peak honestly when
# they are counted as direct ones.
MAX_SHARE_OF_TABLE_PEAK = 1.0
MAX_SHARE_OF_TENSOR_PEAK = 1.15
MAX_SHARE_OF_HOST_PEAK = 1.1
# not-as-asked. Half of the threads or fewer work where a limit for another program was inherited (OMP_THREAD_LIMIT) or
# where several threads were put on one core; large products keep 90 % and more of them busy.
MIN_BUSY_SHARE, MIN_BUSY_CORES = 0.6, 1.1
# What identical runs differ by anyway (TorchBench, issue 1681).
MAX_HOST_DRIFT = 0.10


def check_device(inputs: ValidityInputs) -> Iterator[str]:
    asked = inputs.cell.device
    if inputs.device_kind not in (None, asked):
        yield f"the step's output lives on the {inputs.device_kind}, the cell asks for the {asked}"


def check_mode(inputs: ValidityInputs) -> Iterator[str]:
    if inputs.cell.mode != "eager" and inputs.is_compiled is False:
        yield f"mode '{inputs.cell.mode}': the framework made no program of the step and ran it op by op"


def check_threads(inputs: ValidityInputs) -> Iterator[str]:
    host = inputs.host_peak
    if host is None or host.busy_cores is None or inputs.num_threads < 2:
        return
    # A library may leave the hyperthreads alone.
    if host.busy_cores < max(MIN_BUSY_CORES, MIN_BUSY_SHARE * (host.num_cores or inputs.num_threads)):
        yield (
            f"undisturbed matrix products kept {host.busy_cores:.1f} cores busy, with {inputs.num_threads} threads: "
            "something else limits the threads"
        )


def check_roofline(inputs: ValidityInputs) -> Iterator[str]:
    roofline = inputs.roofline
    if roofline is None:
        return
    bound = find_peak_bound(inputs)
    if roofline.share_of_peak is not None and roofline.flops_per_step:
        least = roofline.least_flops_per_step
        share = roofline.share_of_peak * (1.0 if least is None else least / roofline.flops_per_step)
        if share > bound:
            yield (
                f"{share:.0%} of the device's peak by the fewest operations that known algorithms need "
                f"({roofline.share_of_peak:.0%} as counted), more than {bound:.0%}: the work was not done as counted, "
                "or not in the window"
            )
    memory_share = (roofline.min_memory_seconds or 0.0) / inputs.samples.center_step_seconds
    if memory_share > MAX_SHARE_OF_TABLE_PEAK:
        yield f"{memory_share:.0%} of what the memory's bandwidth allows, more than {MAX_SHARE_OF_TABLE_PEAK:.0%}"


def list_unchecked_work(inputs: ValidityInputs) -> Iterator[str]:
    if inputs.device_kind is None:
        yield "device of the output not known"
    if inputs.roofline is None or inputs.roofline.share_of_peak is None:
        yield "peak of the device not known"


def note_host_drift(inputs: ValidityInputs) -> Iterator[str]:
    host = inputs.host_peak
    if host is None or host.before_flops_per_second is None or host.after_flops_per_second is None:
        return
    drift = host.after_flops_per_second / host.before_flops_per_second - 1
    if abs(drift) > MAX_HOST_DRIFT:
        yield (
            f"the host's matrix product ran at {host.before_flops_per_second / 1e9:.0f} GFLOP/s before the window and "
            f"at {host.after_flops_per_second / 1e9:.0f} after it ({drift:+.0%}): the host's speed changed"
        )


def find_peak_bound(inputs: ValidityInputs) -> float:
    """Return the share of the peak in gpus.csv, or of its process's host peak, that a cell can reach at most.

    The figures of GeForce cards, of a Tesla P4 and of a Tesla P100 PCIe are for a boost clock that they can pass.
    """
    if inputs.cell.device == "cpu":
        return MAX_SHARE_OF_HOST_PEAK
    bound = MAX_SHARE_OF_TABLE_PEAK if inputs.cell.precision == "fp32" else MAX_SHARE_OF_TENSOR_PEAK
    stated = inputs.roofline.peak_clock_mhz if inputs.roofline else None
    highest = max((gpu.max_sm_clock_mhz or 0 for gpu in inputs.gpu_use), default=0)
    return bound * max(1.0, highest / stated) if stated else bound


# contaminated. A CUDA context alone takes more than this on any GPU; what a display or a driver keeps takes less.
# Bytes count where the processes behind them cannot be seen, as in most containers.
MAX_FOREIGN_BYTES = 100 * 2**20
# CPU cells: others may use the cores that this cell's threads leave free. A tenth of the cell's threads without a core
# is the size of what runs differ by anyway, and above what an idle desktop does.
MAX_MISSING_SHARE = 0.10
# So does the hyperthread beside a core of the cell: both share the core's units, and each slows the other.
# GPU cells launch kernels from one thread, which sleeps and wakes. It finds a free core at once while any is idle: the
# load of others counts only where less than this share of the machine stays idle, 0.4 of eight cores. And they must
# have a part in it: a tenth of the machine, more than an idle desktop uses beside a cell that fills the cores itself.
MIN_IDLE_SHARE = 0.05
MAX_OTHER_SHARE = 0.10


def check_gpu_neighbours(inputs: ValidityInputs) -> Iterator[str]:
    for gpu in inputs.gpu_use:
        for when, processes, num_bytes in (
            ("before the start", gpu.foreign_processes, gpu.memory_used_before_bytes),
            ("after the window", gpu.foreign_processes_after, gpu.foreign_memory_after_bytes),
        ):
            if inputs.is_under_mps and when == "before the start":
                num_bytes = None  # its server's, or another client's: list_unchecked_neighbours says so
            if processes:
                pids = ", ".join(str(process.pid) for process in processes)
                yield f"{gpu.uuid} was computing for others {when} (process {pids})"
            elif (num_bytes or 0) > MAX_FOREIGN_BYTES:
                used, bound = (value / 2**20 for value in (num_bytes or 0, MAX_FOREIGN_BYTES))
                yield f"{used:.0f} MiB of {gpu.uuid} were in use by others {when}, more than {bound:.0f}"


def check_cpu_neighbours(inputs: ValidityInputs) -> Iterator[str]:
    use = inputs.cpu_use
    if use is None:
        return
    others, num_cores = find_others(use)
    busy = f"others kept {others:.1f} of {num_cores} cores busy"
    if inputs.cell.device == "cpu":
        needed = inputs.num_threads  # they wait for the slowest among them
        if is_short_of_cores(use, needed):
            missing = count_missing_cores(use, needed)
            yield (
                f"{busy}: the cell's {needed} threads were short of {missing:.1f} cores, more than "
                f"{MAX_MISSING_SHARE:.0%} of {needed}"
            )
        if (use.sibling_busy_cores or 0.0) > MAX_MISSING_SHARE * needed:
            yield (
                f"others kept {use.sibling_busy_cores:.1f} of the {use.num_sibling_cores} hyperthreads busy that share "
                f"the cell's cores, more than {MAX_MISSING_SHARE:.0%} of its {needed} threads"
            )
        return
    idle = 1 - (use.own_cores + others) / num_cores
    if others / num_cores > MAX_OTHER_SHARE and idle < MIN_IDLE_SHARE:
        yield (
            f"{busy}: {max(0.0, idle):.0%} of them were idle, less than {MIN_IDLE_SHARE:.0%}, so that the "
            "thread that launches the GPU's work had to wait for a core"
        )


def list_unchecked_neighbours(inputs: ValidityInputs) -> Iterator[str]:
    if inputs.cell.device == "gpu" and not inputs.gpu_use:
        yield "other users of the GPU not looked for"
    for gpu in inputs.gpu_use:
        if not gpu.processes_visible or gpu.foreign_processes is None:
            yield f"processes of others on {gpu.uuid} cannot be seen here"
        elif gpu.foreign_memory_after_bytes is None:
            yield f"memory of others on {gpu.uuid} after the window not known"
        if gpu.memory_used_before_bytes is None:
            yield f"memory in use on {gpu.uuid} before the start not known"
        if inputs.is_under_mps:
            yield f"whose memory was in use on {gpu.uuid} before the start: MPS's server has some"
    use = inputs.cpu_use
    if use is None:
        yield "other processes on the cores and the CPU quota not observed"
    elif use.other_cores is None and use.affinity_other_cores is None:
        pressure = use.pressure_share if use.pressure_share is not None else use.machine_pressure_share
        waited = "" if pressure is None else f", in {pressure:.0%} of the window some thread waited for a core"
        yield f"other processes on the cores not observed{waited}"
    elif inputs.cell.device == "cpu":
        yield from _list_unchecked_hyperthreads(use, inputs.num_threads)


def find_others(use: CpuUse) -> tuple[float, int]:
    """Return the cores that others kept busy and how many there are: of the affinity, or else of the machine."""
    if use.affinity_other_cores is not None and use.num_affinity_cores is not None:
        return use.affinity_other_cores, use.num_affinity_cores
    return use.other_cores or 0.0, use.num_machine_cores


def count_missing_cores(use: CpuUse, needed: float) -> float:
    """Return how many of the `needed` cores others left none for; 0 or less where there were enough, or not known.

    A thread that the CPU quota stops needs no core meanwhile: others may fill it, and take nothing from the cell.
    """
    others, num_cores = find_others(use)
    stopped = (use.throttled_seconds or 0.0) / use.window_seconds
    return needed - stopped + others - num_cores


def is_short_of_cores(use: CpuUse, needed: float) -> bool:
    """Return whether others kept `needed` threads from their cores, by more than MAX_MISSING_SHARE of them."""
    return count_missing_cores(use, needed) > MAX_MISSING_SHARE * needed


def _list_unchecked_hyperthreads(use: CpuUse, num_threads: int) -> Iterator[str]:
    if use.sibling_busy_cores is None:
        yield "use of the hyperthreads that share the cell's cores not observed"
    physical, others = use.num_affinity_physical_cores, use.affinity_other_cores
    if physical is None or others is None:
        return
    bound = MAX_MISSING_SHARE * num_threads
    if others > bound and num_threads + others > physical + bound and num_threads < (use.num_affinity_cores or 0):
        yield (
            f"whether the {others:.1f} cores of others shared a physical core with the cell: its {num_threads} threads "
            f"are not pinned, and there are {physical} physical cores"
        )


# throttled. What cooling or supply force on a device makes it faulty at any clock. One sample in twenty may catch a
# passing one.
FAULTY_REASONS = (nvml.SOFTWARE_THERMAL, nvml.HARDWARE_SLOWDOWN, nvml.HARDWARE_THERMAL, nvml.HARDWARE_POWER_BRAKE)
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
        held = gpu.window.held_seconds.get(nvml.THERMAL_POLICY, 0.0) / gpu.window.seconds if gpu.window else 0.0
        if held > MAX_FAULTY_SHARE:
            much = f"{held:.0%} of the timed window, more than {MAX_FAULTY_SHARE:.0%}"
            yield f"{gpu.uuid}: heat held its clock down in {much}"
        for words, limit, default, unit in (
            ("power limit", gpu.power_limit_watts, gpu.default_power_limit_watts, "W"),
            (nvml.APPLICATIONS_CLOCKS, gpu.application_clock_mhz, gpu.default_application_clock_mhz, "MHz"),
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
    if any(window.held_seconds and nvml.THERMAL_POLICY not in window.held_seconds for window in windows):
        yield "for how long heat held the clock of the GPU down in the timed window not known"


def measure_clock_share(gpu: GpuUse) -> float | None:
    """Divide the GPU's median clock while it computed by its highest clock; None where one of them is not known."""
    return median(gpu.sm_clock_mhz) / gpu.max_sm_clock_mhz if gpu.sm_clock_mhz and gpu.max_sm_clock_mhz else None


def explain_low_clock(gpu: GpuUse) -> str | None:
    """Return why a healthy device ran below its highest clock: power cap, own default, idleness; None for none."""
    capped = _find_share_when_slow(gpu, nvml.SOFTWARE_POWER_CAP)
    if capped > MIN_EXPLAINED_SHARE:
        return f"power-limited, {nvml.SOFTWARE_POWER_CAP} in {capped:.0%} of the slower samples"
    setting = gpu.application_clock_mhz
    is_default = setting is not None and setting == gpu.default_application_clock_mhz
    if is_default and _find_share_when_slow(gpu, nvml.APPLICATIONS_CLOCKS) > MIN_EXPLAINED_SHARE:
        return f"{nvml.APPLICATIONS_CLOCKS} of {setting} MHz, as the device has it by default"
    idle = _find_share_when_slow(gpu, nvml.GPU_IDLE)
    if idle > MIN_EXPLAINED_SHARE:
        return f"{nvml.GPU_IDLE} in {idle:.0%} of the slower samples"
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


# noisy. Identical runs differ by up to 10% (TorchBench, issue 1681): steps that spread further inside one run, by the
# median absolute deviation scaled to a standard deviation, say little about anything smaller. The median absolute
# deviation leaves single outliers alone: a laptop has them.
MAX_SPREAD = 0.10
# Of few steps it is too small on average, by these factors (C. Croux, P. J. Rousseeuw, "Time-efficient algorithms for
# two highly robust estimators of scale", Computational Statistics 1, 1992, 411-428); of ten and more by n / (n - 0.8).
FEW_STEPS_FACTORS = {2: 1.196, 3: 1.495, 4: 1.363, 5: 1.206, 6: 1.200, 7: 1.140, 8: 1.129, 9: 1.107}

# not-steady. As the warm-up's own bound (bench.measure.harness.STEADY_TOLERANCE): below it no drift is worth reporting.
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
# fewer than ten steps give no spread worth the name, unless they are so long that six fill five seconds. Of three steps
# that truly spread by 20%, the check of the spread let 48% pass; of six it lets 13% (benchmarks/verdict_power.py).
MIN_WINDOW_SECONDS = 0.5
MIN_STEPS = 10
MIN_LONG_STEPS = 6
MIN_LONG_WINDOW_SECONDS = 5.0


def check_length(inputs: ValidityInputs) -> Iterator[str]:
    num_steps, seconds = len(inputs.samples.step_seconds), inputs.phases.steady_seconds or 0.0
    if seconds < MIN_WINDOW_SECONDS:
        yield f"the timed window lasted {seconds:.2f} s, less than {MIN_WINDOW_SECONDS} s"
    if num_steps < (MIN_STEPS if seconds < MIN_LONG_WINDOW_SECONDS else MIN_LONG_STEPS):
        yield (
            f"{num_steps} steps in {seconds:.1f} s: it takes {MIN_STEPS}, or {MIN_LONG_STEPS} in "
            f"{MIN_LONG_WINDOW_SECONDS:.0f} s"
        )


def check_drift(inputs: ValidityInputs) -> Iterator[str]:
    steps, num_taken = inputs.samples.step_seconds, len(inputs.samples.warmup_step_seconds)
    if not inputs.samples.reached_steady:
        num_queued = inputs.samples.max_queued_batches or 0
        missing = (
            f"it had taken twice the {num_queued} batches that the input pipeline can hold ready ({num_taken} steps)"
        )
        has_taken = num_taken >= STEADY_NUM_QUEUES * num_queued
        yield f"the warm-up ended at its time limit, before {'the series was steady' if has_taken else missing}"
    drift, bound = measure_drift(steps), find_drift_bound(steps)
    if abs(drift) > bound and are_thirds_apart(steps):
        yield f"the last third of the window is {drift:+.1%} off the first, more than {bound:.1%}"


def check_spread(inputs: ValidityInputs) -> Iterator[str]:
    spread = measure_spread(inputs.samples.step_seconds)
    if spread > MAX_SPREAD:
        yield f"steps spread by {spread:.0%} around their median, more than {MAX_SPREAD:.0%}"


def note_levels(inputs: ValidityInputs) -> Iterator[str]:
    levels = find_levels(inputs.samples.step_seconds)
    if levels is not None:
        low, high = (_format_milliseconds(seconds) for seconds in (levels.low_seconds, levels.high_seconds))
        yield (
            f"steps on two levels, {1 - levels.high_share:.0%} near {low} and {levels.high_share:.0%} near {high}: the "
            f"{inputs.samples.summarized_by} of the steps counts"
        )


def measure_spread(steps: Sequence[float]) -> float:
    """Return the standard deviation that the median absolute deviation stands for, over the median."""
    middle, num_steps = median(steps), len(steps)
    factor = FEW_STEPS_FACTORS.get(num_steps, num_steps / (num_steps - 0.8))
    return factor * MAD_TO_DEVIATION * median(abs(step - middle) for step in steps) / middle


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
    first, last = ([*map(median, _cut(part, BLOCKS_PER_THIRD))] for part in (steps[:third], steps[-third:]))
    return max(first) < min(last) or max(last) < min(first)


def find_drift_bound(steps: Sequence[float]) -> float:
    """Return the drift from which on chance does not explain it, at least MAX_DRIFT."""
    third = len(steps) // 3
    if third == 0:
        return MAX_DRIFT
    differences = [abs(later - step) for step, later in pairwise(steps)]
    deviation = DIFFERENCE_TO_DEVIATION * median(differences) / median(steps)
    return max(MAX_DRIFT, float(DRIFT_STANDARD_ERRORS * deviation / third**0.5))


def _format_milliseconds(seconds: float) -> str:
    """Return three digits and no exponent: `2080 ms`, `18.2 ms`."""
    return f"{seconds * 1e3:.0f} ms" if seconds >= 0.1 else f"{seconds * 1e3:.3g} ms"


def _cut(steps: Sequence[float], num_blocks: int) -> list[Sequence[float]]:
    ends = [number * len(steps) // num_blocks for number in range(num_blocks + 1)]
    return [steps[start:end] for start, end in pairwise(ends)]


# The rate of steps that take turns with other processes. A time-sliced step is short where the process has its turn and
# long where it waits for one: the steps may spread widely around their median and the rate over a second be the same
# all the time. So means of blocks of steps are compared. The series is cut into so many blocks of equal numbers of
# steps (batch means, A. M. Law, W. D. Kelton, "Simulation Modeling and Analysis", 9.5.3: few long blocks, since short
# ones depend on one another).
NUM_BLOCKS = 9
# noisy. The rate is known to this standard error or better; twice as much, its 95 % interval, is what identical runs
# differ by (MAX_SPREAD).
MAX_RATE_ERROR = 0.05
# not-steady. As for the steps of a cell that is alone (MAX_DRIFT): from three standard errors of
# the difference of two thirds on, each the mean of three blocks.
MAX_RATE_DRIFT = 0.05
RATE_DRIFT_STANDARD_ERRORS = 3 * (2 / 3) ** 0.5


def check_rate(inputs: ValidityInputs) -> Iterator[str]:
    _, deviation = _measure_blocks(inputs.samples.step_seconds)
    error = deviation / NUM_BLOCKS**0.5
    if error > MAX_RATE_ERROR:
        yield f"the rate over the window has a standard error of {error:.0%}, more than {MAX_RATE_ERROR:.0%}"


def check_rate_drift(inputs: ValidityInputs) -> Iterator[str]:
    blocks, deviation = _measure_blocks(inputs.samples.step_seconds)
    third = NUM_BLOCKS // 3
    drift = fmean(blocks[-third:]) / fmean(blocks[:third]) - 1
    bound = max(MAX_RATE_DRIFT, RATE_DRIFT_STANDARD_ERRORS * deviation)
    if abs(drift) > bound:
        yield (
            f"steps of the last third of the window take {drift:+.1%} longer than those of the first, more than "
            f"{bound:.1%}"
        )


def _measure_blocks(steps: Sequence[float]) -> tuple[list[float], float]:
    """Return the mean step of each block, and their deviation over their mean; flat where there are too few to tell."""
    if len(steps) < NUM_BLOCKS:  # check_length says so
        return [1.0] * NUM_BLOCKS, 0.0
    blocks = [*map(fmean, _cut(steps, NUM_BLOCKS))]
    # From differences of blocks that follow each other, which a drift hardly raises (von Neumann's estimate).
    return blocks, (fmean((later - block) ** 2 for block, later in pairwise(blocks)) / 2) ** 0.5 / fmean(blocks)


# input-bound. A tenth is what identical runs differ by anyway (MAX_SPREAD), and what somebody
# would add workers for. Handing over a batch that is ready takes well below a millisecond: a pipeline that keeps up
# stays below the bound unless steps are that short, and then the hand-over does set the pace. The share is that of the
# whole window, not of the median step: several workers deliver in bursts, one long wait and then none.
MAX_WAIT_SHARE = 0.10


def check_input(inputs: ValidityInputs) -> Iterator[str]:
    waits = inputs.samples.data_wait_seconds
    if not waits:
        return
    share = sum(waits) / sum(inputs.samples.step_seconds)
    if share > MAX_WAIT_SHARE:
        mean = sum(waits) / len(waits)
        yield (
            f"steps waited for data in {share:.0%} of their time ({mean * 1e3:.3g} ms each), more than "
            f"{MAX_WAIT_SHARE:.0%}: the input pipeline set the pace"
        )


def list_unchecked_input(inputs: ValidityInputs) -> Iterator[str]:
    if inputs.samples.max_queued_batches is not None and inputs.samples.data_wait_seconds is None:
        yield "how long steps waited for data not observed"


# throttled. Time that threads stood still because the CPU quota was used up, over the time they had. Not the share of
# periods that were cut: as many busy threads as the quota has cores run into it in every period, for an instant.
MAX_THROTTLED_SHARE = 0.05


def check_quota(inputs: ValidityInputs) -> Iterator[str]:
    use = inputs.cpu_use
    if use is None or use.throttled_seconds is None:
        return
    share = use.throttled_seconds / (use.window_seconds * inputs.num_threads)
    if share > MAX_THROTTLED_SHARE:
        yield (
            f"the CPU quota stopped the threads for {share:.0%} of their time, more than {MAX_THROTTLED_SHARE:.0%} "
            f"(in {use.num_throttled_periods} of {use.num_periods} periods)"
        )
