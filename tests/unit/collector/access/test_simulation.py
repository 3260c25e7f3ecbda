"""Weeks of a laboratory: what is counted of them, and what policies, budgets and speeds change."""

from typing import get_args

import pandas as pd
import pytest

from access_scenarios import make_choice, make_group
from collector.access.scenario import Choice, Policy, Rent
from collector.access.simulation import simulate_week

BUSY = (
    make_group(number=3, job_hours=(2.0,), jobs_per_day=6.0),
    make_group(job_hours=(2.0,), jobs_per_day=1.0),
)
"""38 hours of work a day on two GPUs: 79 % of what they can do."""


def list_jobs(choice: Choice) -> pd.DataFrame:
    return simulate_week(choice, 0)[0]


def test_every_policy_faces_the_same_jobs() -> None:
    first, *others = (list_jobs(make_choice(*BUSY, num_gpus=2, policy=policy)) for policy in get_args(Policy))
    for jobs in others:
        assert jobs["user"].equals(first["user"])
        assert jobs["alone"].to_numpy() == pytest.approx(first["alone"].to_numpy())


def test_a_gpu_that_is_twice_as_fast_takes_half_as_long_for_the_same_jobs() -> None:
    kinds = ({"samples_per_second": speed} for speed in (1000.0, 2000.0))
    slow, fast = (list_jobs(make_choice(*BUSY, num_gpus=2, job_hours_on="H100", kind=kind)) for kind in kinds)
    assert fast["alone"].to_numpy() == pytest.approx(slow["alone"].to_numpy() / 2)
    assert fast["wait"].mean() < slow["wait"].mean() / 2


def test_what_is_done_in_a_week_is_what_was_asked_for_but_for_what_its_ends_cut() -> None:
    choice = make_choice(make_group(number=2, job_hours=(0.1,), jobs_per_day=24.0))
    jobs, (_, busy_hours, *work) = simulate_week(choice, 0)
    assert sum(work) == pytest.approx(jobs["alone"].sum(), abs=1.0)  # the longest job has about 0.8 h
    assert busy_hours == pytest.approx(sum(work))


def test_where_more_is_asked_than_can_be_done_jobs_are_followed_for_a_while_and_counted_as_open() -> None:
    choice = make_choice(make_group(job_hours=(30.0,), spread="none", jobs_per_day=8.0))
    jobs = list_jobs(choice)
    # 56 jobs a week, of which a GPU ends 5.6: those of the first week are not even done when the measured one ends.
    assert not jobs["has_ended"].any()
    assert jobs["wait"].max() <= 3 * 168


def test_fair_share_gives_a_modest_user_its_guarantee_beside_a_greedy_one() -> None:
    # The greedy one asks for two GPUs around the clock; the other's guaranteed GPU is there at once, since the other
    # job makes room.
    greedy = make_group(number=4, job_hours=(20.0,), think_hours=0.1, checkpoint_hours=0.5)
    modest = make_group(job_hours=(1.0,), jobs_per_day=2.0, quota=1)
    first_come = list_jobs(make_choice(greedy, modest, num_gpus=2))
    fair, (_, busy_hours, *work) = simulate_week(make_choice(greedy, modest, num_gpus=2, policy="fair-share"), 0)
    waits = [jobs.groupby("user")["wait"].mean()[4] for jobs in (first_come, fair)]
    assert waits[0] > 10.0
    assert waits[1] < 1.0
    assert sum(work) < busy_hours  # by what preempted jobs lose


def test_a_budget_stops_starts_and_the_next_week_begins_anew() -> None:
    group = make_group(number=4, job_hours=(4.0,), spread="none", think_hours=0.5)
    rent = Rent(start_minutes=0, idle_minutes=0, price_per_hour=1.0)
    free = make_choice(group, num_gpus=4, way=rent)
    capped = make_choice(group, num_gpus=4, way=rent, budget_per_week=100.0)
    # Four jobs that run when the money ends go on: at most 4 * 4 h more.
    assert simulate_week(free, 0)[1][0] > 400.0
    assert 100.0 <= simulate_week(capped, 0)[1][0] <= 116.0
    assert simulate_week(capped, 1)[1][0] >= 100.0
