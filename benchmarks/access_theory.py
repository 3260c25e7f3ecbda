"""Holds the simulation of access against formulas of queueing theory.

Prints the table of docs/access.md: mean waits and turnarounds with 95 % intervals over independent weeks, beside what
the formulas say. From the checkout, five minutes on one core: .venv/bin/python benchmarks/access_theory.py
"""

import argparse
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

ROOT = Path(__file__).parents[1]
sys.path[:0] = [str(ROOT), str(ROOT / "tests")]

from access_scenarios import make_choice, make_group  # noqa: E402
from collector.access.outcomes import Ratio  # noqa: E402
from collector.access.scenario import Choice, Policy  # noqa: E402
from collector.access.simulation import FloatArray, simulate_week  # noqa: E402
from queueing_formulas import machine_repair_throughput, mg_1_ps_turnaround, mg_1_wait, mm_c_wait  # noqa: E402

HOURS = 0.5
LENGTHS: dict[float, dict[str, Any]] = {
    0.0: {"spread": "none"},
    1.5: {"spread": "none", "job_hours": (2.0,) + (0.125,) * 4},
    2.0: {"spread": "none", "job_hours": (3.5,) + (1 / 6,) * 9},
}
"""Of users, by coefficient of variation: all of half an hour, or one long job among short ones."""
WARM_UP_WEEKS = 3
"""At a load of 0.8 a queue forgets its beginning by a factor of e in 45 h."""
Measure = Callable[[pd.DataFrame, FloatArray], tuple[float, float]]
"""Returns a sum over a week, and of how many."""


def main() -> None:
    """Print one line per formula."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--weeks", type=int, default=300)
    arguments = parser.parse_args()
    print("| system | quantity | formula | simulated | 95 % interval | deviation |\n|---|---|---|---|---|---|")
    for name, quantity, expected, choice, measure in list_cases():
        weeks = (simulate_week(choice, number) for number in range(arguments.weeks))
        figure = Ratio(*np.array([measure(*week) for week in weeks]).T).estimate()
        deviation = f"{figure.center / expected - 1:+.1%}".replace("%", " %")
        interval = f"{figure.low:.4g} to {figure.high:.4g}"
        print(f"| {name} | {quantity} | {expected:.4g} | {figure.center:.4g} | {interval} | {deviation} |", flush=True)


def list_cases() -> Iterator[tuple[str, str, float, Choice, Measure]]:
    """Yield name, quantity, formula's value, choice and measure of every case."""
    for num_gpus, load in ((1, 0.5), (1, 0.8), (4, 0.8)):
        expected = mm_c_wait(load * num_gpus / HOURS, HOURS, num_gpus)
        yield f"M/M/{num_gpus}, load {load}", "wait, h", expected, make_poisson(load, num_gpus), sum_waits
    yield (
        "M/G/1, load 0.6, cv 1.5",
        "wait, h",
        mg_1_wait(0.6 / HOURS, HOURS, 2.25),
        make_poisson(0.6, **LENGTHS[1.5]),
        sum_waits,
    )
    for cv in (0.0, 2.0):
        choice = make_poisson(0.7, policy="time-slicing", kind={"max_tenants": 64}, **LENGTHS[cv])
        name, expected = f"M/G/1 processor sharing, load 0.7, cv {cv:g}", mg_1_ps_turnaround(0.7 / HOURS, HOURS)
        yield name, "turnaround, h", expected, choice, sum_turnarounds
    closed = make_choice(make_group(number=4, job_hours=(HOURS,), think_hours=1.0))
    work = machine_repair_throughput(4, 1.0, HOURS) * 168 * HOURS
    yield "4 users who wait, think 1 h", "work a week, h", work, closed, sum_work


def make_poisson(
    load: float, num_gpus: int = 1, policy: Policy = "exclusive", kind: Any = None, **given: Any
) -> Choice:
    """Return four users who use the GPUs for `load` of the time."""
    jobs_per_day = load * num_gpus * 24 / HOURS / 4
    group = make_group(**{"number": 4, "job_hours": (HOURS,), "jobs_per_day": jobs_per_day} | given)
    return make_choice(group, num_gpus=num_gpus, policy=policy, kind=kind, warm_up_weeks=WARM_UP_WEEKS)


def sum_waits(jobs: pd.DataFrame, counts: FloatArray) -> tuple[float, float]:
    """Return the hours that the jobs of a week waited, and how many jobs there were."""
    return float(jobs["wait"].sum()), len(jobs)


def sum_turnarounds(jobs: pd.DataFrame, counts: FloatArray) -> tuple[float, float]:
    """Return the hours from submission to end of the jobs of a week, and how many jobs there were."""
    return float(jobs["turnaround"].sum()), len(jobs)


def sum_work(jobs: pd.DataFrame, counts: FloatArray) -> tuple[float, float]:
    """Return the hours of work that were done in one week."""
    return float(counts[2:].sum()), 1.0


if __name__ == "__main__":
    main()
