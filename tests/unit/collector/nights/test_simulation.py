"""Nights simulated from a seed, whose truth is known: what `watch` finds of it, and how little it finds wrongly.

A small part of benchmarks/watch_nights.py, whose tables docs/nights.md has.
"""

import math
from dataclasses import replace

from night_scenarios import STEP, Outcome, Scenario, run_programme

CALM = Scenario(name="200 cells of 1 to 3 %, 20 of them with two levels", own=(0.01, 0.03), num_two_levels=20)
SHARED = math.sqrt(0.03**2 - 0.005**2)
QUIET = Scenario(name="3 % in all, 0.5 % of it the cell's own", own=(0.005, 0.005), shared=SHARED)


def run_programmes(scenario: Scenario, number: int) -> list[Outcome]:
    return [run_programme(scenario, seed) for seed in range(number)]


def test_sixty_nights_without_a_change_raise_one_alarm_at_most() -> None:
    (outcome,) = run_programmes(CALM, 1)

    assert outcome.num_false_alarms <= 1
    assert outcome.num_confirmations > 0  # so it is the second look that keeps them away


def test_cells_on_two_levels_raise_no_more_alarms_than_others() -> None:
    (outcome,) = run_programmes(replace(CALM, num_two_levels=200), 1)

    assert outcome.num_false_alarms <= 1


def test_a_step_of_five_per_cent_is_found_within_three_nights() -> None:
    outcomes = run_programmes(replace(QUIET, step=STEP), 10)

    assert sum(outcome.num_changed for outcome in outcomes) == 100
    assert sum(outcome.num_found for outcome in outcomes) >= 95


def test_a_drift_of_one_per_cent_a_week_is_found_within_six_weeks() -> None:
    drift = Scenario(name="", own=(0.01, 0.01), weekly_drift=math.log(1.01), change_at=18, within=42)

    (outcome,) = run_programmes(drift, 1)

    assert (outcome.num_found, outcome.num_changed) == (10, 10)
