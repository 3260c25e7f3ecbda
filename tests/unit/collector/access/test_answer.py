"""The answer: its headline, the budget, the break-even, from outcomes whose figures are known."""

from typing import Any

import numpy as np
import pandas as pd
import pytest

from access_scenarios import make_choice, make_scenario
from collector.access.outcomes import Outcome, compute_break_even_hours, summarize_weeks
from collector.access.page import answer_question
from collector.access.scenario import Alternative, Buy, Rent
from collector.access.simulation import Week

BUY = Alternative(name="buy", kind="H100", gpus=1, buy=Buy(price=26_089.29, lifetime_years=5.0))
"""100 a week."""
RENT = Alternative(name="rent", kind="T4", gpus=4, rent=Rent(price_per_hour=0.5))
RATES: dict[str, Any] = {"samples_per_hour": 100.0, "price_per_hour": 0.5}


def make_outcome(alternative: Alternative, *, policy: Any = "exclusive", work: float, turnaround: float) -> Outcome:
    """Return an outcome with so many hours of work a week, on a GPU that does 100 samples an hour, at 40 paid hours."""
    weeks = [
        Week(
            work_by_user=np.array([work * factor]),
            jobs=pd.DataFrame(
                [{"user": 0, "alone": 1.0, "wait": 0.0, "turnaround": turnaround * factor, "has_ended": True}]
            ),
            paid_hours=40.0,
            busy_hours=work,
        )
        for factor in (0.9, 1.0, 1.1)
    ]
    return summarize_weeks(make_choice(alternative=alternative, policy=policy, **RATES), weeks)


def test_the_best_is_named_with_its_figure_and_how_the_others_relate_to_it() -> None:
    outcomes = [make_outcome(BUY, work=50.0, turnaround=2.0), make_outcome(RENT, work=5.0, turnaround=3.0)]
    # 5,000 samples for 100 against 500 for 20; both vary alike from week to week, so the ratio is exact.
    assert answer_question(make_scenario(), outcomes)[:2] == [
        "Most samples per USD: buy, exclusive 50.0 (37.6 to 62.4); rent, exclusive: 0.500 times that.",
        "Fewest hours from submission to end: buy, exclusive 2.00 (1.50 to 2.50); rent, exclusive: 1.50 times that.",
    ]


@pytest.mark.parametrize("is_turned", [False, True])
def test_a_tie_has_no_winner_whatever_the_order_of_the_file(is_turned: bool) -> None:
    other = RENT.model_copy(update={"name": "another"})
    tied = [make_outcome(one, work=5.0, turnaround=3.0) for one in (RENT, other)]
    slower = make_outcome(BUY, work=1.0, turnaround=2.0)
    lines = answer_question(make_scenario(), [slower, *(reversed(tied) if is_turned else tied)])
    assert lines[0].startswith("Most samples per USD: another, exclusive and rent, exclusive equally 25.0 (")
    assert lines[1].startswith("Fewest hours from submission to end: buy, exclusive 2.00 (")


def test_what_costs_more_than_the_budget_is_no_answer() -> None:
    outcomes = [make_outcome(BUY, work=50.0, turnaround=2.0), make_outcome(RENT, work=5.0, turnaround=3.0)]
    lines = answer_question(make_scenario(budget_per_week=60.0), outcomes)
    assert lines[0].startswith("Most samples per USD: rent, exclusive ")
    assert "Cost of buy: 100 USD a week, over the budget with exclusive." in lines
    nothing = answer_question(make_scenario(budget_per_week=10.0), outcomes)
    assert nothing[0] == "There is no alternative within the budget."


@pytest.mark.parametrize(("watts", "hours"), [(0.0, 20.0), (4000.0, 25.0)])
def test_the_break_even_is_where_the_rent_of_the_same_samples_costs_as_much(watts: float, hours: float) -> None:
    # An hour of the bought GPU is ten rented ones: 5.0. At 4 kW and 0.25 a kWh it costs 1.0 itself, so 4.0 are saved.
    buy = Buy(price=26_089.29, lifetime_years=5.0, watts=watts, electricity_per_kwh=0.25)
    bought = make_choice(alternative=BUY.model_copy(update={"buy": buy}), samples_per_hour=1000.0)
    assert compute_break_even_hours(bought, make_choice(alternative=RENT, **RATES)) == pytest.approx(hours, rel=1e-4)


def test_where_electricity_alone_costs_more_than_rent_there_is_no_break_even() -> None:
    buy = Buy(price=100.0, lifetime_years=5.0, watts=40_000.0, electricity_per_kwh=0.25)
    bought = make_choice(alternative=BUY.model_copy(update={"buy": buy}), samples_per_hour=1000.0)
    assert compute_break_even_hours(bought, make_choice(alternative=RENT, **RATES)) is None
