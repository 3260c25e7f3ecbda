"""Relate the results of a run's CPU cells to one peak per host, so that the shares of a column have one denominator.

Each process measures the host's matrix product for itself, at the clock that it happened to find. The highest of all
figures of a host, in a precision and with a number of threads, is the host's peak of the run.
"""

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from bench.schema import Precision, Result, Roofline

# As bench.validity.work.MAX_HOST_DRIFT: what identical runs differ by anyway.
MAX_DRIFT = 0.10
# The framework of figures in results that do not hold a HostPeak: those were the highest so far, of all frameworks.
ALL_FRAMEWORKS = "all frameworks"

Attempts = Mapping[str, Sequence[Sequence[Result]]]
"""cell_id to one list per repeat of its attempts."""


@dataclass(frozen=True, kw_only=True)
class Host:
    """What a peak belongs to."""

    hostname: str
    cpu_model: str
    precision: Precision
    num_threads: int


@dataclass(frozen=True, kw_only=True)
class HostDrift:
    """The matrix products of one framework on one host differed by more than MAX_DRIFT between the run's results."""

    host: Host
    framework: str
    low_flops_per_second: float
    high_flops_per_second: float
    num_results: int


@dataclass(kw_only=True)
class HostFigures:
    """The figures of one host in one run, in operations per second."""

    num_results: int = 0
    theoretical: list[float] = field(default_factory=list)
    products: defaultdict[str, list[float]] = field(default_factory=lambda: defaultdict(list))
    """By framework: the fastest matrix product of each result."""

    def add(self, result: Result) -> None:
        """Add the figures of a result; those made before results held a HostPeak hold the peak of their time."""
        host, roofline = result.host_peak, result.roofline
        if host is not None:
            products = [rate for rate in (host.before_flops_per_second, host.after_flops_per_second) if rate]
            if products:
                self.products[host.framework].append(max(products))
            if host.theoretical_flops_per_second:
                self.theoretical.append(host.theoretical_flops_per_second)
        elif roofline is not None and roofline.peak_flops_per_second:
            self.products[ALL_FRAMEWORKS].append(roofline.peak_flops_per_second)
        self.num_results += 1

    @property
    def peak_flops_per_second(self) -> float | None:
        """The highest of all; None without any."""
        return max((*self.theoretical, *(rate for rates in self.products.values() for rate in rates)), default=None)

    @property
    def source(self) -> str:
        """Where the highest comes from, in words."""
        if self.peak_flops_per_second in self.theoretical:
            found = "cores x width x clock"
        else:
            framework = max(self.products, key=lambda name: max(self.products[name]))
            found = f"matrix product in {framework}"
        return f"{found}; the highest of {self.num_results} results on this host"


class HostPeaks:
    """The peaks of all hosts of a run."""

    def __init__(self, attempts: Attempts) -> None:
        self._figures: dict[Host, HostFigures] = {}
        for result in _list_results(attempts):
            if (host := _identify(result)) is not None:
                self._figures.setdefault(host, HostFigures()).add(result)

    def relate(self, attempts: Attempts) -> dict[str, list[list[Result]]]:
        """Return the attempts with each CPU result's share of its host's peak computed anew, as its roofline."""
        return {
            cell_id: [[self._relate_result(result) for result in found] for found in repeats]
            for cell_id, repeats in attempts.items()
        }

    def list_drifts(self) -> tuple[HostDrift, ...]:
        """Return each host and framework whose matrix products differ by more than MAX_DRIFT between results."""
        return tuple(
            HostDrift(
                host=host,
                framework=framework,
                low_flops_per_second=min(rates),
                high_flops_per_second=max(rates),
                num_results=len(rates),
            )
            for host, figures in self._figures.items()
            for framework, rates in figures.products.items()
            if max(rates) / min(rates) - 1 > MAX_DRIFT
        )

    def _relate_result(self, result: Result) -> Result:
        host = _identify(result)
        if host is None or result.roofline is None or result.samples is None:
            return result
        figures = self._figures[host]
        peak = figures.peak_flops_per_second
        if peak is None:
            return result
        roofline = _compute_roofline(result.roofline, peak, figures.source, result.samples.center_step_seconds)
        return _add_note(result.model_copy(update={"roofline": roofline}))


def _list_results(attempts: Attempts) -> Iterator[Result]:
    return (result for repeats in attempts.values() for found in repeats for result in found)


def _identify(result: Result) -> Host | None:
    """Return the host that a CPU cell ran on; None for a GPU cell, and where it is not known."""
    environment = result.environment
    if result.cell.device != "cpu" or environment is None:
        return None
    return Host(
        hostname=environment.hostname,
        cpu_model=environment.cpu_model,
        precision=result.cell.precision,
        num_threads=environment.num_threads,
    )


def _compute_roofline(roofline: Roofline, peak: float, source: str, step_seconds: float) -> Roofline:
    """Return the roofline by this peak; a CPU's is that of arithmetic alone."""
    min_step_seconds = roofline.flops_per_step / peak
    update = {
        "peak_flops_per_second": peak,
        "peak_source": source,
        "share_of_peak": roofline.achieved_flops_per_second / peak,
        "min_step_seconds": min_step_seconds,
        "bound": "arithmetic",
        "share_of_roofline": min_step_seconds / step_seconds,
    }
    return roofline.model_copy(update=update)


def _add_note(result: Result) -> Result:
    """Return the result with a note where its process, or the run's peak, says that it was faster than the host.

    The verdict stays: it was passed on what its process knew, and the run's peak is at least as high.
    """
    roofline, validity = result.roofline, result.validity
    if roofline is None or roofline.share_of_peak is None or validity is None or not roofline.flops_per_step:
        return result
    least = roofline.least_flops_per_step
    share = roofline.share_of_peak * (1.0 if least is None else least / roofline.flops_per_step)
    if share <= 1 and all(reason.verdict != "over-peak" for reason in validity.reasons):
        return result
    note = f"{share:.0%} of the host's peak of this run, by the fewest operations that known algorithms need"
    return result.model_copy(update={"validity": validity.model_copy(update={"notes": (*validity.notes, note)})})
