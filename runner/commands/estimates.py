"""Print what a run will take before anything is measured, for `run --dry-run` and `render`."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path

from bench.errors import UserError
from bench.registry import Device
from bench.schema import Run
from bench.store import Store
from runner.commands.machines import parse_machines
from runner.estimates.durations import is_at_place, read_alike_runs, read_durations, read_near_durations
from runner.estimates.expected_precision import describe_expected_precision
from runner.estimates.local_estimate import estimate_here
from runner.estimates.pool_prices import PoolPrice, find_pool_prices
from runner.estimates.run_estimate import SECONDS_PER_HOUR, PoolEstimate, describe_estimates, estimate_pools
from runner.matrix.plan import Repeat, order_repeats
from runner.profiles.model import Profile
from runner.records import NO_RETRIES, Records, Retries
from runner.run_events import EstimateDocument, RunEvents
from runner.runs import describe_plan, select_missing

Say = Callable[[str], None]


@dataclass(frozen=True, kw_only=True)
class Pricing:
    """How a run is priced, and whether that is all that is wanted."""

    is_dry: bool = False
    machines: Mapping[Device, str] = field(default_factory=dict)
    prices: Path | None = None

    @classmethod
    def of(cls, machine: list[str] | None, prices: Path | None, is_dry: bool = False) -> "Pricing":
        """Return what the options ask for. Raise UserError if one of them is wrong."""
        machines = parse_machines(machine or [])
        if prices is not None and not machines:
            raise UserError("--prices: its prices are looked up by machine type; add --machine DEVICE=MACHINE")
        return cls(is_dry=is_dry, machines=machines, prices=prices)

    def find(self, profile: Profile | None) -> dict[Device, PoolPrice]:
        """Return the price of each pool that has one."""
        return find_pool_prices(profile, self.machines, self.prices)


def print_dry_run(
    run: Run,
    store: Store,
    prices: Mapping[Device, PoolPrice],
    say: Say,
    *,
    retries: Retries = NO_RETRIES,
    max_cost: float | None = None,
) -> None:
    """Print what the run lacks and what that will take, by earlier results of the same cells at the same place.

    On this machine that is minutes; node-hours where somebody asks for the price by naming a machine, and on clusters.
    """
    missing = select_missing(run, Records.of(store, run).read_snapshot(), retries)
    describe_plan(run, missing, say)
    runs = read_alike_runs(store, partial(is_at_place, run))
    durations = read_durations(store, runs, run)
    if run.cluster is None and not prices:
        near = read_near_durations(store, runs, run, durations)
        for one in estimate_here(missing, durations, near):
            say(one.describe())
        for line in describe_expected_precision(store, runs, run):
            say(line)
    else:
        print_estimate(missing, durations, prices, say, max_cost)


def report_dry_run(
    run: Run, store: Store, prices: Mapping[Device, PoolPrice], events: RunEvents, retries: Retries = NO_RETRIES
) -> None:
    """Print what `print_dry_run` says as an event."""
    missing = select_missing(run, Records.of(store, run).read_snapshot(), retries)
    runs = read_alike_runs(store, partial(is_at_place, run))
    durations = read_durations(store, runs, run)
    pools = estimate_pools(missing, durations, prices)
    if run.cluster is None and not prices:
        near = read_near_durations(store, runs, run, durations)
        here = {one.device: one.seconds / SECONDS_PER_HOUR for one in estimate_here(missing, durations, near)}
        pools = [replace(pool, expected_hours=here[pool.device]) for pool in pools]
    events.report(
        "estimated",
        matrix=run.matrix,
        store=store.url,
        num_cells=len(run.cells),
        num_repeats=run.num_repeats,
        num_missing=len(missing),
        estimates=list(map(_make_document, pools)),
    )


def _make_document(one: PoolEstimate) -> EstimateDocument:
    return EstimateDocument(
        device=one.device,
        num_repeats=one.num_repeats,
        num_known=one.num_known,
        expected_hours=one.expected_hours,
        most_hours=one.most_hours,
        expected_cost=one.expected_cost,
        currency=None if one.price is None else one.price.currency,
    )


def print_plan_estimate(run: Run, store: Store | None, prices: Mapping[Device, PoolPrice], say: Say) -> None:
    """Print how long all repeats of a plan will take, estimated from earlier results in `store` of any machine."""
    durations = {} if store is None else read_durations(store, read_alike_runs(store, lambda _: True), run)
    print_estimate(order_repeats(run.cells, run.order_seed), durations, prices, say)


def print_estimate(
    repeats: list[Repeat],
    durations: Mapping[str, float],
    prices: Mapping[Device, PoolPrice],
    say: Say,
    max_cost: float | None = None,
) -> None:
    """Print the estimate of the repeats, one line per pool and one for all."""
    for line in describe_estimates(estimate_pools(repeats, durations, prices), max_cost):
        say(line)
