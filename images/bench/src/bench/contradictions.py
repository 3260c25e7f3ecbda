"""Finds what a result says of itself that its own raw times rule out: such a record counts for nothing.

The one place that says which contradictions a result can have; docs/contradictions.md has the same list for people.
What is named here is impossible in a record that this program wrote, in any version: clocks, rounding and bounds that
were moved since have more room in each check than they can need. A record that passes is not true for that
(docs/threat-model.md). What contradicts another record, as a copy does, is found where the records are together
(`bench.copied_steps`); what those of tenants can have, `bench.tenant_contradictions` says.
"""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from functools import lru_cache

from bench.device_contradictions import check_counters, check_devices, check_passes
from bench.models.flops import StepCost, count_step_cost
from bench.peaks import Peaks, find_gpu_peaks
from bench.roofline import find_bound
from bench.schema import EARLIEST, LATEST, Cell, InvalidDocumentError, Result, Roofline, read_result
from bench.tenant_contradictions import check_tenants, check_unsaid_of_tenants
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
# Every version counted the same operations of a cell. Where a later one counts those of a layer otherwise, that is a
# part of a model's work; a count of half the work or of twice as much is of other work.
MAX_WORK_FACTOR = 2.0

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
    """Yield that the work is not that of the cell, or that the peak is not that of the cell's devices."""
    roofline = result.roofline
    if roofline is None:
        return
    stored, least = roofline.flops_per_step, roofline.least_flops_per_step
    if least is not None and least > stored:
        yield f"roofline.least_flops_per_step is {least:.4g}, more than its flops_per_step"
    work = count_work(result.cell)
    if work is not None:
        for name, found, counted in (
            ("flops_per_step", stored, work.flops),
            ("least_flops_per_step", least, work.least_flops),
            ("min_bytes_per_step", roofline.min_bytes_per_step, work.min_bytes),
        ):
            if found is not None and not _are_near(found, counted, MAX_WORK_FACTOR):
                yield f"roofline.{name} is {found:.4g}, a step of its cell takes {counted:.4g}"
    known, peak = find_table_peaks(result).flops_per_second, roofline.peak_flops_per_second
    if known and peak and not _are_near(peak, known, MAX_PEAK_FACTOR):
        yield f"roofline.peak_flops_per_second is {peak:.4g}, that of its GPUs is {known:.4g}"


def check_verdict(result: Result) -> Found:
    """Yield a verdict that the record's own evidence carries, and its reasons do not name."""
    work, peaks = count_work(result.cell), find_table_peaks(result)
    least = 0 if work is None else work.least_flops
    bound = None if work is None else find_bound(least, work.min_bytes, peaks)
    memory_seconds = (bound.memory_seconds if bound is not None else None) or 0.0
    peak = peaks.flops_per_second
    yield from check_unsaid_verdicts(result, least_flops=least, table_peak=peak, memory_seconds=memory_seconds)
    if result.tenancy is not None and result.cell.tenants == len(result.tenancy.tenants):
        works = [count_work(result.cell, tenant) for tenant in range(result.cell.tenants)]
        leasts = [0 if found is None else found.least_flops for found in works]
        yield from check_unsaid_of_tenants(result, least_flops=leasts, table_peak=peak)


def find_table_peaks(result: Result) -> Peaks:
    """Return the peaks of as many GPUs as the cell has, by this version's table; unknown of a CPU, or of no known GPU.

    How many GPUs there were, the cell says: what the environment lists, a record can lengthen.
    """
    gpus = result.environment.gpus if result.cell.device == "gpu" and result.environment is not None else ()
    return find_gpu_peaks([gpu.name for gpu in gpus][:1] * result.cell.num_gpus, result.cell.precision)


@lru_cache(maxsize=4096)
def count_work(cell: Cell, tenant: int = 0) -> StepCost | None:
    """Return the operations and bytes of a step of a cell, on all its GPUs, by this version's count of its layers.

    None where a step of so few samples cannot be counted.
    """
    one = cell.as_tenant(tenant) if cell.tenants > 1 else cell
    if one.batch_size < one.num_gpus:
        return None
    cost = count_step_cost(one)
    return replace(
        cost,
        flops=cost.flops * one.num_gpus,
        least_flops=cost.least_flops * one.num_gpus,
        min_bytes=cost.min_bytes * one.num_gpus,
    )


def _are_near(stored: float, expected: float, factor: float) -> bool:
    return expected <= factor * stored <= factor**2 * expected


CHECKS: Mapping[str, Callable[[Result], Found]] = {
    "duration": check_duration,
    "window": check_window,
    "parts-of-steps": check_parts_of_steps,
    "rates": check_rates,
    "peak": check_peak,
    "devices": check_devices,
    "passes": check_passes,
    "counters": check_counters,
    "tenants": check_tenants,
    "verdict": check_verdict,
}
"""Every check, by the name that docs/contradictions.md has for it."""
