"""The matrix products that the results of a run measured on their hosts, by host and framework."""

from array import array
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from statistics import median

from bench.schema import Precision

# As bench.validity.work.MAX_HOST_DRIFT: what identical runs differ by anyway.
MAX_DRIFT = 0.10


@dataclass(frozen=True, kw_only=True)
class Host:
    """What a peak belongs to."""

    name: str
    cpu_model: str
    precision: Precision
    num_threads: int


@dataclass(kw_only=True)
class Products:
    """The fastest matrix products of one framework's results on one host, in operations per second."""

    rates: "array[float]" = field(default_factory=lambda: array("d"))
    """Of each result; a host may have 100,000."""

    @property
    def high(self) -> float:
        """The highest of all."""
        return max(self.rates)


@dataclass(frozen=True, kw_only=True)
class HostProducts:
    """Holds the lowest and the highest rate of one framework's matrix products on one host, in operations per second.

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


def summarize_products(host: Host, products: Mapping[str, Products]) -> Iterable[HostProducts]:
    """Yield the rates of each framework's products on a host."""
    for framework, own in products.items():
        yield HostProducts(
            host=host,
            framework=framework,
            low_flops_per_second=min(own.rates),
            median_flops_per_second=median(own.rates),
            high_flops_per_second=own.high,
            num_results=len(own.rates),
        )
