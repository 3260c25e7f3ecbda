"""The fits and the doubling time, beside the closed form and by simulation."""

import math

import numpy as np
import pandas as pd
import pytest
from scipy import stats

from collector.forecast.trend import CANDIDATES, LOG_LINEAR, Candidate, measure_doubling, predict_memory
from memory_tables import make_noisy_table


def predict_closed_form(
    table: pd.DataFrame, degree: int, date: float, response: np.ndarray
) -> tuple[float, float, float]:
    """Return prediction and 95 % bounds by the textbook: x0'b -+ t sqrt(s2 (1 + x0' (X'X)^-1 x0)), years from 2016."""
    design = np.vander(table["date"].to_numpy() - 2016, degree + 1)
    point = np.vander([date - 2016], degree + 1)[0]
    coefficients = np.polyfit(table["date"] - 2016, response, degree)
    freedom = len(table) - degree - 1
    variance = ((response - design @ coefficients) ** 2).sum() / freedom
    spread = math.sqrt(variance * (1 + point @ np.linalg.inv(design.T @ design) @ point))
    reach = stats.t.ppf(0.975, freedom) * spread
    centre = float(point @ coefficients)
    return centre, centre - reach, centre + reach


@pytest.mark.parametrize("candidate", CANDIDATES, ids=lambda candidate: candidate.name)
def test_prediction_and_interval_agree_with_the_closed_form(candidate: Candidate) -> None:
    table = make_noisy_table()
    response = np.log2(table["memory_gb"].to_numpy()) if candidate.in_log2 else table["memory_gb"].to_numpy()
    expected: tuple[float, ...] = predict_closed_form(table, candidate.degree, 2027.5, response)
    if candidate.in_log2:
        expected = tuple(2**value for value in expected)
    row = predict_memory(candidate, table, np.array([2027.5])).iloc[0]
    prediction = (row["memory_gb"], row["lower_gb"], row["upper_gb"])
    assert prediction == pytest.approx(expected, rel=1e-6)


def test_doubling_time_agrees_with_the_closed_form() -> None:
    table = make_noisy_table()
    line = stats.linregress(table["date"], np.log2(table["memory_gb"]))
    reach = stats.t.ppf(0.975, len(table) - 2) * line.stderr
    doubling = measure_doubling(table)
    assert doubling.years == pytest.approx(1 / line.slope)
    assert doubling.lower_years == pytest.approx(1 / (line.slope + reach))
    assert doubling.upper_years == pytest.approx(1 / (line.slope - reach))


@pytest.mark.parametrize("candidate", [CANDIDATES[0], LOG_LINEAR], ids=lambda candidate: candidate.name)
def test_95_percent_intervals_hold_95_percent_of_new_observations(candidate: Candidate) -> None:
    rng = np.random.default_rng(20260101)
    dates, ahead = np.arange(2010, 2025) + 0.5, np.array([2028.5])
    trials, held = 400, 0
    for _ in range(trials):
        signal = 3 + (np.append(dates, ahead) - 2010) / 2.5
        noisy = signal + rng.normal(0, 0.4, signal.size)
        memory_gb = 2**noisy if candidate.in_log2 else 100 + noisy
        observations = pd.DataFrame({"date": dates, "memory_gb": memory_gb[:-1]})
        row = predict_memory(candidate, observations, ahead).iloc[0]
        held += row["lower_gb"] <= memory_gb[-1] <= row["upper_gb"]
    # 380 expected; 4 standard deviations of a binomial count are 4 * sqrt(400 * 0.95 * 0.05) = 17.4
    assert held == pytest.approx(380, abs=17)
