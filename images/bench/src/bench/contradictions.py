"""Finds what a result says of itself that its own raw times rule out: such a record counts for nothing.

The one place that says which contradictions a result can have; docs/contradictions.md has the same list for people.
What is named here is impossible in a record that this program wrote, in any version: clocks, rounding and bounds that
were moved since have more room in each check than they can need. A record that passes is not true for that
(docs/threat-model.md). What contradicts another record, as a copy does, is found where the records are together
(`bench.copied_steps`).
"""

from collections.abc import Callable, Iterator, Mapping
from functools import lru_cache

from bench.models.flops import count_step_cost
from bench.peaks import find_gpu_peaks
from bench.schema import EARLIEST, LATEST, Cell, InvalidDocumentError, Result, Roofline, Samples, read_result
from bench.unsaid_verdicts import check_unsaid_verdicts

PREFIX = "contradicts itself: "
"""How the reason begins for which such a record does not count."""

# What was computed in the same process from the same floats: only its writing in decimal can differ, and it does not.
ROUNDING = 1e-6
# The parts of an attempt are timed by the clock that says how long it took. Earlier versions read the time of day
# twice, which NTP may have moved meanwhile.
MAX_CLOCK_STEP_SECONDS = 1.0
MAX_CLOCK_SHARE = 0.01
# Between two steps of the timed window lie two reads of a clock and, on a GPU, an event: 0.1 ms at the most in all that
# was published. Making more events, or the machine's other work, may take a part of a second once. More than as long
# again as all steps is no gap.
GAP_SECONDS_PER_STEP = 200e-6
GAP_SECONDS = 1.0
# Events of a GPU have half a microsecond, and another clock than the host.
DEVICE_CLOCK_SHARE = 0.05
DEVICE_SECONDS_PER_STEP = 10e-6
# A datasheet's peak of structured sparsity is twice the dense one, one of accumulation in float16 twice that of
# float32: a table that took the other of both would be off by four.
MAX_PEAK_FACTOR = 4.0
# So many different step times are never the same in two measurements: clocks count nanoseconds.
MIN_DISTINCT_STEPS = 10

Found = Iterator[str]


def read_consistent_result(data: bytes) -> Result:
    """Return the Result in `data`; raise InvalidDocumentError also where it contradicts itself."""
    result = read_result(data)
    reason = find_contradiction(result)
    if reason is not None:
        raise InvalidDocumentError(reason)
    return result


def find_contradiction(result: Result) -> str | None:
    """Return in one line what the result contradicts itself in, by the first check that finds something, or None."""
    for check in CHECKS.values():
        for text in check(result):
            return f"{PREFIX}{text}"
    return None


def has_own_steps(samples: Samples | None) -> bool:
    """Return whether the timed steps are such as no other measurement can have."""
    return samples is not None and len(set(samples.step_seconds)) >= MIN_DISTINCT_STEPS


def check_duration(result: Result) -> Found:
    """Yield that the parts of the attempt took longer than the attempt, by its start and end."""
    if EARLIEST in (result.started_at, result.finished_at) or LATEST in (result.started_at, result.finished_at):
        return  # a clock that was never set
    parts = [value for value in result.phases.model_dump().values() if value is not None]
    parts += [found.seconds for found in (result.pipelined, result.sustained) if found is not None]
    parts += [use.window_seconds or 0.0 for use in result.gpu_use[:1]]  # the GPUs of a cell are sampled together
    total, seconds = sum(parts), (result.finished_at - result.started_at).total_seconds()
    if total > seconds * (1 + MAX_CLOCK_SHARE) + MAX_CLOCK_STEP_SECONDS:
        yield f"its parts took {total:.1f} s, from started_at to finished_at there are {seconds:.1f} s"


def check_window(result: Result) -> Found:
    """Yield that the steps are not those of their window: far shorter in sum, or the window than the cell asks for."""
    samples, seconds = result.samples, result.phases.steady_seconds
    if result.status != "ok" or samples is None or seconds is None:
        return
    total, num_steps = sum(samples.step_seconds), len(samples.step_seconds)
    if seconds - total > total + GAP_SECONDS_PER_STEP * num_steps + GAP_SECONDS:
        yield f"{num_steps} steps of {total:.3f} s in sum are too short for their window of {seconds:.3f} s"
    if result.tenancy is None and seconds < result.cell.min_seconds * (1 - ROUNDING):
        yield f"its window of {seconds:.3f} s is shorter than the {result.cell.min_seconds:g} s of the cell"


def check_parts_of_steps(result: Result) -> Found:
    """Yield that the GPU's time of the steps, or their waits for data, are longer than the steps."""
    samples, seconds = result.samples, result.phases.steady_seconds
    if samples is None or seconds is None:
        return
    most = seconds * (1 + DEVICE_CLOCK_SHARE) + DEVICE_SECONDS_PER_STEP * len(samples.step_seconds)
    for name in ("device_step_seconds", "data_wait_seconds"):
        total = sum(getattr(samples, name) or ())
        if total > most:
            yield f"{name} are {total:.3f} s in sum, in a window of {seconds:.3f} s"


def check_rates(result: Result) -> Found:
    """Yield that the rate, the shares or the bound of the roofline do not follow from the raw steps."""
    roofline, samples = result.roofline, result.samples
    if roofline is None or samples is None or not samples.step_seconds:
        return
    center = samples.center_step_seconds
    expected = _compute_rates(roofline, center)
    for name, value in expected.items():
        stored = getattr(roofline, name)
        if stored is not None and value is not None and abs(stored - value) > ROUNDING * abs(value):
            yield f"roofline.{name} is {stored:.6g}, by a step of {center:.6g} s it is {value:.6g}"


def _compute_rates(roofline: Roofline, center: float) -> dict[str, float | None]:
    """Return what of the roofline follows from the rest of it and the step time that stands for the repeat."""
    achieved, peak = roofline.flops_per_step / center, roofline.peak_flops_per_second
    shortest = roofline.min_step_seconds
    return {
        "achieved_flops_per_second": achieved,
        "share_of_peak": None if peak is None else achieved / peak,
        "share_of_roofline": None if shortest is None else shortest / center,
    }


def check_peak(result: Result) -> Found:
    """Yield that the least operations are more than those counted, or that the peak is not that of the cell's GPUs."""
    roofline = result.roofline
    if roofline is None:
        return
    stored = roofline.flops_per_step
    if roofline.least_flops_per_step is not None and roofline.least_flops_per_step > stored:
        yield f"roofline.least_flops_per_step is {roofline.least_flops_per_step:.4g}, more than its flops_per_step"
    known, peak = find_table_peak(result), roofline.peak_flops_per_second
    if known and peak and not known <= MAX_PEAK_FACTOR * peak <= MAX_PEAK_FACTOR**2 * known:
        yield f"roofline.peak_flops_per_second is {peak:.4g}, that of its GPUs is {known:.4g}"


def check_tenants(result: Result) -> Found:
    """Yield that tenant 0's steps are not the result's, a tenant's outlast the window, or two have the same."""
    tenancy = result.tenancy
    if tenancy is None or result.status != "ok" or tenancy.window_seconds is None:
        return
    first = tenancy.tenants[0].samples
    if first is not None and result.samples is not None and first.step_seconds != result.samples.step_seconds:
        yield "the steps of tenant 0 are not those of the result"
    series: dict[tuple[float, ...], int] = {}
    for record in tenancy.tenants:
        seconds = record.phases.steady_seconds
        if seconds is not None and seconds > tenancy.window_seconds * (1 + ROUNDING):
            yield f"the steps of tenant {record.tenant} took {seconds:.3f} s of {tenancy.window_seconds:.3f} s"
        if record.samples is not None and has_own_steps(record.samples):
            other = series.setdefault(record.samples.step_seconds, record.tenant)
            if other != record.tenant:
                yield f"tenants {other} and {record.tenant} have the same step times"


def check_verdict(result: Result) -> Found:
    """Yield a verdict that the record's own evidence carries, and its reasons do not name."""
    table_peak = find_table_peak(result)
    least = count_least_flops(result.cell)
    yield from check_unsaid_verdicts(result, least_flops=least, table_peak=table_peak)


def find_table_peak(result: Result) -> float | None:
    """Return the peak rate of all GPUs of the cell in FLOP/s, from this version's table of GPUs; None if not known."""
    if result.cell.device != "gpu" or result.environment is None or not result.environment.gpus:
        return None
    return find_gpu_peaks([gpu.name for gpu in result.environment.gpus], result.cell.precision).flops_per_second


@lru_cache(maxsize=4096)
def count_least_flops(cell: Cell) -> int:
    """Return the fewest operations that known algorithms need for a step of a cell, on all its GPUs.

    Of a cell with tenants those of tenant 0; 0 where a step of so few samples cannot be counted.
    """
    one = cell.as_tenant(0) if cell.tenants > 1 else cell
    return count_step_cost(one).least_flops * one.num_gpus if one.batch_size >= one.num_gpus else 0


CHECKS: Mapping[str, Callable[[Result], Found]] = {
    "duration": check_duration,
    "window": check_window,
    "parts-of-steps": check_parts_of_steps,
    "rates": check_rates,
    "peak": check_peak,
    "tenants": check_tenants,
    "verdict": check_verdict,
}
"""Every check, by the name that docs/contradictions.md has for it."""
