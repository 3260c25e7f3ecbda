"""Estimate the node-hours and the price of repeats: by earlier results of the same cells, else by their time limits."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from bench.registry import Device
from runner.estimates.pool_prices import PoolPrice
from runner.matrix.plan import Repeat

SECONDS_PER_HOUR = 3600.0
NOT_INCLUDED = "not in it: nodes that boot, pull images or are idle, disks, traffic, control planes"


@dataclass(frozen=True, kw_only=True)
class PoolEstimate:
    """What the repeats of one device take."""

    device: Device
    num_repeats: int
    num_known: int
    """Repeats of cells of which earlier results say how long they take."""
    expected_hours: float
    """Node-hours; a repeat of an unknown cell counts with its time limit."""
    most_hours: float
    """Node-hours if every repeat took its time limit."""
    price: PoolPrice | None

    @property
    def expected_cost(self) -> float | None:
        """What the expected hours cost; None where the nodes have no price."""
        return None if self.price is None else self.expected_hours * self.price.per_hour


def estimate_pools(
    repeats: Sequence[Repeat], durations: Mapping[str, float], prices: Mapping[Device, PoolPrice]
) -> list[PoolEstimate]:
    """Return an estimate for each device of the repeats; `durations` in seconds, by the cell's id."""
    devices: list[Device] = sorted({repeat.planned.cell.device for repeat in repeats})
    return [
        _estimate_pool(device, [one for one in repeats if one.planned.cell.device == device], durations, prices)
        for device in devices
    ]


def _estimate_pool(
    device: Device, repeats: Sequence[Repeat], durations: Mapping[str, float], prices: Mapping[Device, PoolPrice]
) -> PoolEstimate:
    limits = [repeat.planned.timeout_seconds for repeat in repeats]
    known = [durations.get(repeat.planned.cell.cell_id) for repeat in repeats]
    expected = [limit if found is None else min(found, limit) for found, limit in zip(known, limits, strict=True)]
    return PoolEstimate(
        device=device,
        num_repeats=len(repeats),
        num_known=sum(found is not None for found in known),
        expected_hours=sum(expected) / SECONDS_PER_HOUR,
        most_hours=sum(limits) / SECONDS_PER_HOUR,
        price=prices.get(device),
    )


def describe_estimates(estimates: Sequence[PoolEstimate], max_cost: float | None = None) -> Iterator[str]:
    """Yield the estimates in words, their sum, and whether a cap on the cost leaves room for them."""
    for one in estimates:
        hours = _describe_amount(one.expected_hours, one.most_hours, "node-hours", is_known=one.num_known > 0)
        basis = "by their time limits" if not one.num_known else f"{one.num_known} of them by earlier results"
        yield f"{one.device}: {one.num_repeats} repeats take {hours}, {basis}{_describe_price(one)}"
    if not estimates:
        return
    yield f"in all: {_describe_sum(estimates)}; {NOT_INCLUDED}"
    total = _sum_costs(estimates)
    if max_cost is not None and total is not None and total > max_cost:
        yield f"--max-cost {max_cost:g}: the run would end before all of it is measured"


def _describe_amount(expected: float, most: float, unit: str, *, is_known: bool) -> str:
    """Return `about 0.50 node-hours, at most 2.00`; the limit alone where nothing is known of any repeat."""
    return f"about {expected:.2f} {unit}, at most {most:.2f}" if is_known else f"at most {most:.2f} {unit}"


def _describe_price(one: PoolEstimate) -> str:
    if one.price is None:
        return "; no price: give --machine, or price_per_hour in the profile"
    expected, most = (hours * one.price.per_hour for hours in (one.expected_hours, one.most_hours))
    amount = _describe_amount(expected, most, one.price.currency, is_known=one.num_known > 0)
    return f"; {amount} ({one.price.per_hour:g} per hour, {one.price.source})"


def _describe_sum(estimates: Iterable[PoolEstimate]) -> str:
    estimates = list(estimates)
    is_known = any(one.num_known for one in estimates)
    hours, most = (
        sum(hours) for hours in zip(*((one.expected_hours, one.most_hours) for one in estimates), strict=True)
    )
    text = _describe_amount(hours, most, "node-hours", is_known=is_known)
    cost = _sum_costs(estimates)
    if cost is None:
        return text
    (currency,) = {one.price.currency for one in estimates if one.price is not None}
    highest = sum(one.most_hours * one.price.per_hour for one in estimates if one.price is not None)
    return f"{text}; {_describe_amount(cost, highest, currency, is_known=is_known)}"


def _sum_costs(estimates: Iterable[PoolEstimate]) -> float | None:
    """Return the expected cost of all pools; None where one has no price."""
    costs = [one.expected_cost for one in estimates]
    return None if None in costs else sum(cost for cost in costs if cost is not None)
