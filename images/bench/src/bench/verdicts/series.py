"""Checks the series of step times, and what set its pace: too-short, not-steady, noisy, input-bound, throttled by a
quota."""

from collections.abc import Iterator, Sequence
from itertools import pairwise
from statistics import fmean, median

from bench.measure.harness import STEADY_NUM_QUEUES
from bench.measure.levels import MAD_TO_DEVIATION, find_levels
from bench.verdicts.inputs import ValidityInputs

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


def _format_milliseconds(seconds: float) -> str:
    """Return three digits and no exponent: `2080 ms`, `18.2 ms`."""
    return f"{seconds * 1e3:.0f} ms" if seconds >= 0.1 else f"{seconds * 1e3:.3g} ms"


def _list_block_medians(steps: Sequence[float]) -> list[float]:
    ends = [number * len(steps) // BLOCKS_PER_THIRD for number in range(BLOCKS_PER_THIRD + 1)]
    return [median(steps[start:end]) for start, end in pairwise(ends)]


# The rate of steps that take turns with other processes. A time-sliced step is short where the process has its turn and
# long where it waits for one: the steps may spread widely around their median and the rate over a second be the same
# all the time. So means of blocks of steps are compared. The series is cut into so many blocks of equal numbers of
# steps (batch means, A. M. Law, W. D. Kelton, "Simulation Modeling and Analysis", 9.5.3: few long blocks, since short
# ones depend on one another).
NUM_BLOCKS = 9
# noisy. The rate is known to this standard error or better; twice as much, its 95 % interval, is what identical runs
# differ by (bench.verdicts.series.MAX_SPREAD).
MAX_RATE_ERROR = 0.05
# not-steady. As for the steps of a cell that is alone (bench.verdicts.series.MAX_DRIFT): from three standard errors of
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
    ends = [number * len(steps) // NUM_BLOCKS for number in range(NUM_BLOCKS + 1)]
    blocks = [fmean(steps[start:end]) for start, end in pairwise(ends)]
    # From differences of blocks that follow each other, which a drift hardly raises (von Neumann's estimate).
    return blocks, (fmean((later - block) ** 2 for block, later in pairwise(blocks)) / 2) ** 0.5 / fmean(blocks)


# input-bound. A tenth is what identical runs differ by anyway (bench.verdicts.series.MAX_SPREAD), and what somebody
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
