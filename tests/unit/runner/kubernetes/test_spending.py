"""The estimate of what a run costs, and when its caps leave no room for another Job."""

from datetime import timedelta

import pytest

from bench.errors import UserError
from bench.schema import Device
from factories import make_cell, make_result, make_run
from job_manifests import load
from runner.kubernetes.capacity import Spending, check_prices
from runner.kubernetes.tracked_jobs import TrackedJob, TrackedJobs
from runner.profiles.model import Profile
from tracked_cells import finish, submit, track


def make_profile(**prices: float) -> Profile:
    base = load("gke")
    pools = {name: pool.model_copy(update={"price_per_hour": prices.get(name)}) for name, pool in base.pools.items()}
    return base.model_copy(update={"pools": pools, "currency": "EUR"})


def make_spending(max_nodes: int | None = None, max_cost: float | None = None) -> Spending:
    return Spending.of(make_profile(cpu=0.4, gpu=0.6), max_nodes=max_nodes, max_cost=max_cost)


def record(spending: Spending, tracked: TrackedJob, seconds: float) -> None:
    cell = tracked.repeat.planned.cell
    result = make_result(cell)
    spending.add(tracked, result.model_copy(update={"finished_at": result.started_at + timedelta(seconds=seconds)}))


def test_the_estimate_is_price_times_hours_of_the_records_by_pool() -> None:
    spending = make_spending()
    record(spending, track("cpu", 1), 1800)
    record(spending, track("gpu", 2), 600)
    assert spending.cost == pytest.approx(0.4 * 0.5 + 0.6 / 6)
    assert str(spending) == "0.30 EUR"


def test_records_that_were_there_at_the_start_count() -> None:
    cells = [make_cell(seed=1), make_cell(seed=2, device="gpu")]
    spending = make_spending()
    spending.add_records(make_run(cells), {(cells[0].cell_id, 1): 3600.0, (cells[1].cell_id, 3): 3600.0})
    assert spending.cost == pytest.approx(1.0)


def test_nodes_are_capped_over_all_pools() -> None:
    spending = make_spending(max_nodes=2)
    jobs = TrackedJobs([track("cpu", 1), track("gpu", 2), track("cpu", 3)])
    first, second, third = jobs
    submit(jobs, first)
    assert spending.has_room(third, jobs)
    submit(jobs, second)
    assert not spending.has_room(third, jobs)


def test_money_is_capped_with_what_is_unfinished_at_its_timeout_until_one_has_ended() -> None:
    spending = make_spending(max_cost=0.35)
    jobs = TrackedJobs([track("gpu", seed, timeout_seconds=600.0) for seed in range(9)])
    first, second, third, *others = jobs
    submit(jobs, first, second)  # 0.10 each at their timeouts
    assert spending.has_room(third, jobs)
    submit(jobs, third)
    assert not spending.has_room(others[0], jobs)

    finish(jobs, first)
    record(spending, first, 300)  # 0.05 on average: 0.05 spent, 0.10 to come from two, room for four more
    for tracked in others[:4]:
        assert spending.has_room(tracked, jobs)
        submit(jobs, tracked)
    assert not spending.has_room(others[4], jobs)


@pytest.mark.parametrize("device", ["cpu", "gpu"])
def test_a_cap_below_one_timeout_allows_one_cell_at_a_time_until_it_is_reached(device: Device) -> None:
    spending = make_spending(max_cost=0.01)
    jobs = TrackedJobs([track(device, 1), track(device, 2)])
    first, second = jobs
    assert spending.has_room(first, jobs)
    submit(jobs, first)
    assert not spending.has_room(second, jobs)
    finish(jobs, first)
    record(spending, first, 60)
    assert not spending.has_room(second, jobs)


def test_a_cap_on_money_needs_the_prices_of_the_pools_that_the_run_needs() -> None:
    profile = make_profile(gpu=0.6)
    check_prices(profile, ["gpu"], 1.0)
    check_prices(profile, ["cpu", "gpu"], None)
    with pytest.raises(UserError, match=r"--max-cost: profile gke: pools\.cpu\.price_per_hour: is missing"):
        check_prices(profile, ["cpu", "gpu"], 1.0)
