"""The answer: its headline, the budget, the break-even, from outcomes whose figures are known."""

from typing import Any

import numpy as np
import pytest

from access_scenarios import make_group, make_scenario, make_setting
from collector.access.outcomes import Choice, Outcome, compute_break_even_hours, summarize_weeks
from collector.access.page import answer_question
from collector.access.scenario import Alternative, Buy, Rent
from collector.access.simulation import Week

BUY = Alternative(name="buy", kind="H100", gpus=1, buy=Buy(price=26_089.29, lifetime_years=5.0))
"""100 a week."""
RENT = Alternative(name="rent", kind="T4", gpus=4, rent=Rent(price_per_hour=0.5))


def make_outcome(alternative: Alternative, *, policy: Any = "exclusive", work: float, turnaround: float) -> Outcome:
    """Return an outcome with so many hours of work a week, on a GPU that does 100 samples an hour, at 40 paid hours."""
    weeks = [
        Week(
            work_by_user=np.array([work * factor]),
            users=np.array([0]),
            waits=np.array([0.0]),
            turnarounds=np.array([turnaround * factor]),
            alone=np.array([1.0]),
            num_unended=0,
            paid_hours=40.0,
            busy_hours=work,
            lost_work=0.0,
            num_interruptions=0,
        )
        for factor in (0.9, 1.0, 1.1)
    ]
    return summarize_weeks(make_choice(alternative, policy=policy), weeks)


def make_choice(alternative: Alternative, *, policy: Any = "exclusive", samples_per_hour: float = 100.0) -> Choice:
    return Choice(
        alternative=alternative,
        policy=policy,
        setting=make_setting(make_group(), policy=policy),
        samples_per_hour=samples_per_hour,
        price_per_hour=0.5 if alternative.rent else None,
    )


def test_what_is_best_at_both_is_the_answer() -> None:
    outcomes = [make_outcome(BUY, work=50.0, turnaround=2.0), make_outcome(RENT, work=5.0, turnaround=3.0)]
    headline, lines = answer_question(make_scenario(), outcomes)
    assert headline == ("buy, exclusive: it gives most samples per USD and the shortest time from submission to end.")
    # 5,000 samples for 100 against 500 for 20; both vary alike from week to week, so the ratio is exact.
    assert lines[0] == "Samples per USD: buy, exclusive 50.0 (37.6 to 62.4); rent, exclusive: 0.500 times that."
    assert lines[1].endswith("rent, exclusive: 1.50 times that.")


def test_where_money_and_time_differ_the_answer_names_both() -> None:
    outcomes = [make_outcome(BUY, work=5.0, turnaround=2.0), make_outcome(RENT, work=5.0, turnaround=3.0)]
    assert answer_question(make_scenario(), outcomes)[0] == (
        "It depends on what counts: rent, exclusive, gives most samples per USD; buy, exclusive, the shortest time "
        "from submission to end."
    )


OTHER = Alternative(name="another", kind="T4", gpus=4, rent=Rent(price_per_hour=0.5))


@pytest.mark.parametrize("alternatives", [(RENT, OTHER), (OTHER, RENT)])
def test_a_tie_has_no_winner_whatever_the_order_of_the_file(alternatives: tuple[Alternative, Alternative]) -> None:
    tied = [make_outcome(one, work=5.0, turnaround=3.0) for one in alternatives]
    assert answer_question(make_scenario(), tied)[0] == (
        "None of them is told apart: another, exclusive and rent, exclusive give equally most samples per USD and "
        "equally the shortest time from submission to end."
    )
    slower = [make_outcome(BUY, work=1.0, turnaround=2.0), *tied]
    assert answer_question(make_scenario(), slower)[0] == (
        "It depends on what counts: another, exclusive and rent, exclusive, give equally most samples per USD; "
        "buy, exclusive, the shortest time from submission to end."
    )
    sooner = [tied[0], make_outcome(alternatives[1], work=5.0, turnaround=2.0)]  # tied in money alone
    assert answer_question(make_scenario(), sooner)[0].startswith(f"{alternatives[1].name}, exclusive: it gives")


def test_what_costs_more_than_the_budget_is_no_answer() -> None:
    outcomes = [make_outcome(BUY, work=50.0, turnaround=2.0), make_outcome(RENT, work=5.0, turnaround=3.0)]
    headline, lines = answer_question(make_scenario(budget_per_week=60.0), outcomes)
    assert headline.startswith("rent, exclusive: ")
    assert "Cost of buy: 100 USD a week, over the budget with exclusive." in lines
    nothing, _ = answer_question(make_scenario(budget_per_week=10.0), outcomes)
    assert nothing == "There is no alternative within the budget."


@pytest.mark.parametrize(("watts", "hours"), [(0.0, 20.0), (4000.0, 25.0)])
def test_the_break_even_is_where_the_rent_of_the_same_samples_costs_as_much(watts: float, hours: float) -> None:
    # An hour of the bought GPU is ten rented ones: 5.0. At 4 kW and 0.25 a kWh it costs 1.0 itself, so 4.0 are saved.
    buy = Buy(price=26_089.29, lifetime_years=5.0, watts=watts, electricity_per_kwh=0.25)
    bought = make_choice(Alternative(name="buy", kind="H100", gpus=1, buy=buy), samples_per_hour=1000.0)
    assert compute_break_even_hours(bought, make_choice(RENT)) == pytest.approx(hours, rel=1e-4)


def test_where_electricity_alone_costs_more_than_rent_there_is_no_break_even() -> None:
    buy = Buy(price=100.0, lifetime_years=5.0, watts=40_000.0, electricity_per_kwh=0.25)
    bought = make_choice(Alternative(name="buy", kind="H100", gpus=1, buy=buy), samples_per_hour=1000.0)
    assert compute_break_even_hours(bought, make_choice(RENT)) is None
