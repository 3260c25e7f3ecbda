"""Compute the figures of the tenants of one cell: of each kind of tenant, and of the device that they share."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from collector.ratio_verdicts import NO_INTERVAL
from collector.results.frames import Row
from collector.sharing.repeats import PERCENTILES, CellGroup, GroupFigures, Role
from collector.sharing.series import (
    Series,
    compute_jain_index,
    estimate_quotient,
    estimate_total,
    spread,
)
from collector.statistics import Estimate, compute_geometric_mean, invert_estimate
from collector.units import format_significant


@dataclass(frozen=True, kw_only=True)
class SharedCell:
    """A cell with tenants, and what it is held against."""

    group: CellGroup
    figures: GroupFigures
    alone: Mapping[Role, GroupFigures]
    """By role, the same work alone; a role that is held against nothing is left out."""

    def take_rates(self, role: Role) -> Series | None:
        """Return the samples per second of all tenants with the role together."""
        return self.figures.make_series([sum(rates) for rates in self.figures.rates[role]])

    def take_alone_rate(self, role: Role) -> Series | None:
        """Return the samples per second of the role's work alone."""
        figures = self.alone.get(role)
        return figures.make_series([rate for (rate,) in figures.rates["cell"]]) if figures else None


def describe_role(shared: SharedCell, role: Role) -> Row:
    """Return the columns of the tenants with one role: speed and latency, and both against the same work alone."""
    figures, alone = shared.figures, shared.alone.get(role)
    rates = shared.take_rates(role)
    mean = figures.make_series([_average(found) for found in figures.rates[role]])
    slowest = figures.make_series([min(found) for found in figures.rates[role]])
    alone_rate = shared.take_alone_rate(role)
    return {
        **spread("role_samples_per_s", rates.estimate() if rates else None),
        **spread("tenant_samples_per_s", mean.estimate() if mean else None),
        **spread("alone_samples_per_s", alone_rate.estimate() if alone_rate else None),
        **spread("slowdown", _divide(alone_rate, mean)),
        **spread("slowest_slowdown", _divide(alone_rate, slowest)),
        **_describe_latencies(figures, role, alone),
        "tenant_peak_bytes": max((max(peaks) for peaks in figures.memory_bytes[role] if peaks), default=None),
        "role_peak_bytes": max((sum(peaks) for peaks in figures.memory_bytes[role] if peaks), default=None),
    }


def describe_device(shared: SharedCell) -> Row:
    """Return the columns of the device: what all tenants get together, how evenly, and for what energy."""
    roles = shared.group.roles
    rates = [shared.take_rates(role) for role in roles]
    alone = [shared.take_alone_rate(role) for role in roles]
    aggregate = _total(rates, alone)
    return {
        **spread("aggregate_ratio", aggregate),
        "aggregate_log_standard_error": aggregate.log_standard_error if aggregate else None,
        "aggregate_degrees_of_freedom": aggregate.degrees_of_freedom if aggregate else None,
        **_judge(aggregate),
        **_describe_fairness(shared, alone),
        **_describe_energy(shared, rates),
        "device_peak_bytes": shared.figures.device_peak_bytes,
    }


def _describe_latencies(figures: GroupFigures, role: Role, alone: GroupFigures | None) -> Row:
    row: Row = {}
    for percent in PERCENTILES:
        shared = figures.make_series(figures.latencies[role][percent])
        before = alone.make_series(alone.latencies["cell"][percent]) if alone else None
        row |= spread(f"p{percent}_step_seconds", shared.estimate() if shared else None)
        row[f"alone_p{percent}_step_seconds"] = before.estimate().center if before else None
        row |= spread(f"p{percent}_ratio", _divide(shared, before))
    return row


def _describe_fairness(shared: SharedCell, alone: Sequence[Series | None]) -> Row:
    """Return Jain's index over the tenants' rates, each as a share of what its work does alone.

    Where all tenants run the same, that divisor is the same for all and cancels.
    """
    roles = shared.group.roles
    divisors = [series.estimate().center if series else None for series in alone] if len(roles) > 1 else [1.0]
    if shared.group.row["tenants"] < 2 or None in divisors:
        return {}
    shares = [
        [rate / by for rates, by in zip(repeat, divisors, strict=True) if by is not None for rate in rates]
        for repeat in zip(*(shared.figures.rates[role] for role in roles), strict=True)
    ]
    indices = [compute_jain_index(found) for found in shares]
    series = shared.figures.make_series(indices)
    row = dict(spread("jain_index", series.estimate() if series else None))
    if row["jain_index_high"] is not None:
        row["jain_index_high"] = min(1.0, row["jain_index_high"])  # the index is no larger
    return row | {"lowest_jain_index": min(indices)}


def _describe_energy(shared: SharedCell, rates: Sequence[Series | None]) -> Row:
    """Return the energy per sample, and the energy over what the same samples cost alone."""
    figures = shared.figures
    joules = figures.make_series(figures.joules_per_sample)
    if joules is None or None in rates:
        return {}
    known = [series for series in rates if series is not None]
    watts = [
        energy * sum(parts) for energy, *parts in zip(joules.values, *(series.values for series in known), strict=True)
    ]
    per_joule = [
        figures.make_series([value / power for value, power in zip(series.values, watts, strict=True)])
        for series in known
    ]
    alone = [
        found.make_series([1 / value for value in found.joules_per_sample]) if found else None
        for found in (shared.alone.get(role) for role in shared.group.roles)
    ]
    gain = _total(per_joule, alone)
    return {
        **spread("joules_per_sample", joules.estimate()),
        **spread("energy_ratio", invert_estimate(gain) if gain else None),
    }


def _judge(aggregate: Estimate | None) -> Row:
    """Return how much of one alone all tenants get together, in words, and the test of a ratio of 1."""
    if aggregate is None:
        return {}
    if aggregate.interval is None:
        return {"verdict": NO_INTERVAL}
    direction = "more than one alone" if aggregate.center > 1 else "less than one alone"
    verdict = f"together {format_significant(aggregate.center)}x one alone"
    return {"verdict": verdict, "p_value": aggregate.p_value, "estimate": aggregate, "direction": direction}


def _average(rates: Sequence[float]) -> float:
    """Return the geometric mean; 0 where a tenant did nothing."""
    return compute_geometric_mean(rates) if min(rates) > 0 else 0.0


def _divide(numerator: Series | None, denominator: Series | None) -> Estimate | None:
    return estimate_quotient(numerator, denominator) if numerator and denominator else None


def _total(numerators: Sequence[Series | None], denominators: Sequence[Series | None]) -> Estimate | None:
    """Return the sum of the quotients; None where one of them is not known."""
    over, under = [one for one in numerators if one], [one for one in denominators if one]
    if len(over) < len(numerators) or len(under) < len(denominators):
        return None
    return estimate_total(over, under)
