"""Figures of a choice, from weeks that are written by hand."""

from typing import Any

import numpy as np
import pytest

from access_scenarios import make_group, make_setting
from collector.access.choices import Choice
from collector.access.outcomes import Outcome, compute_cost, compute_load, summarize_weeks
from collector.access.scenario import Alternative, Buy, Rent
from collector.access.simulation import Week

BUY = Buy(
    price=26_089.29, lifetime_years=5.0, watts=700.0, idle_watts=100.0, electricity_per_kwh=0.25, upkeep_per_year=0.0
)
"""365.25 / 7 weeks a year, 260.8929 in five years: 100 a week, without electricity."""


def make_week(**given: Any) -> Week:
    """Return a week of three users, in which the first two had jobs."""
    defaults: dict[str, Any] = {
        "work_by_user": np.array([2.0, 4.0, 0.0]),
        "users": np.array([0, 0, 1]),
        "waits": np.array([0.0, 1.0, 2.0]),
        "turnarounds": np.array([1.0, 2.0, 6.0]),
        "alone": np.array([1.0, 1.0, 4.0]),
        "num_unended": 0,
        "paid_hours": 20.0,
        "busy_hours": 84.0,
        "lost_work": 0.0,
        "num_interruptions": 0,
    }
    return Week(**(defaults | given))


def make_choice(**given: Any) -> Choice:
    """Return two rented GPUs at 0.5 an hour that do 100 samples an hour, for two groups."""
    groups = (make_group(name="students", number=2), make_group(name="staff", weight=2.0))
    alternative = Alternative(name="rent", kind="T4", gpus=2, rent=Rent(price_per_hour=0.5))
    defaults: dict[str, Any] = {
        "alternative": alternative,
        "policy": "exclusive",
        "setting": make_setting(*groups, num_gpus=2),
        "samples_per_hour": 100.0,
        "price_per_hour": 0.5,
    }
    return Choice(**(defaults | given))


def summarize(*weeks: Week, **given: Any) -> Outcome:
    return summarize_weeks(make_choice(**given), weeks)


def test_rent_costs_what_hours_were_paid() -> None:
    assert compute_cost(make_choice(), make_week()) == pytest.approx(10.0)


@pytest.mark.parametrize(("share", "cost"), [(1.0, 110.5), (0.5, 55.25)])
def test_a_bought_machine_costs_its_part_of_a_lifetime_and_its_electricity(share: float, cost: float) -> None:
    # 84 of 336 GPU-hours busy: 100 W + 600 W / 4 = 250 W, 42 kWh a week at 0.25 each.
    alternative = Alternative(name="buy", kind="T4", gpus=2, buy=BUY.model_copy(update={"share": share}))
    choice = make_choice(alternative=alternative, price_per_hour=None)
    assert compute_cost(choice, make_week()) == pytest.approx(cost, rel=1e-4)


def test_means_are_over_jobs_and_samples_over_users() -> None:
    other = make_week(
        users=np.array([2]),
        waits=np.array([3.0]),
        turnarounds=np.array([4.0]),
        alone=np.array([2.0]),
        work_by_user=np.array([0.0, 0.0, 6.0]),
    )
    outcome = summarize(make_week(), other)
    assert outcome.everybody.wait_hours.center == pytest.approx(6.0 / 4)
    assert outcome.everybody.turnaround_hours.center == pytest.approx(13.0 / 4)
    assert outcome.everybody.slowdown.center == pytest.approx((1.0 + 2.0 + 1.5 + 2.0) / 4)
    assert outcome.everybody.samples_per_user.center == pytest.approx(100.0 * 12.0 / 3 / 2)
    assert outcome.samples_per_money.center == pytest.approx(1200.0 / 20.0)
    assert outcome.by_group["students"].wait_hours.center == pytest.approx(1.0)
    assert outcome.by_group["staff"].samples_per_user.center == pytest.approx(100.0 * 6.0 / 2)
    assert outcome.num_jobs == 4


def test_fairness_of_samples_is_by_weight_and_of_speed_over_those_who_had_jobs() -> None:
    outcome = summarize(make_week(work_by_user=np.array([2.0, 2.0, 4.0])), make_week())
    # Over both weeks 4, 6 and 4 / 2 = 2.
    assert outcome.jain_samples.center == pytest.approx(12.0**2 / (3 * (16 + 36 + 4)))
    # Speeds: (1 + 1) / (1 + 2) = 2/3 and 4 / 6 = 2/3.
    assert outcome.jain_speed.center == pytest.approx(1.0)


def test_very_short_jobs_do_not_outweigh_the_others() -> None:
    # Alone a millisecond, waited an hour: bounded by 5 min, the slowdown is 12 and not 3.6 million.
    week = make_week(users=np.array([0]), waits=np.array([1.0]), turnarounds=np.array([1.0]), alone=np.array([3e-7]))
    assert summarize(week, week).everybody.slowdown.center == pytest.approx(12.0)


def test_lost_work_is_a_part_of_all_that_was_done() -> None:
    assert summarize(make_week(lost_work=2.0), make_week()).lost_share.center == pytest.approx(2.0 / 14.0)
    assert summarize(make_week(), make_week()).utilisation.center == pytest.approx(0.25)


@pytest.mark.parametrize(
    ("given", "load"),
    [
        ({}, 0.5),
        ({"num_gpus": 2}, 0.25),
        ({"speed": 2.0}, 0.25),
        ({"rates": (1.0, 0.5)}, 0.5),  # in turns nothing is gained
        ({"rates": (1.0, 0.8, 0.5)}, 0.5 / 1.6),  # two side by side get most done
    ],
)
def test_the_load_is_what_is_asked_over_what_can_be_done(given: dict[str, Any], load: float) -> None:
    # 12 hours of work a day; who waits for the own jobs asks for nothing more.
    asking = make_group(number=3, job_hours=(2.0,), jobs_per_day=2.0)
    waiting = make_group(name="waiting", think_hours=1.0)
    assert compute_load(make_setting(asking, waiting, **given)) == pytest.approx(load)
