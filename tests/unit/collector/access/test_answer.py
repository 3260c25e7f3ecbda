"""The answer: the best choices, the budget, the break-even, from weeks whose figures are known."""

from typing import Any

import numpy as np
import pandas as pd
import pytest

from access_scenarios import describe_scenario, make_scenario
from collector.access.outcomes import answer_question, describe_weeks, tabulate, tabulate_break_even
from collector.access.scenario import Choice, Scenario


def make_rows(
    scenario: Scenario, name: str, policy: Any = "exclusive", *, work: float, turnaround: float
) -> list[dict[str, Any]]:
    """Return the rows of weeks with so many hours of work for each user and 40 paid hours."""
    factors = np.array([0.9, 1.0, 1.1])
    jobs = pd.DataFrame({"week": range(3), "user": 0, "alone": 1.0, "wait": 0.0, "turnaround": turnaround * factors})
    counts = np.column_stack([np.full(3, 40.0), np.full(3, work), *[work * factors] * 4])
    choice = Choice(scenario=scenario, name=name, policy=policy)
    return describe_weeks(choice, jobs.assign(has_ended=True), counts)


def answer(scenario: Scenario, *rows: list[dict[str, Any]]) -> list[str]:
    return list(answer_question(scenario, tabulate(sum(rows, []))))


def test_the_best_is_named_and_how_the_others_relate_to_it() -> None:
    scenario = make_scenario()
    buy = make_rows(scenario, "buy", work=10.0, turnaround=2.0)
    rent = make_rows(scenario, "rent", work=10.0, turnaround=3.0)
    outcomes = tabulate(buy + rent)
    assert list(answer_question(scenario, outcomes))[:2] == [
        "Most samples per USD: buy, exclusive.",
        "Shortest turnaround: buy, exclusive.",
    ]
    # A tenth of the samples for a fifth of the money; both vary alike from week to week, so the ratios are exact.
    row = outcomes.query("alternative == 'rent' and users == '(all)'").iloc[0]
    for figure, ratio in (("samples_per_money", 0.5), ("turnaround_hours", 1.5)):
        assert row[[f"{figure}_to_best{end}" for end in ("", "_low", "_high")]].to_list() == pytest.approx([ratio] * 3)


@pytest.mark.parametrize("is_turned", [False, True])
def test_a_tie_has_no_winner(is_turned: bool) -> None:
    scenario = make_scenario()
    tied = [make_rows(scenario, "buy", policy, work=5.0, turnaround=3.0) for policy in ("exclusive", "fair-share")]
    slower = make_rows(scenario, "rent", work=1.0, turnaround=2.0)
    lines = answer(scenario, slower, *(reversed(tied) if is_turned else tied))
    assert sorted(lines[0].removeprefix("Most samples per USD: ").removesuffix(".").split("; not told apart: ")) == [
        "buy, exclusive",
        "buy, fair-share",
    ]
    assert lines[1] == "Shortest turnaround: rent, exclusive."


def test_what_costs_more_than_the_budget_is_no_answer() -> None:
    for budget, best in ((60.0, "rent, exclusive"), (10.0, "rent, exclusive"), (100.1, "buy, exclusive")):
        scenario = make_scenario(budget_per_week=budget)  # it stops what is rented, and 100 a week are what is bought
        rows = [make_rows(scenario, name, work=10.0, turnaround=2.0) for name in ("buy", "rent")]
        assert answer(scenario, *rows)[0] == f"Most samples per USD: {best}."
    bought = make_scenario(budget_per_week=10.0)
    nothing = answer(bought, make_rows(bought, "buy", work=10.0, turnaround=2.0))
    assert nothing[0] == "Most samples per USD: none within the budget."


@pytest.mark.parametrize(("watts", "hours"), [(0.0, 20.0), (4000.0, 25.0), (40_000.0, np.nan)])
def test_the_break_even_is_where_the_rent_of_the_same_samples_costs_as_much(watts: float, hours: float) -> None:
    # An hour of the bought GPU is ten rented ones: 5.0. At 4 kW and 0.25 a kWh it costs 1.0 itself, so 4.0 are saved;
    # at 40 kW electricity alone costs more than the rent.
    alternatives = describe_scenario()["alternatives"]
    alternatives["buy"]["buy"] |= {"watts": watts, "electricity_per_kwh": 0.25}
    scenario = make_scenario(alternatives=alternatives)
    assert tabulate_break_even(scenario).iloc[0].to_list() == [
        "buy",
        "rent",
        pytest.approx(hours, rel=1e-4, nan_ok=True),
        168,
    ]
