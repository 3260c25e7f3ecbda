"""Print what a run will take before anything is measured, for `run --dry-run` and `render`."""

from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path

from bench.errors import UserError
from bench.registry import Device
from bench.schema import Run
from bench.store import Store
from runner.commands.options import CONSOLE, parse_machines
from runner.estimates import (
    PoolPrice,
    describe_costs,
    describe_expected_precision,
    estimate_repeats,
    find_pool_prices,
    is_at_place,
    read_alike_runs,
    read_durations,
    read_near_durations,
)
from runner.matrix.plan import order_repeats
from runner.profiles.model import Profile
from runner.records import Records, Retries
from runner.run_events import EstimateDocument, RunEvents
from runner.runs import describe_plan, select_missing


def find_prices(machine: list[str] | None, prices: Path | None, profile: Profile | None) -> dict[Device, PoolPrice]:
    """Return the price of each pool that has one, by --machine, --prices and the profile. UserError if one is wrong."""
    machines = parse_machines(machine or [])
    if prices is not None and not machines:
        raise UserError("--prices: its prices are looked up by machine type; add --machine DEVICE=MACHINE")
    return find_pool_prices(profile, machines, prices)


def print_dry_run(
    run: Run,
    store: Store,
    prices: Mapping[Device, PoolPrice],
    events: RunEvents | None,
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
        say = partial(CONSOLE.print, soft_wrap=True)
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
