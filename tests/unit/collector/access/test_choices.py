"""What is compared, at which rates: slowdowns between and beyond the known ones, what is left out."""

import pytest

from access_scenarios import make_scenario
from collector.access.choices import (
    HourlyPrice,
    KindFigures,
    Slowdowns,
    find_rates,
    interpolate_slowdown,
    list_choices,
)
from collector.access.scenario import Kind, Scenario


def make_figures(scenario: Scenario) -> dict[str, KindFigures]:
    return {
        name: KindFigures(
            samples_per_second=kind.samples_per_second or 0.0,
            origin="stated",
            slowdowns={
                sharing: Slowdowns(by_tenants=by_tenants, origin="stated")
                for sharing, by_tenants in kind.slowdowns.items()
            },
        )
        for name, kind in scenario.kinds.items()
    }


@pytest.mark.parametrize(
    ("number", "slowdown"), [(1, 1.0), (2, 1.5), (3, 2.15), (4, 2.8), (6, 4.2)], ids=lambda value: str(value)
)
def test_slowdowns_lie_on_lines_and_beyond_the_last_nothing_is_gained(number: int, slowdown: float) -> None:
    assert interpolate_slowdown({4: 2.8, 2: 1.5}, number) == pytest.approx(slowdown)


@pytest.mark.parametrize(
    ("policy", "max_tenants", "rates"),
    [
        ("exclusive", None, (1.0,)),
        ("fair-share", 8, (1.0,)),
        ("mps", None, (1.0, 1 / 1.5, 1 / 2.15, 1 / 2.8)),
        ("mps", 2, (1.0, 1 / 1.5)),
        ("time-slicing", None, (1.0, 1 / 2, 1 / 3, 1 / 4)),  # nothing known: in turns, without loss
        ("time-slicing", 3, (1.0, 1 / 2, 1 / 3)),
    ],
)
def test_rates_are_one_over_the_slowdowns(policy: str, max_tenants: int | None, rates: tuple[float, ...]) -> None:
    kind = Kind(samples_per_second=1.0, slowdowns={"mps": {2: 1.5, 4: 2.8}}, max_tenants=max_tenants)
    figures = KindFigures(
        samples_per_second=1.0,
        origin="stated",
        slowdowns={"mps": Slowdowns(by_tenants=kind.slowdowns["mps"], origin="stated")},
    )
    assert find_rates(kind, figures, policy) == pytest.approx(rates)  # type: ignore[arg-type]


def test_every_alternative_meets_every_policy_that_its_figures_allow() -> None:
    scenario = make_scenario(policies=["exclusive", "mps"])
    choices, left_out = list_choices(scenario, make_figures(scenario), {"rent": HourlyPrice(amount=0.5)})
    assert [choice.name for choice in choices] == ["buy, exclusive", "buy, mps", "rent, exclusive"]
    assert [left.name for left in left_out] == ["rent, mps"]
    assert "the slowdowns of T4 with MPS are not known" in left_out[0].reason
    assert [choice.setting.speed for choice in choices] == [10.0, 10.0, 1.0]
    assert [choice.price_per_hour for choice in choices] == [None, None, 0.5]


def test_a_budget_caps_only_what_is_paid_by_use() -> None:
    alternatives = [
        {"name": "buy", "kind": "T4", "gpus": 1, "buy": {"price": 1.0, "lifetime_years": 1.0}},
        {"name": "on demand", "kind": "T4", "gpus": 1, "rent": {"price_per_hour": 1.0}},
        {"name": "reserved", "kind": "T4", "gpus": 1, "rent": {"price_per_hour": 1.0, "always_on": True}},
    ]
    scenario = make_scenario(alternatives=alternatives, policies=["exclusive"], budget_per_week=50.0)
    prices = {name: HourlyPrice(amount=1.0) for name in ("on demand", "reserved")}
    choices, _ = list_choices(scenario, make_figures(scenario), prices)
    assert [choice.setting.budget_per_week for choice in choices] == [None, 50.0, None]
