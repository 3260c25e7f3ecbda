"""Estimate what a run takes and which differences it will show, before it is measured and by earlier results."""

import math
from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Container, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import islice
from pathlib import Path
from statistics import fmean, median
from typing import TYPE_CHECKING

from rich.console import Console

from bench.errors import TransientError, UserError
from bench.registry import Device
from bench.schema import Cell, Run
from bench.store import Store
from bench.store.documents import read_runs
from collector.prices.table import PriceTable, find_machine_offers
from runner.matrix.plan import Repeat, order_repeats
from runner.price_tables import check_machines, load_prices
from runner.profiles.model import Profile
from runner.run_events import EstimateDocument, RunEvents
from runner.runs import Records, Retries, describe_plan, select_missing
from runner.terminal import format_wait

if TYPE_CHECKING:
    from collector.comparisons import Comparison

MAX_RUNS = 5
"""Runs that are read, the newest first: each costs a listing and its records."""
NEAR_FIELDS = ("phase", "mode", "precision", "batch_size", "input_size")
"""What near cells may differ in."""


def read_alike_runs(store: Store, is_alike: Callable[[Run], bool]) -> list[Run]:
    """Return the plans of the runs that estimates rest on, the newest first; StoreError if the store cannot be read.

    `is_alike`: whether a run was where this one will be; another machine takes another time.
    """
    runs, _ = read_runs(store, store.list_run_ids())
    return sorted(filter(is_alike, runs), key=lambda one: one.created_at, reverse=True)


def select_newest(runs: Iterable[Run], is_wanted: Callable[[Cell], bool]) -> list[Run]:
    return list(islice((one for one in runs if any(is_wanted(planned.cell) for planned in one.cells)), MAX_RUNS))


def read_durations(store: Store, runs: Iterable[Run], run: Run) -> Mapping[str, float]:
    """Return the median seconds of the repeats of each cell that ended ok in the newest runs, by the cell's id.

    `runs`: as `read_alike_runs` returns them. The attempts of a repeat count together. StoreError if the store cannot
    be read.
    """
    wanted = {planned.cell.cell_id for planned in run.cells}
    found = _read_seconds(store, runs, lambda cell: cell.cell_id in wanted)
    return {cell.cell_id: median(seconds) for cell, seconds in found.items()}


def read_near_durations(store: Store, runs: Iterable[Run], run: Run, known: Container[str]) -> Mapping[str, float]:
    """Return the median seconds of the nearest measured cells for each cell that is not `known`, by its id.

    Near is a cell of the same model, framework and device; nearest, those that share most of NEAR_FIELDS with it.
    """
    wanted = [planned.cell for planned in run.cells if planned.cell.cell_id not in known]
    kinds = set(map(identify_work, wanted))
    found = _read_seconds(store, runs, lambda cell: identify_work(cell) in kinds) if wanted else {}
    return {cell.cell_id: median(seconds) for cell in wanted if (seconds := _choose_nearest(cell, found))}


def identify_work(cell: Cell) -> tuple[object, ...]:
    """Return what near cells have in common."""
    return cell.model, cell.framework, cell.device, cell.tenants


def _choose_nearest(cell: Cell, found: Mapping[Cell, Sequence[float]]) -> list[float]:
    near = {
        other: sum(getattr(other, name) == getattr(cell, name) for name in NEAR_FIELDS)
        for other in found
        if identify_work(other) == identify_work(cell)
    }
    most = max(near.values(), default=0)
    return [seconds for other, shared in near.items() if shared == most for seconds in found[other]]


def _read_seconds(store: Store, runs: Iterable[Run], is_wanted: Callable[[Cell], bool]) -> Mapping[Cell, list[float]]:
    """Return the seconds of the repeats that ended ok of each wanted cell in the newest runs that have one."""
    seconds: defaultdict[Cell, list[float]] = defaultdict(list)
    for found in select_newest(runs, is_wanted):
        cells = {planned.cell.cell_id: planned.cell for planned in found.cells if is_wanted(planned.cell)}
        snapshot = Records.of(store, found).read_snapshot()
        for key in snapshot.ok:
            if key[0] in cells and snapshot.seconds[key] > 0:
                seconds[cells[key[0]]].append(snapshot.seconds[key])
    return seconds


def is_at_place(place: Run, found: Run) -> bool:
    """Return whether two runs are on the same machine, or on the same cluster with the same profile."""
    if place.cluster is None or found.cluster is None:
        return place.cluster is None and found.cluster is None and place.hostname == found.hostname
    if place.cluster.is_apart_from(found.cluster):
        return False
    return (place.cluster.context, place.cluster.profile) == (found.cluster.context, found.cluster.profile)


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
    def expected_hours(self) -> float:
        return self.expected_seconds / SECONDS_PER_HOUR

    @property
    def most_hours(self) -> float:
        return self.most_seconds / SECONDS_PER_HOUR

    @property
    def expected_cost(self) -> float | None:
        """What the expected hours cost; None where the nodes have no price."""
        return None if self.price is None else self.expected_hours * self.price.per_hour

    def describe_wait(self) -> str:
        """Return how long the repeats take on this machine, with what the estimate rests on."""
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
        return f"{self.device}: {self.num_repeats} repeats take about {format_wait(self.expected_seconds)} ({basis})"


def estimate_repeats(
    repeats: Sequence[Repeat],
    durations: Mapping[str, float],
    *,
    near: Mapping[str, float] | None = None,
    prices: Mapping[Device, PoolPrice] | None = None,
) -> list[Estimate]:
    """Return an estimate for each device of the repeats.

    `durations`, `near`: seconds by the cell's id, of the cell itself and of the nearest ones. A repeat of which nothing
    is known counts as the mean of the others, or with GUESSED_SECONDS, and with its time limit where `near` is None.
    """
    estimates = []
    devices: list[Device] = sorted({repeat.planned.cell.device for repeat in repeats})
    for device in devices:
        planned = [repeat.planned for repeat in repeats if repeat.planned.cell.device == device]
        known = [durations.get(one.cell.cell_id) for one in planned]
        others = [(near or {}).get(one.cell.cell_id) for one in planned]
        found = [other if own is None else own for own, other in zip(known, others, strict=True)]
        measured = [seconds for seconds in found if seconds is not None]
        rest = math.inf if near is None else fmean(measured) if measured else GUESSED_SECONDS[device]
        limits = [one.timeout_seconds for one in planned]
        num_known = sum(own is not None for own in known)
        estimates.append(
            Estimate(
                device=device,
                num_repeats=len(planned),
                num_known=num_known,
                num_near=len(measured) - num_known,
                expected_seconds=sum(
                    min(rest if one is None else one, limit) for one, limit in zip(found, limits, strict=True)
                ),
                most_seconds=sum(limits),
                price=(prices or {}).get(device),
            )
        )
    return estimates


def describe_costs(estimates: Sequence[Estimate], max_cost: float | None = None) -> Iterator[str]:
    """Yield node-hours and prices in words, their sum, and whether a cap on the cost leaves room for them."""
    total, costs = "", []
    for one in estimates:
        basis = "by their time limits" if not one.num_known else f"{one.num_known} of them by earlier results"
        price = "no price: give --machine, or price_per_hour in the profile"
        if one.price is not None:
            costs.append((one.expected_hours * one.price.per_hour, one.most_hours * one.price.per_hour))
            amount = _describe_amount(costs[-1:], one.price.currency, [one])
            price = f"{amount} ({one.price.per_hour:g} per hour, {one.price.source})"
            total = f"; {_describe_amount(costs, one.price.currency, estimates)}"
        hours = _describe_amount([(one.expected_hours, one.most_hours)], "node-hours", [one])
        yield f"{one.device}: {one.num_repeats} repeats take {hours}, {basis}; {price}"
    if estimates:
        has_sum = len(costs) == len(estimates)
        hours = _describe_amount([(one.expected_hours, one.most_hours) for one in estimates], "node-hours", estimates)
        yield f"in all: {hours}{total if has_sum else ''}; {NOT_INCLUDED}"
        if max_cost is not None and has_sum and sum(expected for expected, _ in costs) > max_cost:
            yield f"--max-cost {max_cost:g}: the run would end before all of it is measured"


def _describe_amount(amounts: Iterable[tuple[float, float]], unit: str, estimates: Iterable[Estimate]) -> str:
    """Return `about 0.50 node-hours, at most 2.00`; the limit alone where nothing is known of any repeat."""
    expected, most = (sum(found) for found in zip(*amounts, strict=True))
    is_known = any(one.num_known for one in estimates)
    return f"about {expected:.2f} {unit}, at most {most:.2f}" if is_known else f"at most {most:.2f} {unit}"


COMPARED_FIELDS = ("framework", "mode", "precision", "device")
"""What the report compares within one kind of work."""
ASKED_LOG_RATIO = math.log(1.1)
"""A difference of 10 %, for which the number of repeats is named."""


def describe_expected_precision(store: Store, runs: Sequence[Run], run: Run) -> Iterator[str]:
    """Yield for each device which difference the planned repeats show in most cases; nothing where none is known.

    By the spread between the repeats of near cells (`identify_work`) in the newest of `runs`.
    """
    for device in sorted({planned.cell.device for planned in run.cells}):
        planned = {one.cell: one.repeats for one in run.cells if one.cell.device == device}
        if len(set(map(_identify_kind, planned))) == len(planned) or min(planned.values()) < 2:
            continue
        found = _pool_variance(store, runs, planned)
        if found is not None and count_ratios(planned):
            num_ratios = count_ratios([one.cell for one in run.cells if one.repeats > 1])
            yield f"{device}: {_describe(*found, number=min(planned.values()), num_ratios=num_ratios)}"


def count_ratios(cells: Collection[Cell]) -> int:
    """Return how many ratios the report judges together: those of its table that has most of these cells.

    Efficiencies are not tested.
    """
    from collector.comparisons import COMPARISONS

    return max(_count_pairs(cells, comparison) for comparison in COMPARISONS if comparison.measure != "efficiency")


def _count_pairs(cells: Collection[Cell], comparison: "Comparison") -> int:
    groups: defaultdict[tuple[object, ...], Counter[object]] = defaultdict(Counter)
    fields = [name for name in comparison.match if name not in comparison.derived]
    for cell in cells:
        groups[tuple(getattr(cell, name) for name in fields)][getattr(cell, comparison.field)] += 1
    return sum(
        values[subject] * values[reference] for values in groups.values() for subject, reference in comparison.pairs
    )


def _describe(variance: float, num_cells: int, freedom: float, *, number: int, num_ratios: int) -> str:
    from collector.statistics import (
        FEW_FREEDOM,
        MAX_REPEATS,
        POWER_WORDS,
        RepeatVariances,
        count_repeats_to_show,
        find_shown_difference,
    )

    variances = RepeatVariances(one=variance, other=variance)
    shown = find_shown_difference(variances, number, num_ratios)
    needed = count_repeats_to_show(ASKED_LOG_RATIO, variances, num_ratios)
    difference = "ten times" if shown is None else f"{100 * math.expm1(shown):.2g} %"
    together = f", {num_ratios} ratios judged together" if num_ratios > 1 else ""
    is_rough = freedom <= FEW_FREEDOM
    repeats = f"more than {MAX_REPEATS}" if needed is None else f"{'at least about ' if is_rough else ''}{needed}"
    shows = "show at best about" if is_rough else "show"
    cases = "" if is_rough else f" in {POWER_WORDS}"
    asked = "" if needed == number else f"; 10 % takes {repeats} repeats"
    return (
        f"repeats of such cells differed by {100 * math.expm1(math.sqrt(variance)):.2g} % here before (standard "
        f"deviation, of {num_cells} cell{'' if num_cells == 1 else 's'}): {number} repeats a side {shows} a difference "
        f"of {difference}{cases}{together}{asked} (`repeats:` in the matrix)"
    )


def _identify_kind(cell: Cell) -> str:
    return cell.model_dump_json(exclude=set(COMPARED_FIELDS))


def _pool_variance(store: Store, runs: Sequence[Run], planned: Mapping[Cell, int]) -> tuple[float, int, float] | None:
    """Return the variance of the log of one repeat, pooled over near cells, their number, and its degrees of freedom.

    None without any cell.
    """
    kinds = set(map(identify_work, planned))
    squares, freedoms, num_cells = 0.0, 0.0, 0
    for found in select_newest(runs, lambda cell: identify_work(cell) in kinds):
        near = {one.cell.cell_id for one in found.cells if identify_work(one.cell) in kinds}
        for variance, freedom in _read_variances(store, found.run_id, near):
            squares, freedoms, num_cells = squares + variance * freedom, freedoms + freedom, num_cells + 1
    return (squares / freedoms, num_cells, freedoms) if freedoms else None


def _read_variances(store: Store, run_id: str, cell_ids: set[str]) -> Iterator[tuple[float, float]]:
    """Yield the variance between the repeats of each of the cells of a run, with its degrees of freedom.

    Of a cell on several machines, the spread is that of the machines.
    """
    from collector.results.cell_repeats import read_estimate
    from collector.results.frames import list_rows
    from collector.results.load import load_run
    from collector.results.summary import summarize_cells
    from collector.statistics import measure_variance

    try:
        summary = summarize_cells(load_run(store, run_id))
    except TransientError:
        raise
    except UserError:
        return  # it was deleted or replaced since its plan was read
    has_spread = (summary["num_sound"] > 1) & summary["log_standard_error"].notna()
    known = summary["cell_id"].isin(cell_ids) & has_spread & (summary["num_machines"] == 1)
    for row in list_rows(summary[known]):
        variance = measure_variance(read_estimate(row), row["num_counted"])
        if variance is not None:
            yield variance, row["num_counted"] - 1


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
    """Print what the run lacks and what that will take, by earlier results of the same cells at the same place.

    On this machine that is minutes; node-hours where somebody asks for the price by naming a machine, and on clusters.
    `events`: where the same is reported instead, as one event.
    """
    missing = select_missing(run, Records.of(store, run).read_snapshot(), retries)
    runs = read_alike_runs(store, partial(is_at_place, run))
    durations = read_durations(store, runs, run)
    is_unpriced = run.cluster is None and not prices
    near = read_near_durations(store, runs, run, durations) if is_unpriced else None
    estimates = estimate_repeats(missing, durations, near=near, prices=prices)
    if events is None:
        say = partial(console.print, soft_wrap=True)
        describe_plan(run, missing, say)
        waits = (one.describe_wait() for one in estimates)
        precision = describe_expected_precision(store, runs, run) if is_unpriced else ()
        for line in [*waits, *precision] if is_unpriced else describe_costs(estimates, max_cost):
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
                expected_hours=one.expected_hours,
                most_hours=one.most_hours,
                expected_cost=one.expected_cost,
                currency=None if one.price is None else one.price.currency,
            )
            for one in estimates
        ],
    )


def print_plan_estimate(
    run: Run, store: Store | None, prices: Mapping[Device, PoolPrice], say: Callable[[str], None]
) -> None:
    """Print how long all repeats of a plan will take, estimated from earlier results in `store` of any machine."""
    durations = {} if store is None else read_durations(store, read_alike_runs(store, lambda _: True), run)
    repeats = order_repeats(run.cells, run.order_seed)
    for line in describe_costs(estimate_repeats(repeats, durations, prices=prices)):
        say(line)
