"""Finds verdicts that a record's own evidence carries and its reasons do not name.

The rules are those of `bench.validity`, with bounds so much wider that a record which an earlier version judged by
slightly other bounds is not named.
"""

from bisect import bisect_left, bisect_right
from collections.abc import Iterator, Sequence
from dataclasses import replace
from statistics import median

from bench.schema import CpuUse, GpuUse, Result, Verdict
from bench.validity.clocks import check_clocks
from bench.validity.input_pipeline import MAX_WAIT_SHARE
from bench.validity.inputs import ValidityInputs
from bench.validity.neighbours import MAX_MISSING_SHARE, check_cpu_neighbours, check_gpu_neighbours
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
from bench.validity.throttling import check_quota
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


def check_unsaid_verdicts(
    result: Result, *, least_flops: int, table_peak: float | None, memory_seconds: float
) -> Iterator[str]:
    """Yield in a line each verdict that the evidence of a result carries and its reasons do not name.

    `least_flops`: the fewest operations of a step; `table_peak`: of the cell's GPUs, in FLOP/s, None if not known;
    `memory_seconds`: the least time of a step's bytes by the same table, 0 if not known.
    """
    if result.status != "ok" or result.validity is None or result.samples is None:
        return
    named = {reason.verdict for reason in result.validity.reasons}
    found = [
        *_list_machine_faults(result),
        *_list_rate_faults(result, least_flops, table_peak, memory_seconds),
    ]
    if result.tenancy is None:  # steps in turns are judged otherwise, each tenant's by itself
        found += _list_series_faults(result, named)
    for verdict, text in found:
        if verdict not in named:
            yield f"{text}, and its verdict does not say {verdict}"
    yield from _list_unsaid_gaps(result)


def find_host_peak(result: Result) -> float | None:
    """Return the peak of a CPU cell by the figures that it is the largest of, or as the record has it."""
    if result.host_peak is not None and result.host_peak.flops_per_second is not None:
        return result.host_peak.flops_per_second
    return None if result.roofline is None else result.roofline.peak_flops_per_second


def find_most_share(result: Result) -> float:
    """Return the share of the peak beyond which no step of the cell is believed."""
    headroom = CLOCK_HEADROOM if result.cell.device == "gpu" else 1.0
    return BOUND_FACTOR * find_peak_bound(result.cell) * headroom


def _list_rate_faults(result: Result, least_flops: int, table_peak: float | None, memory_seconds: float) -> Found:
    """Yield over-peak where any time of a step is one that the device cannot reach by any known algorithm.

    The work is that of the cell and the peak of a GPU that of the table, whatever the record says or leaves out.
    """
    roofline, samples = result.roofline, result.samples
    if samples is None or not samples.step_seconds:
        return
    peak, flops = table_peak or find_host_peak(result), float(least_flops)
    if roofline is not None:
        stored = roofline.least_flops_per_step
        flops = max(flops, roofline.flops_per_step if stored is None and not flops else stored or 0.0)
        memory_seconds = max(memory_seconds, roofline.min_memory_seconds or 0.0)
    times = [samples.center_step_seconds]
    times += [result.pipelined.step_seconds] if result.pipelined else []
    times += [min(result.sustained.window_step_seconds)] if result.sustained else []
    share = flops / min(times) / peak if peak else 0.0
    if share > find_most_share(result):
        yield "over-peak", f"a step of {min(times):.4g} s takes {share:.1f} times the device's peak"
    memory_share = memory_seconds / min(times)
    if memory_share > BOUND_FACTOR * MAX_SHARE_OF_TABLE_PEAK:
        yield "over-peak", f"a step of {min(times):.4g} s takes {memory_share:.1f} times the memory's bandwidth"


def _list_unsaid_gaps(result: Result) -> Iterator[str]:
    """Yield what a check needs, the record does not know, and its `unchecked` does not admit: every version says it."""
    unchecked = result.validity.unchecked if result.validity else ()
    if (result.roofline is None or result.roofline.peak_flops_per_second is None) and "peak" not in " ".join(unchecked):
        yield "the peak of its device is not known, and what it calls unchecked does not say so"
    if unchecked:
        return
    if result.cell.device == "gpu" and not result.gpu_use:
        yield "nobody looked at its GPU, and it calls nothing unchecked"
    if result.cpu_use is None:
        yield "nobody looked at its cores, and it calls nothing unchecked"


def _list_machine_faults(result: Result) -> Found:
    """Yield what today's checks of the machine find in what the record holds, with each bound twice as wide."""
    assert result.samples is not None
    others = result.tenancy.tenants[1:] if result.tenancy is not None else ()
    tenant_cores = sum(record.own_cores or 0.0 for record in others)
    inputs = ValidityInputs(
        cell=result.cell,
        phases=result.phases,
        samples=result.samples,
        device_kind=None,
        num_threads=_count_threads(result),
        cpu_use=result.cpu_use and _leave_out(result.cpu_use, tenant_cores),
        gpu_use=result.gpu_use,
        roofline=None,
        is_under_mps=result.cell.sharing == "mps",
    )
    softened = replace(
        inputs,
        cpu_use=inputs.cpu_use and _soften_cpu_use(inputs.cpu_use, inputs),
        gpu_use=tuple(map(_soften_gpu_use, result.gpu_use)),
    )
    for check in (check_gpu_neighbours, check_cpu_neighbours, check_clocks, check_quota):
        far = {verdict for verdict, _ in check(softened)}
        yield from (found for found in check(inputs) if found[0] in far)


def _count_threads(result: Result) -> int:
    """Return the threads that had a core of their own, were they alone: of more than that, others take nothing."""
    use = result.cpu_use
    num_cores = 1 if use is None else use.num_affinity_cores or use.num_machine_cores
    return min(num_cores, result.environment.num_threads if result.environment else 1)


def _leave_out(use: CpuUse, cores: float) -> CpuUse:
    """Return who used the CPUs less so many busy cores of others."""
    return use.model_copy(
        update={
            name: max(0.0, value - cores)
            for name in ("other_cores", "affinity_other_cores")
            if (value := getattr(use, name)) is not None
        }
    )


def _soften_cpu_use(use: CpuUse, inputs: ValidityInputs) -> CpuUse:
    """Return the use of the CPUs that is at a bound where `use` is twice as far."""
    if inputs.cell.device == "cpu":
        softened = _leave_out(use, MAX_MISSING_SHARE * inputs.num_threads)
    else:
        softened = _leave_out(use, max(use.other_cores or 0.0, use.affinity_other_cores or 0.0) / BOUND_FACTOR)
    halved = {name: getattr(use, name) for name in ("sibling_busy_cores", "throttled_seconds")}
    return softened.model_copy(
        update={name: value / BOUND_FACTOR for name, value in halved.items() if value is not None}
    )


def _soften_gpu_use(use: GpuUse) -> GpuUse:
    """Return the use of a GPU that is at a bound where `use` is twice as far; who is there stays there."""
    changes: dict[str, object] = {
        name: int(value / BOUND_FACTOR)
        for name in ("memory_used_before_bytes", "foreign_memory_after_bytes", "max_sm_clock_mhz")
        if (value := getattr(use, name)) is not None
    }
    for name in ("power_limit_watts", "application_clock_mhz"):
        limit, default = getattr(use, name), getattr(use, f"default_{name}")
        if limit is not None and default is not None:
            changes[name] = (limit + default) / 2
    changes["throttle_reasons"] = {name: share / BOUND_FACTOR for name, share in use.throttle_reasons.items()}
    if use.window is not None:
        held = {name: seconds / BOUND_FACTOR for name, seconds in use.window.held_seconds.items()}
        changes["window"] = use.window.model_copy(update={"held_seconds": held})
    return use.model_copy(update=changes)


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
    if not samples.reached_steady:
        yield "not-steady", "its warm-up ended before the series was steady"
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
