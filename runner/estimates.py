"""Estimate what a run takes and costs before it is measured, by earlier results."""

import operator
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from statistics import median

from rich.console import Console

from bench.errors import UserError
from bench.registry import Device
from bench.schema import Cell, Run
from bench.store import Store
from collector.prices.table import PriceTable, find_machine_offers
from runner.matrix import Repeat
from runner.price_tables import check_machines, load_prices
from runner.profiles.model import Profile
from runner.progress import EstimateDocument, RunEvents
from runner.runs import Records, Retries, describe_plan, is_same_place, list_alike_runs, select_missing
from runner.terminal import format_wait

MAX_RUNS = 5
"""Runs that are read, those with most of the cells and then the newest first: each costs a listing and its records."""
NEAR_FIELDS = ("model", "framework", "tenants", "phase", "mode", "precision", "batch_size", "input_size")
"""What near cells may differ in, what tells most first."""


@dataclass(frozen=True, kw_only=True)
class Duration:
    """What one repeat of a cell takes."""

    seconds: float
    is_own: bool
    """Whether the cell itself took so long; else the nearest of the same device did."""


def read_durations(store: Store, run: Run, is_alike: Callable[[Run], bool]) -> Mapping[str, Duration]:
    """Return what a repeat of each cell takes, by its id, where earlier repeats say it: the median of those that ended
    ok, of the cell itself, or else of the cells of its device that are nearest by NEAR_FIELDS.

    `is_alike`: whether a run was where this one will be; another machine takes another time. The attempts of a repeat
    count together.
    """
    wanted = {planned.cell.cell_id: planned.cell for planned in run.cells}
    own: defaultdict[str, list[float]] = defaultdict(list)
    near: defaultdict[str, defaultdict[tuple[object, ...], list[float]]] = defaultdict(lambda: defaultdict(list))
    for earlier in list_alike_runs(store, run, is_alike)[-MAX_RUNS:]:
        cells = {planned.cell.cell_id: planned.cell for planned in earlier.cells}
        snapshot = Records(store, earlier.run_id).read_snapshot()
        for key in snapshot.find_present(Retries(failed=True)):
            if (cell := cells.get(key[0])) is not None and snapshot.seconds[key] > 0:
                own[key[0]].append(snapshot.seconds[key])
                near[cell.device][_list_near(cell)].append(snapshot.seconds[key])
    found = {}
    for cell_id, cell in wanted.items():
        if cell_id in own:
            found[cell_id] = Duration(seconds=median(own[cell_id]), is_own=True)
        elif others := near[cell.device]:
            fields = _list_near(cell)
            nearest = max(others, key=lambda other: tuple(map(operator.eq, fields, other)))
            found[cell_id] = Duration(seconds=median(others[nearest]), is_own=False)
    return found


def _list_near(cell: Cell) -> tuple[object, ...]:
    return tuple(getattr(cell, name) for name in NEAR_FIELDS)


@dataclass(frozen=True, kw_only=True)
class PoolPrice:
    """The price of a node."""

    per_hour: float
    currency: str
    source: str
    """Where it is from, in words."""


def find_pool_prices(
    profile: Profile | None, machines: Mapping[Device, str], prices: Path | None
) -> dict[Device, PoolPrice]:
    """Return the price of each pool that has one. Raise UserError where the prices have different currencies.

    `machines`: machine types by device, looked up in the price table `prices` (None: the shipped one), on demand, in
    the cheapest region. They go before the profile's `price_per_hour`.
    """
    if prices is not None and not machines:
        raise UserError("--prices: its prices are looked up by machine type; add --machine DEVICE=MACHINE")
    found: dict[Device, PoolPrice] = {}
    if profile is not None:
        for device, pool in profile.pools.items():
            if pool.price_per_hour is not None:
                source = f"profile {profile.name}"
                found[device] = PoolPrice(per_hour=pool.price_per_hour, currency=profile.currency, source=source)
    if machines:
        table = load_prices(prices)
        check_machines(table, machines, prices)
        found |= {device: _find_price(table, device, machine) for device, machine in machines.items()}
    currencies = sorted({price.currency for price in found.values()})
    if len(currencies) > 1:
        raise UserError(
            f"--machine: its price is in {table.currency}, another one of the profile in another currency "
            f"({', '.join(currencies)}); name the machines of all pools, or none"
        )
    return found


def price_profile(profile: Profile, prices: Mapping[Device, PoolPrice]) -> Profile:
    """Return the profile with these prices in its pools, so that the cap on the cost of a run can use them."""
    pools = {
        device: pool.model_copy(update={"price_per_hour": prices[device].per_hour}) if device in prices else pool
        for device, pool in profile.pools.items()
    }
    currency = next((price.currency for price in prices.values()), profile.currency)
    return profile.model_copy(update={"pools": pools, "currency": currency})


def _find_price(table: PriceTable, device: Device, machine: str) -> PoolPrice:
    rows = [
        row
        for row in find_machine_offers(table, machine)
        if row.purchase == "on-demand" and (row.gpu is not None) == (device == "gpu")
    ]
    if not rows:
        kind = "with a GPU" if device == "gpu" else "without a GPU"
        raise UserError(f"--machine {device}={machine}: the price table has no on-demand price of it {kind}")
    row = min(rows, key=lambda found: found.price_per_hour)
    return PoolPrice(per_hour=row.price_per_hour, currency=table.currency, source=f"{row.place}, {row.date}")


SECONDS_PER_HOUR = 3600.0
NOT_INCLUDED = "not in it: nodes that boot, pull images or are idle, disks, traffic, control planes"
GUESSED_SECONDS: Mapping[Device, float] = {"cpu": 27.0, "gpu": 16.0}
"""Medians of the 64 repeats on CPUs and 342 on GPUs in docs/results (of cells without tenants), process start included.
The slowest took 103 s and 51 s."""


def estimate_repeats(
    repeats: Sequence[Repeat], durations: Mapping[str, Duration], prices: Mapping[Device, PoolPrice]
) -> list[EstimateDocument]:
    """Return an estimate for each device. `durations`: by cell id; a repeat without one counts with GUESSED_SECONDS."""
    estimates = []
    devices: list[Device] = sorted({repeat.planned.cell.device for repeat in repeats})
    for device in devices:
        planned = [repeat.planned for repeat in repeats if repeat.planned.cell.device == device]
        guess, price = Duration(seconds=GUESSED_SECONDS[device], is_own=False), prices.get(device)
        found = [durations.get(one.cell.cell_id, guess) for one in planned]
        limits = [one.timeout_seconds for one in planned]
        expected = sum(min(one.seconds, limit) for one, limit in zip(found, limits, strict=True)) / SECONDS_PER_HOUR
        most = sum(limits) / SECONDS_PER_HOUR
        estimates.append(
            EstimateDocument(
                device=device,
                num_repeats=len(planned),
                num_known=sum(one.is_own for one in found),
                num_guessed=sum(one is guess for one in found),
                expected_hours=expected,
                most_hours=most,
                expected_cost=None if price is None else expected * price.per_hour,
                most_cost=None if price is None else most * price.per_hour,
                currency=None if price is None else price.currency,
                price=None if price is None else f"{price.per_hour:g} per hour, {price.source}",
            )
        )
    return estimates


def _describe_estimate(estimate: EstimateDocument) -> str:
    number, seconds = estimate.num_repeats, estimate.expected_hours * SECONDS_PER_HOUR
    guess = (
        f"a guess, {GUESSED_SECONDS[estimate.device]:g} s each: nothing was measured on this device here before, and "
        "large models take longer"
    )
    parts = [
        (estimate.num_known, "as they took here before"),
        (number - estimate.num_known - estimate.num_guessed, "as the nearest cells on this device took here"),
        (estimate.num_guessed, guess),
    ]
    named = [(count, words) for count, words in parts if count]
    basis = "; ".join(words if len(named) == 1 else f"{count} {words}" for count, words in named)
    most = format_wait(estimate.most_hours * SECONDS_PER_HOUR)
    price = "" if estimate.price is None else f"; {_add_costs([estimate])} ({estimate.price})"
    return f"{estimate.device}: {number} repeats take about {format_wait(seconds)}, at most {most} ({basis}){price}"


def describe_estimates(estimates: Sequence[EstimateDocument], max_cost: float | None = None) -> Iterator[str]:
    yield from map(_describe_estimate, estimates)
    priced = [one for one in estimates if one.price is not None]
    if not priced:
        return
    if len(priced) < len(estimates):
        yield "no price of all: name the others with --machine, or with price_per_hour in the profile"
        return
    expected, most = sum(one.expected_hours for one in estimates), sum(one.most_hours for one in estimates)
    hours = f"about {expected:.2f} node-hours, at most {most:.2f}"
    yield f"in all: {hours}; {_add_costs(estimates)}; {NOT_INCLUDED}"
    if max_cost is not None and sum(one.expected_cost or 0 for one in estimates) > max_cost:
        yield f"--max-cost {max_cost:g}: the run would end before all of it is measured"


def _add_costs(estimates: Sequence[EstimateDocument]) -> str:
    expected, most = sum(one.expected_cost or 0 for one in estimates), sum(one.most_cost or 0 for one in estimates)
    return f"about {expected:.2f} {estimates[0].currency}, at most {most:.2f}"


def print_dry_run(
    run: Run,
    store: Store,
    prices: Mapping[Device, PoolPrice],
    events: RunEvents | None,
    console: Console,
    *,
    retries: Retries,
    max_cost: float | None,
) -> None:
    """Print, or report as one event, what the run lacks and what that takes by earlier results at the same place."""
    say = partial(console.print, soft_wrap=True)
    if any(planned.may_grow for planned in run.cells):
        from runner.stopping import expect

        run = expect(store, run, partial(is_same_place, run), say if events is None else lambda _: None)
    missing = select_missing(run, Records(store, run.run_id).read_snapshot(), retries)
    estimates = estimate_repeats(missing, read_durations(store, run, partial(is_same_place, run)), prices)
    if events is None:
        describe_plan(run, missing, say)
        for line in describe_estimates(estimates, max_cost):
            say(line)
        return
    events.report(
        "estimated",
        matrix=run.matrix,
        store=store.url,
        num_cells=len(run.cells),
        num_repeats=run.num_repeats,
        num_missing=len(missing),
        estimates=[one.model_dump() for one in estimates],
    )
