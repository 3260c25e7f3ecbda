"""The simulation gives what queueing theory says where it has a formula.

Each test simulates independent weeks after a warm-up that is deleted, with a fixed seed. The formula has to lie within
the 99 % interval over the weeks, and the interval has to be as narrow as stated: a test that cannot tell is none.
benchmarks/access_theory.py does the same for longer; docs/access.md has its figures.
"""

from collections.abc import Iterable, Sequence
from math import sqrt
from typing import Any

import numpy as np
import pandas as pd
import pytest
from scipy import stats

from access_scenarios import make_choice, make_group
from collector.access.scenario import Choice, Policy
from collector.access.simulation import FloatArray, simulate_week
from queueing_formulas import machine_repair_throughput, mg_1_ps_turnaround, mg_1_wait, mm_c_wait

NUM_WEEKS = 50
CONFIDENCE = 0.99
HALF_HOUR = 0.5
MIXED = (2.0,) + (0.125,) * 4
"""Hours: one in five jobs is 16 times as long as the others; their mean is 0.5, their coefficient of variation 1.5."""


def check_mean(sums: Sequence[float], counts: Sequence[float], expected: float, tolerance: float) -> None:
    """Check that the interval of the mean holds the expected value and is at most +/- `tolerance` of it.

    Of each week, the sum of a value and how many there were: weeks with more jobs have longer queues, so the mean of
    the weeks' means would be too small.
    """
    mean = sum(sums) / sum(counts)
    residuals = (np.array(sums) - mean * np.array(counts)) / np.mean(counts)
    half = stats.t.ppf((1 + CONFIDENCE) / 2, len(sums) - 1) * np.std(residuals, ddof=1) / sqrt(len(sums))
    assert half <= tolerance * expected
    assert abs(mean - expected) <= half


def check_jobs(values: Iterable[FloatArray], expected: float, tolerance: float) -> None:
    """Check the mean over jobs of a value, given for each week."""
    weeks = list(values)
    check_mean([float(week.sum()) for week in weeks], [len(week) for week in weeks], expected, tolerance)


def make_poisson_choice(
    load: float, num_gpus: int = 1, policy: Policy = "exclusive", kind: Any = None, **given: Any
) -> Choice:
    """Return a choice in which four users submit at all hours, so that the GPUs are used for `load` of the time."""
    jobs_per_day = load * num_gpus * 24 / HALF_HOUR / 4
    group = make_group(**{"number": 4, "job_hours": (HALF_HOUR,), "jobs_per_day": jobs_per_day} | given)
    assert group.jobs_per_week * HALF_HOUR == pytest.approx(load * num_gpus * 168)
    return make_choice(group, num_gpus=num_gpus, policy=policy, kind=kind)


def simulate_weeks(choice: Choice, num_weeks: int = NUM_WEEKS) -> list[pd.DataFrame]:
    """Return the jobs of each week."""
    return [simulate_week(choice, number)[0] for number in range(num_weeks)]


@pytest.mark.parametrize(("num_gpus", "load", "tolerance"), [(1, 0.6, 0.2), (3, 0.7, 0.25)])
def test_exclusive_use_with_exponential_lengths_waits_as_m_m_c(num_gpus: int, load: float, tolerance: float) -> None:
    choice = make_poisson_choice(load, num_gpus)
    weeks = simulate_weeks(choice)
    expected = mm_c_wait(load * num_gpus / HALF_HOUR, HALF_HOUR, num_gpus)
    check_jobs((week["wait"].to_numpy() for week in weeks), expected, tolerance)


def test_exclusive_use_of_one_gpu_waits_as_pollaczek_and_khinchine_say() -> None:
    choice = make_poisson_choice(0.5, spread="none", job_hours=MIXED)
    weeks = simulate_weeks(choice, 2 * NUM_WEEKS)
    expected = mg_1_wait(0.5 / HALF_HOUR, HALF_HOUR, 1.5**2)
    check_jobs((week["wait"].to_numpy() for week in weeks), expected, 0.2)


@pytest.mark.parametrize("spread", [{"spread": "none"}, {"spread": "none", "job_hours": MIXED}])
def test_time_slicing_without_loss_is_m_g_1_processor_sharing_whatever_the_spread(spread: dict[str, Any]) -> None:
    load = 0.6
    choice = make_poisson_choice(load, policy="time-slicing", kind={"max_tenants": 64}, **spread)
    weeks = simulate_weeks(choice)
    expected = mg_1_ps_turnaround(load / HALF_HOUR, HALF_HOUR)
    check_jobs((week["turnaround"].to_numpy() for week in weeks), expected, 0.2)
    assert sum(float(week["wait"].sum()) for week in weeks) == 0.0  # 64 tenants were never too few
    check_jobs(((week["turnaround"] / week["alone"]).to_numpy() for week in weeks), 1 / (1 - load), 0.2)


def test_users_who_wait_for_their_jobs_get_as_much_as_a_finite_population_does() -> None:
    group = make_group(number=4, job_hours=(HALF_HOUR,), think_hours=1.0)
    counts = np.array([simulate_week(make_choice(group), number)[1] for number in range(NUM_WEEKS)])
    expected = machine_repair_throughput(4, 1.0, HALF_HOUR) * 168 * HALF_HOUR
    check_mean(counts[:, 2:].sum(axis=1).tolist(), [1.0] * NUM_WEEKS, expected, 0.05)
    check_mean(counts[:, 1].tolist(), [1.0] * NUM_WEEKS, expected, 0.05)
