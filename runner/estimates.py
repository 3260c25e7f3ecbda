"""Estimate what a run takes and costs before it is measured, by earlier results."""

import operator
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import islice
from pathlib import Path
from statistics import fmean, median

from rich.console import Console

from bench.errors import UserError
from bench.registry import Device
from bench.schema import Cell, Run
from bench.store import Store
from bench.store.documents import read_runs
from collector.prices.table import PriceTable, find_machine_offers
from runner.matrix import Repeat, order_repeats
from runner.price_tables import check_machines, load_prices
from runner.profiles.model import Profile
from runner.progress import EstimateDocument, RunEvents
from runner.runs import Records, Retries, describe_plan, is_same_place, select_missing
from runner.terminal import format_wait

MAX_RUNS = 5
"""Runs that are read, the newest first: each costs a listing and its records."""
NEAR_FIELDS = ("phase", "mode", "precision", "batch_size", "input_size")
"""What near cells may differ in."""


@dataclass(frozen=True, kw_only=True)
class Duration:
    """What one repeat of a cell takes."""

    seconds: float
    is_own: bool
    """Whether the cell itself took so long; else the nearest of the same model, framework and device did."""


def read_durations(store: Store, run: Run, is_alike: Callable[[Run], bool]) -> Mapping[str, Duration]:
    """Return what a repeat of each cell takes, by its id, where earlier repeats say it: the median of those that ended
    ok in the newest runs, of the cell itself, or else of those that share most of NEAR_FIELDS with it.

    `is_alike`: whether a run was where this one will be; another machine takes another time. The attempts of a repeat
    count together. StoreError if the store cannot be read.
    """
    wanted = [planned.cell for planned in run.cells]
    kinds = set(map(_identify_work, wanted))
    runs = sorted(filter(is_alike, read_runs(store, store.list_run_ids())[0]), key=lambda one: one.created_at)
    near_runs = (one for one in reversed(runs) if any(_identify_work(planned.cell) in kinds for planned in one.cells))
    own: defaultdict[str, list[float]] = defaultdict(list)
    near: defaultdict[Work, defaultdict[Work, list[float]]] = defaultdict(lambda: defaultdict(list))
    for earlier in islice(near_runs, MAX_RUNS):
        cells = {planned.cell.cell_id: planned.cell for planned in earlier.cells}
        snapshot = Records(store, earlier.run_id).read_snapshot()
        for key in snapshot.find_present(Retries(failed=True)):
            if (cell := cells.get(key[0])) is not None and snapshot.seconds[key] > 0:
                own[key[0]].append(snapshot.seconds[key])
                near[_identify_work(cell)][_list_near(cell)].append(snapshot.seconds[key])
    found = {}
    for cell in wanted:
        if cell.cell_id in own:
            found[cell.cell_id] = Duration(seconds=median(own[cell.cell_id]), is_own=True)
        elif seconds := _choose_nearest(_list_near(cell), near[_identify_work(cell)]):
            found[cell.cell_id] = Duration(seconds=median(seconds), is_own=False)
    return found


Work = tuple[object, ...]


def _identify_work(cell: Cell) -> Work:
    """Return what near cells have in common."""
    return cell.model, cell.framework, cell.device, cell.tenants


def _list_near(cell: Cell) -> Work:
    return tuple(getattr(cell, name) for name in NEAR_FIELDS)


def _choose_nearest(wanted: Work, found: Mapping[Work, list[float]]) -> list[float]:
    shared = {other: sum(map(operator.eq, wanted, other)) for other in found}
    most = max(shared.values(), default=0)
    return [seconds for other, number in shared.items() if number == most for seconds in found[other]]


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
    """Return the cheapest on-demand price of a machine type, with a GPU for the pool `gpu` and without for `cpu`."""
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


@dataclass(frozen=True, kw_only=True)
class Estimate:
    """What the repeats of one device take, one after the other."""

    device: Device
    num_repeats: int
    num_known: int
    """Repeats of cells of which earlier results say how long they take."""
    num_near: int
    """Repeats of other cells, of whose model, framework and device earlier results say it."""
    expected_seconds: float
    most_seconds: float
    """If every repeat took its time limit."""
    price: PoolPrice | None

    @property
    def hours(self) -> tuple[float, float]:
        """The expected ones, and the most."""
        return self.expected_seconds / SECONDS_PER_HOUR, self.most_seconds / SECONDS_PER_HOUR

    @property
    def costs(self) -> tuple[float, float] | None:
        """What these hours cost; None where the nodes have no price."""
        if self.price is None:
            return None
        expected, most = self.hours
        return expected * self.price.per_hour, most * self.price.per_hour

    def describe(self) -> str:
        """Return how long the repeats take, what that rests on, and what it costs."""
        num_others = self.num_repeats - self.num_known - self.num_near
        others = "as the mean of the others"
        if num_others == self.num_repeats:
            each = format_wait(self.expected_seconds / self.num_repeats)
            others = f"a guess, {each} each: nothing like them was measured here before, and large models take longer"
        parts = [
            (self.num_known, "as they took here before"),
            (self.num_near, "as the nearest cells of the same model, framework and device took here"),
            (num_others, others),
        ]
        named = [(number, words) for number, words in parts if number]
        basis = "; ".join(words if len(named) == 1 else f"{number} {words}" for number, words in named)
        time = f"about {format_wait(self.expected_seconds)}, at most {format_wait(self.most_seconds)}"
        price = ""
        if self.price is not None and self.costs is not None:
            amount = _describe_amount([self.costs], self.price.currency)
            price = f"; {amount} ({self.price.per_hour:g} per hour, {self.price.source})"
        return f"{self.device}: {self.num_repeats} repeats take {time} ({basis}){price}"


def estimate_repeats(
    repeats: Sequence[Repeat], durations: Mapping[str, Duration], prices: Mapping[Device, PoolPrice]
) -> list[Estimate]:
    """Return an estimate for each device of the repeats.

    `durations`: by the cell's id. A repeat of which nothing is known counts as the mean of the others, or with
    GUESSED_SECONDS; none with more than its time limit.
    """
    estimates = []
    devices: list[Device] = sorted({repeat.planned.cell.device for repeat in repeats})
    for device in devices:
        planned = [repeat.planned for repeat in repeats if repeat.planned.cell.device == device]
        found = [durations.get(one.cell.cell_id) for one in planned]
        known = [one for one in found if one is not None]
        rest = fmean(one.seconds for one in known) if known else GUESSED_SECONDS[device]
        limits = [one.timeout_seconds for one in planned]
        num_own = sum(one.is_own for one in known)
        estimates.append(
            Estimate(
                device=device,
                num_repeats=len(planned),
                num_known=num_own,
                num_near=len(known) - num_own,
                expected_seconds=sum(
                    min(rest if one is None else one.seconds, limit) for one, limit in zip(found, limits, strict=True)
                ),
                most_seconds=sum(limits),
                price=prices.get(device),
            )
        )
    return estimates


def describe_estimates(estimates: Sequence[Estimate], max_cost: float | None = None) -> Iterator[str]:
    """Yield what repeats take and cost in words, the sum of the costs, and whether a cap leaves room for them."""
    yield from (one.describe() for one in estimates)
    costs = [one.costs for one in estimates if one.costs is not None]
    if not costs:
        return
    if len(costs) < len(estimates):
        yield "no price of all: name the others with --machine, or with price_per_hour in the profile"
        return
    currency = next(one.price.currency for one in estimates if one.price is not None)
    hours = _describe_amount([one.hours for one in estimates], "node-hours")
    yield f"in all: {hours}; {_describe_amount(costs, currency)}; {NOT_INCLUDED}"
    if max_cost is not None and sum(expected for expected, _ in costs) > max_cost:
        yield f"--max-cost {max_cost:g}: the run would end before all of it is measured"


def _describe_amount(amounts: Iterable[tuple[float, float]], unit: str) -> str:
    """Return `about 0.50 node-hours, at most 2.00`."""
    expected, most = (sum(found) for found in zip(*amounts, strict=True))
    return f"about {expected:.2f} {unit}, at most {most:.2f}"


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
    """Print what the run lacks and what that will take, by earlier results at the same place.

    `events`: where the same is reported instead, as one event.
    """
    missing = select_missing(run, Records(store, run.run_id).read_snapshot(), retries)
    estimates = estimate_repeats(missing, read_durations(store, run, partial(is_same_place, run)), prices)
    if events is None:
        say = partial(console.print, soft_wrap=True)
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
        estimates=[
            EstimateDocument(
                device=one.device,
                num_repeats=one.num_repeats,
                num_known=one.num_known,
                expected_hours=one.hours[0],
                most_hours=one.hours[1],
                expected_cost=None if one.costs is None else one.costs[0],
                currency=None if one.price is None else one.price.currency,
            )
            for one in estimates
        ],
    )


def print_plan_estimate(
    run: Run, store: Store | None, prices: Mapping[Device, PoolPrice], say: Callable[[str], None]
) -> None:
    """Print how long all repeats of a plan will take, estimated from earlier results in `store` of any machine."""
    durations = {} if store is None else read_durations(store, run, lambda _: True)
    for line in describe_estimates(estimate_repeats(order_repeats(run.cells, run.order_seed), durations, prices)):
        say(line)
