"""What the candidates predict, beside closed forms and other programs."""

import math

import numpy as np
import numpy.typing as npt
import pytest
from scipy import stats
from statsmodels.regression.quantile_regression import QuantReg

from collector.forecast.candidates import CANDIDATES, Candidate, fit_quantile, know_until, list_candidates
from collector.forecast.gpu_table import load_gpu_table, make_gpu_series
from collector.forecast.least_squares import list_breaks
from collector.forecast.series import Series
from memory_tables import make_noisy_table, make_releases, make_yearly

BY_NAME = {candidate.name: candidate for candidate in CANDIDATES}
LEVEL = 0.95
FloatArray = npt.NDArray[np.float64]


def predict(name: str, series: Series, *dates: float, level: float = LEVEL) -> FloatArray:
    return BY_NAME[name].predict(know_until(series, series.last_year), np.array(dates), level)


def predict_closed_form(dates: FloatArray, response: FloatArray, degree: int, date: float) -> tuple[float, ...]:
    """Return prediction and bounds by the textbook: x0'b -+ t sqrt(s2 (1 + x0' (X'X)^-1 x0)), years from 2016."""
    design = np.vander(dates - 2016, degree + 1)
    point = np.vander([date - 2016], degree + 1)[0]
    coefficients = np.polyfit(dates - 2016, response, degree)
    freedom = len(dates) - degree - 1
    variance = ((response - design @ coefficients) ** 2).sum() / freedom
    spread = math.sqrt(variance * (1 + point @ np.linalg.inv(design.T @ design) @ point))
    reach = stats.t.ppf((1 + LEVEL) / 2, freedom) * spread
    centre = float(point @ coefficients)
    return centre, centre - reach, centre + reach


@pytest.mark.parametrize(("name", "degree"), [("polynomial 2", 2), ("polynomial 3", 3), ("polynomial 4", 4)])
def test_polynomials_agree_with_the_closed_form(name: str, degree: int) -> None:
    series = make_gpu_series(make_noisy_table())
    dates, values = (series.observations[column].to_numpy() for column in ("date", "value"))
    assert predict(name, series, 2027.5)[0].tolist() == pytest.approx(
        predict_closed_form(dates, values, degree, 2027.5), rel=1e-6
    )


def test_log_linear_is_the_straight_line_of_the_logarithms() -> None:
    series = make_gpu_series(make_noisy_table())
    dates, values = (series.observations[column].to_numpy() for column in ("date", "value"))
    expected = [2**value for value in predict_closed_form(dates, np.log2(values), 1, 2027.5)]
    assert predict("log-linear", series, 2027.5)[0].tolist() == pytest.approx(expected, rel=1e-6)


def test_piecewise_finds_a_bend_and_goes_on_at_the_later_pace() -> None:
    # A doubling every year up to 2008.5, every second year from there.
    logs = [float(min(year, 8)) + max(year - 8, 0) / 2 for year in range(17)]
    series = make_yearly(2000, [2.0**value for value in logs])
    value, lower, upper = predict("piecewise log-linear", series, 2020.5)[0]
    assert math.log2(value) == pytest.approx(8 + 12 / 2)
    assert lower == pytest.approx(value)
    assert upper == pytest.approx(value)
    assert math.log2(predict("piecewise log-linear", series, 2004.5)[0, 0]) == pytest.approx(4.0)


def test_a_break_leaves_four_dates_on_each_side_of_it() -> None:
    assert list_breaks(np.arange(7.0)).tolist() == [3.0]
    assert list_breaks(np.repeat(np.arange(9.0), 3)).tolist() == [3.0, 4.0, 5.0]
    assert list_breaks(np.arange(6.0)).tolist() == []
    assert len(list_breaks(np.arange(1000.0))) <= 40


@pytest.mark.parametrize("quantile", [0.25, 0.5, 0.8])
def test_quantile_regression_agrees_with_that_of_statsmodels(quantile: float) -> None:
    rng = np.random.default_rng(3)
    design = np.column_stack([np.ones(60), np.sort(rng.uniform(-1, 1, 60))])
    response = design @ [3.0, 5.0] + rng.exponential(1.0, 60)
    expected = QuantReg(response, design).fit(q=quantile).params
    assert fit_quantile(design, response, quantile) == pytest.approx(expected, abs=1e-4)


def test_quantile_of_a_frontier_is_the_expected_place_of_the_largest() -> None:
    # Three releases a year, at 1, 2 and 4 times the trend: the largest of three is expected at 3/4 of the distribution.
    rows = [(2000 + year + 0.5, factor * 2.0**year) for year in range(10) for factor in (1, 2, 4)]
    assert predict("quantile regression", make_releases(rows, "frontier"), 2012.5)[0, 0] == pytest.approx(4 * 2.0**12)
    assert predict("quantile regression", make_releases(rows, "all"), 2012.5)[0, 0] == pytest.approx(2 * 2.0**12)


def test_record_highs_ignore_what_is_no_record_and_never_fall_below_the_last() -> None:
    doubling = [(2000 + year + 0.5, 2.0**year) for year in range(10)]
    with_small = make_releases([*doubling, *((date + 0.1, 0.5) for date, _ in doubling)], "frontier")
    assert predict("record highs", with_small, 2012.5)[0, 0] == pytest.approx(2.0**12)
    leaping = make_releases([*((2000 + year + 0.5, 1 + year / 100) for year in range(9)), (2009.5, 1000.0)], "frontier")
    assert predict("record highs", leaping, 2010.5)[0, 0] == 1000.0


def test_last_value_of_all_releases_is_the_median_of_the_last_year() -> None:
    rows = [(2000.5 + year, 1.0) for year in range(9)]
    late = [*rows, (2009.6, 3.0), (2010.1, 5.0), (2010.5, 7.0)]
    assert predict("last value", make_releases(late, "all"), 2013.5)[0, 0] == 5.0
    assert predict("last value", make_releases(late, "frontier"), 2013.5)[0, 0] == 7.0


def test_what_was_known_ends_with_its_year() -> None:
    known = know_until(make_gpu_series(load_gpu_table()), 2015)
    assert known.dates.max() == 2015.5
    assert known.releases["year"].max() == 2015


def test_candidates_of_the_largest_are_not_asked_about_records() -> None:
    def name_all(candidates: list[Candidate]) -> list[str]:
        return [candidate.name for candidate in candidates]

    assert name_all(list_candidates("frontier")) == list(BY_NAME)
    assert set(BY_NAME) - set(name_all(list_candidates("all"))) == {"record highs"}
    assert set(BY_NAME) - set(name_all(list_candidates("records"))) == {"record highs", "quantile regression"}
