"""The growth a year and the doubling time, beside the closed form and by simulation."""

import math

import numpy as np
import pandas as pd
import pytest
from scipy import stats

from collector.forecast.growth import measure_growth
from memory_tables import make_noisy_table


def make_observations(dates: list[float], logs: list[float]) -> pd.DataFrame:
    return pd.DataFrame({"year": [int(date) for date in dates], "date": dates, "value": np.exp2(logs)})


def test_growth_agrees_with_the_closed_form() -> None:
    table = make_noisy_table().rename(columns={"memory_gb": "value"})
    line = stats.linregress(table["date"], np.log2(table["value"]))
    reach = stats.t.ppf(0.95, len(table) - 2) * line.stderr
    growth = measure_growth(table, 0.9)
    expected = [2**line.slope, 2 ** (line.slope - reach), 2 ** (line.slope + reach)]
    assert growth.rate.factors == pytest.approx(expected)
    assert growth.rate.doubling_years == pytest.approx(
        [1 / line.slope, 1 / (line.slope + reach), 1 / (line.slope - reach)]
    )
    assert growth.by_year is None  # one observation a year: nothing goes together


def test_shrinking_values_never_double_and_doubtful_growth_may_not() -> None:
    dates = [2000.5 + year for year in range(10)]
    shrinking = measure_growth(make_observations(dates, [-float(year) for year in range(10)]), 0.95)
    assert shrinking.rate.doubling_years == (math.inf, math.inf, math.inf)
    doubtful = measure_growth(make_observations(dates, [2.0, 3.2, 1.6, 3.0, 2.3, 3.2, 2.0, 3.2, 2.3, 3.0]), 0.95)
    doubling, shortest, longest = doubtful.rate.doubling_years
    assert 0 < shortest < doubling < longest == math.inf


def test_interval_by_year_holds_growth_where_errors_of_a_year_go_together_and_the_plain_one_does_not() -> None:
    """Thirty releases a year for 20 years; half of the variance is the year's own."""
    rng = np.random.default_rng(20260103)
    years = np.repeat(np.arange(2000, 2020), 30)
    held = np.zeros(2)
    trials = 200
    for _ in range(trials):
        errors = rng.normal(0, 1, 20).repeat(30) + rng.normal(0, 1, len(years))
        dates = (years + rng.random(len(years))).tolist()
        growth = measure_growth(make_observations(dates, (0.5 * np.array(dates) - 1000 + errors).tolist()), 0.95)
        assert growth.by_year is not None
        for place, rate in enumerate((growth.rate, growth.by_year)):
            held[place] += rate.lower_log2 <= 0.5 <= rate.upper_log2
    plain, by_year = held / trials
    assert plain < 0.6
    assert by_year > 0.85  # for 20 years the sandwich is somewhat too narrow


def test_a_series_that_does_not_change_never_doubles() -> None:
    # The slope of equal values is a rounding error of either sign; such as doubling in 17,548,615,260,349,698 years.
    table = pd.DataFrame({"year": range(2015, 2026), "date": [year + 0.1 * (year % 3) for year in range(2015, 2026)]})
    for value in (3.0, 5.0, 7.0, 1e9 / 3):
        assert measure_growth(table.assign(value=value), 0.95).rate.doubling_years == (math.inf,) * 3
