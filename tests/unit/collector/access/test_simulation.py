"""Weeks of a laboratory: what is counted of them, and what policies, budgets and speeds change."""

from access_scenarios import make_choice, make_group
from collector.access.scenario import Rent
from collector.access.simulation import simulate_week


def test_where_more_is_asked_than_can_be_done_jobs_are_followed_for_a_while_and_counted_as_open() -> None:
    jobs, _ = simulate_week(make_choice(make_group(job_hours=(30.0,), spread="none", jobs_per_day=8.0)), 0)
    # 56 jobs a week, of which a GPU ends 5.6: those of the first week are not even done when the measured one ends.
    assert not jobs["has_ended"].any()
    assert jobs["wait"].max() <= 3 * 168


def test_a_budget_stops_starts_and_the_next_week_begins_anew() -> None:
    group = make_group(number=4, job_hours=(4.0,), spread="none", think_hours=0.5)
    rent = Rent(start_minutes=0, idle_minutes=0, price_per_hour=1.0)
    free = make_choice(group, num_gpus=4, way=rent)
    capped = make_choice(group, num_gpus=4, way=rent, budget_per_week=100.0)
    # Four jobs that run when the money ends go on: at most 4 * 4 h more.
    assert simulate_week(free, 0)[1][0] > 400.0
    assert 100.0 <= simulate_week(capped, 0)[1][0] <= 116.0
    assert simulate_week(capped, 1)[1][0] >= 100.0
