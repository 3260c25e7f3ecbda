"""Say at which rates the frameworks' own matrix products ran on a host, where these differ."""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence

from collector.labels import FRAMEWORK_NAMES
from collector.results.host_peaks import MAX_DRIFT, Host, HostProducts
from collector.units import PERCENT, choose_rate_unit, format_number
from collector.word_lists import count_things, join_words

LEAST_RESULTS = 2
"""Of a framework on a host: the range of one result is none."""


def describe_unequal_products(products: Iterable[HostProducts]) -> str:
    """Return at which rates two frameworks multiply on each host where one is faster; empty where none is.

    One is faster if its slowest result is more than MAX_DRIFT above the fastest result of the other.
    """
    by_host: defaultdict[Host, list[HostProducts]] = defaultdict(list)
    for one in products:
        if one.framework in FRAMEWORK_NAMES and one.num_results >= LEAST_RESULTS:
            by_host[one.host].append(one)
    return " ".join(filter(None, (_describe_host(host, own) for host, own in by_host.items())))


def _describe_host(host: Host, own: list[HostProducts]) -> str:
    own = sorted(own, key=lambda one: one.median_flops_per_second)
    slowest, fastest = own[0], own[-1]
    if fastest.low_flops_per_second <= slowest.high_flops_per_second * (1 + MAX_DRIFT):
        return ""
    unit = choose_rate_unit([fastest.median_flops_per_second])
    rates = [f"{FRAMEWORK_NAMES[one.framework]}'s {format_number(one.median_flops_per_second, unit)}" for one in own]
    numbers = join_words(f"{one.num_results:,}" for one in own)
    return (
        f"The frameworks' own matrix products ({host.precision}, {count_things(host.num_threads, 'thread')}) ran at "
        f"different rates on {host.name}: {join_words(rates)} {unit.label}, medians of {numbers} results."
    )


def describe_drift(drift: HostProducts) -> str:
    """Return how far apart the products of one framework ran on one host."""
    host, low, high = drift.host, drift.low_flops_per_second, drift.high_flops_per_second
    unit = choose_rate_unit([high])
    framework = FRAMEWORK_NAMES.get(drift.framework, drift.framework)
    return (
        f"matrix products of {framework} ({host.precision}, {count_things(host.num_threads, 'thread')}) ran at "
        f"{format_number(low, unit)} to {format_number(high, unit)} {unit.label} in {drift.num_results} results on the "
        f"CPU (the faster of two in each), {format_number(high / low - 1, PERCENT)} % apart"
    )


def describe_widest_drift(drifted: Sequence[HostProducts]) -> str:
    """Return by how many percent the fastest products exceed the slowest; `drifted`: as `list_drifted` yields them."""
    widest = drifted[0]
    return f"{format_number(widest.high_flops_per_second / widest.low_flops_per_second - 1, PERCENT)} %"


def list_drifted(products: Iterable[HostProducts]) -> Iterator[HostProducts]:
    """Yield the products of those frameworks and hosts whose speed changed, the widest range first."""
    drifted = [one for one in products if one.has_drifted]
    yield from sorted(drifted, key=lambda one: one.low_flops_per_second / one.high_flops_per_second)
