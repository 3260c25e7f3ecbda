"""Relate the results of a run's CPU cells to one peak per host, so that the shares of a column have one denominator.

Each process measures the host's matrix product for itself, at the clock that it happened to find. The highest of all
figures of a host, in a precision and with a number of threads, is the host's peak of the run.
"""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from collector.labels import FRAMEWORK_NAMES
from collector.units import PERCENT, choose_rate_unit, format_number
from collector.word_lists import count_things, join_words

# The framework of figures in results that do not hold a HostPeak: those were the highest so far, of all frameworks.
ALL_FRAMEWORKS = "all frameworks"
# As bench.verdicts.device.MAX_HOST_DRIFT: what identical runs differ by anyway.
MAX_DRIFT = 0.10
HOST_COLUMNS = ["host", "cpu_model", "precision", "num_threads"]
UNKNOWN = {"cpu_model": "", "num_threads": 0}
"""What is not known is the same for all results of a host: a missing value equals none."""


class Host(NamedTuple):
    """What a peak belongs to."""

    name: str
    cpu_model: str
    precision: str
    num_threads: int


@dataclass(frozen=True, kw_only=True)
class HostProducts:
    """Holds the rates of one framework's matrix products on one host, in operations per second.

    Each process multiplies in its own framework: the rate of one framework says nothing of another's.
    """

    host: Host
    framework: str
    low_flops_per_second: float
    median_flops_per_second: float
    high_flops_per_second: float
    num_results: int

    @property
    def has_drifted(self) -> bool:
        """Whether the fastest result is more than MAX_DRIFT above the slowest: the host's speed changed."""
        return self.high_flops_per_second / self.low_flops_per_second - 1 > MAX_DRIFT


@dataclass(frozen=True, kw_only=True)
class HostFigures:
    """The figures of one host in one run, in operations per second."""

    num_results: int
    theoretical: float | None
    """The highest of the results."""
    products: tuple[HostProducts, ...]

    @property
    def peak_flops_per_second(self) -> float | None:
        """The highest of all; None without any."""
        highest = [one.high_flops_per_second for one in self.products]
        return max(highest if self.theoretical is None else [*highest, self.theoretical], default=None)

    @property
    def source(self) -> str:
        """Where the highest comes from, in words."""
        if self.peak_flops_per_second == self.theoretical:
            found = "cores x width x clock"
        else:
            fastest = max(self.products, key=lambda one: one.high_flops_per_second)
            found = f"matrix product in {fastest.framework}"
        return f"{found}; the highest of {self.num_results} results on this host"


def find_host_peaks(attempts: pd.DataFrame) -> dict[Host, HostFigures]:
    """Return the figures of each host that CPU cells ran on, in the order in which the attempts name them."""
    on_cpu = attempts[(attempts["device"] == "cpu") & attempts["host"].notna()].fillna(UNKNOWN)
    # Results that were made before they held a HostPeak hold the peak of their time.
    is_own = on_cpu["host_framework"].notna()
    on_cpu = on_cpu.assign(
        product_framework=on_cpu["host_framework"].fillna(ALL_FRAMEWORKS),
        product=on_cpu["cpu_product_flops_per_second"].where(is_own, on_cpu["peak_flops_per_second"]),
        theoretical=on_cpu["host_theoretical_flops_per_second"].where(is_own),
    )
    found = {}
    for names, own in on_cpu.groupby(HOST_COLUMNS, sort=False):
        host = Host(*names)  # type: ignore[arg-type]  # as the columns are
        theoretical = own["theoretical"].max()
        found[host] = HostFigures(
            num_results=len(own),
            theoretical=float(theoretical) if theoretical > 0 else None,
            products=tuple(_list_products(host, own[own["product"] > 0])),
        )
    return found


def _list_products(host: Host, rows: pd.DataFrame) -> Iterable[HostProducts]:
    for framework, rates in rows.groupby("product_framework", sort=False)["product"]:
        yield HostProducts(
            host=host,
            framework=str(framework),
            low_flops_per_second=float(rates.min()),
            median_flops_per_second=float(rates.median()),
            high_flops_per_second=float(rates.max()),
            num_results=len(rates),
        )


def list_products(hosts: dict[Host, HostFigures]) -> tuple[HostProducts, ...]:
    """Return at which rates the matrix products of each host and framework ran."""
    return tuple(products for figures in hosts.values() for products in figures.products)


def relate_to_hosts(attempts: pd.DataFrame, hosts: dict[Host, HostFigures]) -> pd.DataFrame:
    """Return the attempts with shares of their host's peak, and the notes that go with them.

    A CPU's roofline is that of arithmetic alone. Results of GPUs, and of hosts without a peak, stay as they are.
    """
    known = {host: (figures.peak_flops_per_second, figures.source) for host, figures in hosts.items()}
    places = zip(*(attempts[HOST_COLUMNS].fillna(UNKNOWN)[name] for name in HOST_COLUMNS), strict=True)
    found = [
        known.get(Host(*place)) if device == "cpu" else None
        for device, place in zip(attempts["device"], places, strict=True)
    ]
    peaks = np.array([peak if (peak := one and one[0]) else np.nan for one in found], dtype=np.float64)
    is_related = (
        ~np.isnan(peaks) & (attempts["flops_per_step"].notna() & attempts["center_step_seconds"].notna()).to_numpy()
    )
    if not is_related.any():
        return attempts
    rows, peaks = attempts[is_related], peaks[is_related]
    least_seconds = rows["flops_per_step"].astype("float64") / peaks
    shares = rows["achieved_flops_per_second"] / peaks
    attempts = attempts.copy()
    related: dict[str, Any] = {
        "peak_flops_per_second": peaks,
        "peak_source": [one[1] for one, is_own in zip(found, is_related, strict=True) if one and is_own],
        "share_of_peak": shares,
        "min_step_seconds": least_seconds,
        "bound": "arithmetic",
        "share_of_roofline": least_seconds / rows["center_step_seconds"],
        "notes": _add_notes(rows, shares),
    }
    for name, values in related.items():
        attempts.loc[is_related, name] = values
    return attempts


def _add_notes(rows: pd.DataFrame, shares_of_peak: "pd.Series[float]") -> "pd.Series[str]":
    """Return the notes, with one more where the process, or the run's peak, says that it was faster than the host.

    The verdict stays: it was passed on what its process knew, and the run's peak is at least as high.
    """
    operations = rows["flops_per_step"].astype("float64")
    shares = shares_of_peak * (rows["least_flops_per_step"].astype("float64") / operations).fillna(1.0)
    is_over = (shares > 1) | rows["fault_verdicts"].fillna("").str.split().map(lambda faults: "over-peak" in faults)
    is_over &= rows["verdict"].notna() & (operations > 0)
    own = shares.map(
        "{:.0%} of the host's peak of this run, by the fewest operations that known algorithms need".format
    )
    return rows["notes"].mask(is_over, (rows["notes"] + "; ").fillna("") + own)


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
