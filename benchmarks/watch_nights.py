"""Measures what `benchmatrix watch` finds, and what it finds wrongly, in simulated nights whose truth is known.

Prints the tables of docs/nights.md as Markdown. Nights are drawn as tests/night_scenarios.py says. Other methods
on the same series: `--others` for ruptures (if installed), `--otava PYTHON` for apache-otava in an environment of its
own, which benchmarks/otava_nights.py asks. From the checkout, half an hour; `--programmes 5` for a quick look:
.venv/bin/python benchmarks/watch_nights.py
"""

import argparse
import math
import sys
from collections.abc import Iterable, Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np
from scipy import stats

sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))

from other_methods import list_other_lines  # noqa: E402

from night_scenarios import NUM_CONFIRMATIONS, NUM_REPEATS, REPEAT_NOISE, STEP, Scenario, run_programme  # noqa: E402

NUM_PROGRAMMES = 20
ALARMS_ALLOWED = 1 / 12_000
"""One in 200 cells and 60 nights."""
MIXED = Scenario(name="200 cells, 1 to 3 %, 20 of them with two levels", own=(0.01, 0.03), num_two_levels=20)
SIZES = ((30, 12), (100, 6), (300, 3))
"""Numbers of cells, with how many programmes are simulated of each."""
FIRST_SIZE_SEED = 100
"""So that these programmes are none of those of the other tables."""
OWN = (0.005, 0.01, 0.0125, 0.015, 0.02, 0.03)


def two_sessions_bound(scenario: Scenario) -> float:
    """Return the share of steps that the best method can find, where a night's noise lasts and nothing else is unknown.

    It knows noise and level before the step, looks at the three nights once, with all repeats, and makes one false
    alarm in ALARMS_ALLOWED looks. What cells share is known to it.
    """
    variance = scenario.own[0] ** 2 + REPEAT_NOISE**2 / (NUM_REPEATS + NUM_CONFIRMATIONS)
    score = scenario.step / np.sqrt(variance / scenario.within)
    return float(stats.norm.sf(stats.norm.isf(ALARMS_ALLOWED) - score))


def main() -> None:
    """Run every scenario and print the tables."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--programmes", type=int, default=NUM_PROGRAMMES, help="simulated programmes of 60 nights")
    parser.add_argument("--only", choices=("alarms", "sizes", "steps", "drifts", "others"), help="one table")
    parser.add_argument("--others", action="store_true", help="compare with other methods, too")
    parser.add_argument("--otava", metavar="PYTHON", help="an interpreter that has apache-otava 0.8")
    arguments = parser.parse_args()
    for name, list_lines in (("alarms", list_alarm_lines), ("steps", list_step_lines), ("drifts", list_drift_lines)):
        if arguments.only in (None, name):
            print_lines(list_lines(arguments.programmes))
    if arguments.only in (None, "sizes"):
        print_lines(list_size_lines())
    if arguments.others or arguments.otava:
        print_lines(list_other_lines(MIXED, arguments.programmes, arguments.otava))


def print_lines(lines: Iterable[str]) -> None:
    """Print lines, each as soon as it is there, and an empty one."""
    for line in lines:
        print(line, flush=True)
    print()


def list_alarm_lines(num_programmes: int) -> Iterator[str]:
    """Yield the lines of the table of false alarms in programmes without any change."""
    yield from (
        "| nights without a change | false alarms in a programme: mean | most | programmes with more than one "
        "| measured again a night |",
        "|---|---|---|---|---|",
    )
    cases = [
        MIXED,
        replace(MIXED, name=f"{MIXED.name}; confirmations have the noise of a night of their own", lasts=False),
        replace(MIXED, name="the same, half of the variance shared by all cells", shared=0.02),
        replace(MIXED, name="200 cells, 1 %", own=(0.01, 0.01), num_two_levels=0),
        replace(MIXED, name="200 cells of two levels", num_two_levels=200),
    ]
    for scenario in cases:
        outcomes = [run_programme(scenario, seed) for seed in range(num_programmes)]
        alarms = [outcome.num_false_alarms for outcome in outcomes]
        again = np.mean([outcome.num_confirmations for outcome in outcomes]) / scenario.num_nights
        more = sum(number > 1 for number in alarms)
        yield f"| {scenario.name} | {np.mean(alarms):.2f} | {max(alarms)} | {more} of {len(alarms)} | {again:.1f} |"


def list_size_lines() -> Iterator[str]:
    """Yield the lines of the table of false alarms by the number of cells, none of which changes."""
    yield from ("| cells | programmes | alarms, nights of 1 % | alarms, nights of 1 to 3 % |", "|---|---|---|---|")
    for num_cells, num_programmes in SIZES:
        alarms = [
            sum(
                run_programme(Scenario(name="", own=own, num_cells=num_cells), FIRST_SIZE_SEED + seed).num_false_alarms
                for seed in range(num_programmes)
            )
            for own in ((0.01, 0.01), (0.01, 0.03))
        ]
        yield f"| {num_cells} | {num_programmes} | {alarms[0]} | {alarms[1]} |"


def list_step_lines(num_programmes: int) -> Iterator[str]:
    """Yield the lines of the table of how many steps of 5 % are found within three nights."""
    yield from (
        "| noise of nights | found within three nights | the best possible "
        "| with confirmations of a night of their own |",
        "|---|---|---|---|",
    )
    cases = [(f"{own:.2%} of the cell's own", Scenario(name="", own=(own, own), step=STEP)) for own in OWN]
    cases += [
        (f"3 % in all, of it {own:.1%} of the cell's own", Scenario(name="", own=(own, own), shared=shared, step=STEP))
        for own in (0.005, 0.01, 0.0125)
        for shared in (math.sqrt(0.03**2 - own**2),)
    ]
    cases.append(("1 %, two levels", Scenario(name="", own=(0.01, 0.01), num_two_levels=200, step=STEP)))
    for name, scenario in cases:
        shares = [measure_share(chosen, num_programmes) for chosen in (scenario, replace(scenario, lasts=False))]
        bound = "" if scenario.num_two_levels else f"{two_sessions_bound(scenario):.0%}"
        yield f"| {name} | {shares[0]} | {bound} | {shares[1]} |".replace("%", " %").replace("  %", " %")


def list_drift_lines(num_programmes: int) -> Iterator[str]:
    """Yield the lines of the table of how many drifts of 1 % a week are found within six weeks."""
    yield from ("| noise of nights, the cell's own | drifts found within six weeks |", "|---|---|")
    for own in (0.01, 0.02, 0.025, 0.03):
        scenario = Scenario(name="", own=(own, own), weekly_drift=math.log(1.01), change_at=18, within=42)
        yield f"| {own:.1%} | {measure_share(scenario, num_programmes)} |".replace("%", " %")


def measure_share(scenario: Scenario, num_programmes: int) -> str:
    """Return how many of the cells that got slower are found in time, as in `17 of 20`."""
    outcomes = [run_programme(scenario, seed) for seed in range(num_programmes)]
    found, changed = (sum(getattr(outcome, name) for outcome in outcomes) for name in ("num_found", "num_changed"))
    return f"{found} of {changed}"


if __name__ == "__main__":
    main()
