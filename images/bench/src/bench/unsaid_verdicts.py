"""Finds verdicts that a record's own evidence carries and its reasons do not name.

The rules are those of `bench.validity`, with bounds so much wider that a record which an earlier version judged by
slightly other bounds is not named.
"""

from bisect import bisect_left, bisect_right
from collections.abc import Iterator, Sequence
from statistics import median

from bench.schema import Result, Verdict
from bench.validity.clocks import FAULTY_REASONS, MAX_FAULTY_SHARE
from bench.validity.input_pipeline import MAX_WAIT_SHARE
from bench.validity.series import (
    MAX_DRIFT,
    MAX_SPREAD,
    MIN_LONG_STEPS,
    MIN_LONG_WINDOW_SECONDS,
    MIN_STEPS,
    are_thirds_apart,
    find_drift_bound,
    measure_drift,
    measure_spread,
)
from bench.validity.work import MAX_SHARE_OF_TABLE_PEAK, find_peak_bound

BOUND_FACTOR = 2.0
"""How far beyond today's bound the evidence lies: rates, shares, spread and drift."""
LENGTH_FACTOR = 4.0
"""The same for the number of steps: an earlier version took three long ones for enough."""
CLOCK_HEADROOM = 1.25
"""By how much a GPU may clock above what its peak is stated for, at the most (`collector.audit.devices`)."""

NEAR_SHARE = 0.5
"""More steps than that near the median, and the median deviation is as near."""

Found = Iterator[tuple[str, str]]


def check_unsaid_verdicts(result: Result, *, least_flops: int, table_peak: float | None) -> Iterator[str]:
    """Yield in a line each verdict that the evidence of a result carries and its reasons do not name.

    `least_flops`: the fewest operations of a step; `table_peak`: of the cell's GPUs, in FLOP/s, None if not known.
    """
    if result.status != "ok" or result.validity is None or result.samples is None:
        return
    named = {reason.verdict for reason in result.validity.reasons}
    found = [*_list_gpu_faults(result), *_list_rate_faults(result, least_flops, table_peak)]
    if result.tenancy is None:  # steps in turns are judged otherwise, each tenant's by itself
        found += _list_series_faults(result, named)
    for verdict, text in found:
        if verdict not in named:
            yield f"{text}, and its verdict does not say {verdict}"


def _list_rate_faults(result: Result, least_flops: int, table_peak: float | None) -> Found:
    """Yield over-peak where any time of a step is one that the device cannot reach by any known algorithm."""
    roofline, samples = result.roofline, result.samples
    if roofline is None or samples is None or not samples.step_seconds:
        return
    # A peak that the record does not know was not held against its steps: that is said under `unchecked`.
    peak = roofline.peak_flops_per_second
    flops: float = roofline.flops_per_step if roofline.least_flops_per_step is None else roofline.least_flops_per_step
    if peak and table_peak:  # neither the record's peak nor its count of the work is believed
        peak, flops = table_peak, max(flops, least_flops)
    times = [samples.center_step_seconds]
    times += [result.pipelined.step_seconds] if result.pipelined else []
    times += [min(result.sustained.window_step_seconds)] if result.sustained else []
    if peak:
        headroom = CLOCK_HEADROOM if result.cell.device == "gpu" else 1.0
        share = flops / min(times) / peak
        if share > BOUND_FACTOR * find_peak_bound(result.cell) * headroom:
            yield "over-peak", f"a step of {min(times):.4g} s takes {share:.1f} times the device's peak"
    memory_share = (roofline.min_memory_seconds or 0.0) / min(times)
    if memory_share > BOUND_FACTOR * MAX_SHARE_OF_TABLE_PEAK:
        yield "over-peak", f"a step of {min(times):.4g} s takes {memory_share:.1f} times the memory's bandwidth"


def _list_gpu_faults(result: Result) -> Found:
    for gpu in result.gpu_use:
        for name in FAULTY_REASONS:
            if gpu.throttle_reasons.get(name, 0.0) > BOUND_FACTOR * MAX_FAULTY_SHARE:
                yield "throttled", f"its GPU gave {name} in {gpu.throttle_reasons[name]:.0%} of the samples"


def _list_series_faults(result: Result, named: set[Verdict]) -> Found:
    samples, seconds = result.samples, result.phases.steady_seconds or 0.0
    assert samples is not None
    steps = samples.step_seconds
    least = (MIN_STEPS if seconds < MIN_LONG_WINDOW_SECONDS else MIN_LONG_STEPS) / LENGTH_FACTOR
    if len(steps) < least:
        yield "too-short", f"{len(steps)} steps in {seconds:.3g} s"
    waits = sum(samples.data_wait_seconds or ())
    if waits > BOUND_FACTOR * MAX_WAIT_SHARE * sum(steps):
        yield "input-bound", f"steps waited for data in {waits / sum(steps):.0%} of their time"
    if len(steps) < MIN_STEPS:
        return  # of so few, chance says what it likes
    if "not-steady" not in named:
        yield from _list_drift(steps)
    if "noisy" not in named:
        yield from _list_spread(steps)


def _list_drift(steps: Sequence[float]) -> Found:
    drift = measure_drift(steps)
    # The first bound is the least of the second, which takes ten times as long to find.
    is_far = abs(drift) > BOUND_FACTOR * MAX_DRIFT and abs(drift) > BOUND_FACTOR * find_drift_bound(steps)
    if is_far and are_thirds_apart(steps):
        yield "not-steady", f"the last third of the window is {drift:+.0%} off the first"


def _list_spread(steps: Sequence[float]) -> Found:
    ordered = sorted(steps)
    middle = median(ordered)
    # Where more than half of the steps are this near, so is their median deviation: it need not be computed.
    near = middle * MAX_SPREAD
    if bisect_right(ordered, middle + near) - bisect_left(ordered, middle - near) > NEAR_SHARE * len(ordered):
        return
    spread = measure_spread(steps)
    if spread > BOUND_FACTOR * MAX_SPREAD:
        yield "noisy", f"steps spread by {spread:.0%} around their median of {middle:.4g} s"
