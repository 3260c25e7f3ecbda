"""The figures of the scenarios that come with the tool are those of the CSV files beside this test."""

import csv
from pathlib import Path

import pytest

from collector.access.outcomes import Figure, evaluate_choice, list_choices
from runner.access_scenarios import load_scenario, look_up_figures, look_up_prices

FILES = sorted(Path(__file__).parent.glob("*.csv"))


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_a_shipped_scenario_gives_the_same_figures(path: Path) -> None:
    scenario, tree = load_scenario(path.stem)
    choices, _ = list_choices(scenario, look_up_figures(scenario, tree), look_up_prices(scenario, tree))
    found: dict[tuple[str, ...], Figure] = {}
    for choice in choices:
        outcome = evaluate_choice(choice, scenario.weeks)
        counts = {name: Figure(getattr(outcome, name)) for name in ("num_jobs", "num_unended")}
        for users, figures in (("everybody", outcome.figures | counts), *outcome.by_group.items()):
            for name, figure in figures.items():
                found[choice.alternative.name, choice.policy, users, name] = figure
    with path.open(newline="") as file:
        rows = {
            (row["alternative"], row["policy"], row["users"], row["figure"]): [
                float(row[end] or "nan") for end in ("center", "low", "high")
            ]
            for row in csv.DictReader(file)
        }
    assert found.keys() == rows.keys()
    for key, expected in rows.items():
        assert list(found[key]) == pytest.approx(expected, rel=1e-9, abs=1e-12, nan_ok=True), key
