"""Finds what the records of several tenants say that they, their window or the verdict on all of them rule out.

Every tenant is held against its own evidence, as the first is: what is summed over the tenants is the sum of all.
"""

from collections.abc import Iterator, Sequence
from statistics import fmean

from bench.copied_steps import has_own_steps
from bench.schema import Result, Samples, Tenancy, TenantRecord, Verdict
from bench.tenants.coordination import explain_apart
from bench.unsaid_verdicts import BOUND_FACTOR, LENGTH_FACTOR, find_host_peak, find_most_share
from bench.validity.input_pipeline import check_input
from bench.validity.inputs import ValidityInputs
from bench.validity.rate import check_rate
from bench.validity.series import MIN_LONG_STEPS, MIN_LONG_WINDOW_SECONDS, MIN_STEPS

# What was computed in the same process from the same floats: only its writing in decimal can differ, and it does not.
ROUNDING = 1e-6
# The steps of a tenant follow each other, and only the one that begins before the window and the one that ends after it
# do not count. These may be as long as all the others together, and a collection of garbage lie between two.
GAP_SECONDS = 1.0

Found = Iterator[str]


def check_tenants(result: Result) -> Found:
    """Yield what the records of the tenants, the result and the window that all have in common say against each other.

    Where each ran is held against what the cell shares, as the tenants themselves held it before they stepped.
    """
    tenancy = result.tenancy
    if tenancy is None or result.status != "ok" or tenancy.window_seconds is None:
        return
    yield from _check_first(result, tenancy.tenants[0])
    if tenancy.window_seconds < result.cell.min_seconds * (1 - ROUNDING):
        yield f"its common window of {tenancy.window_seconds:.3f} s is shorter than its cell's min_seconds"
    for record in tenancy.tenants:
        yield from _check_window(record, tenancy.window_seconds)
    yield from _check_places(result, tenancy)
    series: dict[tuple[float, ...], int] = {}
    for record in tenancy.tenants:
        if record.samples is not None and has_own_steps(record.samples):
            other = series.setdefault(record.samples.step_seconds, record.tenant)
            if other != record.tenant:
                yield f"tenants {other} and {record.tenant} have the same step times"


def check_unsaid_of_tenants(result: Result, *, least_flops: Sequence[int], table_peak: float | None) -> Found:
    """Yield in a line each verdict that a tenant says or its steps carry, and the verdict on all does not name.

    `least_flops`: the fewest operations of a step of each tenant; `table_peak`: of the device, None if not known.
    """
    tenancy = result.tenancy
    if tenancy is None or result.status != "ok" or result.validity is None:
        return
    named = {reason.verdict for reason in result.validity.reasons}
    found: list[tuple[Verdict, str]] = [*_list_rate_faults(result, tenancy, least_flops, table_peak)]
    for record in tenancy.tenants:
        faults = [
            *((reason.verdict, reason.message) for reason in record.reasons),
            *_list_series_faults(result, record),
        ]
        found += [(verdict, f"tenant {record.tenant}: {text}") for verdict, text in faults]
    for verdict, text in found:
        if verdict not in named:
            yield f"{text}, and its verdict does not say {verdict}"


def _check_first(result: Result, first: TenantRecord) -> Found:
    steps = [found.step_seconds for found in (first.samples, result.samples) if found is not None]
    if len(set(steps)) > 1:
        yield "the steps of tenant 0 are not those of the result"
    if first.phases.steady_seconds != result.phases.steady_seconds:
        yield "the seconds that the steps of tenant 0 took are not those of the result"


def _check_window(record: TenantRecord, window_seconds: float) -> Found:
    samples, seconds = record.samples, record.phases.steady_seconds
    if samples is None or seconds is None or not samples.step_seconds:
        return
    if seconds > window_seconds * (1 + ROUNDING):
        yield f"the steps of tenant {record.tenant} took {seconds:.3f} s of {window_seconds:.3f} s"
    elif (record.lateness_seconds or 0.0) + seconds > window_seconds * (1 + ROUNDING):
        yield f"tenant {record.tenant} began {record.lateness_seconds:.3f} s late and outlasted its window"
    total = sum(samples.step_seconds)
    if seconds > 2 * total + GAP_SECONDS:
        yield f"the steps of tenant {record.tenant} are {total:.3f} s in sum, and took {seconds:.3f} s"
    if window_seconds > 2 * seconds + 2 * max(samples.step_seconds) + GAP_SECONDS:
        yield f"tenant {record.tenant} stepped for {seconds:.3f} s of a window of {window_seconds:.3f} s"


def _check_places(result: Result, tenancy: Tenancy) -> Found:
    places = {record.tenant: record.place for record in tenancy.tenants if record.place is not None}
    apart = explain_apart(places, result.cell.sharing)
    if apart is not None:
        yield apart
    gpu = result.environment.gpu if result.environment is not None else None
    device = places[0].device if 0 in places else None
    if gpu is not None and device is not None and gpu.uuid != device:
        yield f"its tenants ran on {device}, its environment has {gpu.uuid}"


def _list_rate_faults(
    result: Result, tenancy: Tenancy, least_flops: Sequence[int], table_peak: float | None
) -> Iterator[tuple[Verdict, str]]:
    """Yield over-peak where all tenants together do more than the device can; a slice's peak is not known."""
    peak = table_peak or find_host_peak(result)
    if not peak or result.cell.sharing == "mig":
        return
    rates = zip(least_flops, tenancy.tenants, strict=True)
    share = sum(flops * (record.steps_per_second or 0.0) for flops, record in rates) / peak
    if share > find_most_share(result):
        yield "over-peak", f"its tenants together take {share:.1f} times the device's peak"


def _list_series_faults(result: Result, record: TenantRecord) -> Iterator[tuple[Verdict, str]]:
    """Yield what today's checks of a tenant's steps find, with each bound twice as wide."""
    samples, seconds = record.samples, record.phases.steady_seconds or 0.0
    if samples is None or not samples.step_seconds:
        return
    least = (MIN_STEPS if seconds < MIN_LONG_WINDOW_SECONDS else MIN_LONG_STEPS) / LENGTH_FACTOR
    if len(samples.step_seconds) < least:
        yield "too-short", f"{len(samples.step_seconds)} steps in {seconds:.3g} s"
    inputs = ValidityInputs(
        cell=result.cell,
        phases=record.phases,
        samples=_soften(samples),
        device_kind=None,
        num_threads=1,
        cpu_use=None,
        gpu_use=(),
        roofline=None,
    )
    for check in (check_rate, check_input):
        yield from ((verdict, "its steps are far from even") for verdict, _ in check(inputs))


def _soften(samples: Samples) -> Samples:
    """Return steps half as far from their mean, and waits half as long: at a bound where these are twice as far."""
    mean, waits = fmean(samples.step_seconds), samples.data_wait_seconds
    return samples.model_copy(
        update={
            "step_seconds": tuple(mean + (step - mean) / BOUND_FACTOR for step in samples.step_seconds),
            "data_wait_seconds": None if waits is None else tuple(wait / BOUND_FACTOR for wait in waits),
        }
    )
