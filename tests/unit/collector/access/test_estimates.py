"""Estimates over weeks: centres by hand, intervals against other ways to compute them and against known truths."""

from math import isnan, sqrt

import numpy as np
import pytest
from scipy import stats

from collector.access.estimates import (
    Ratio,
    compare_ratios,
    compute_jain,
    estimate_jain,
    estimate_percentile,
    estimate_ratio,
    make_mean,
)


def test_the_interval_of_a_mean_is_that_of_students_t() -> None:
    values = np.array([1.0, 2.0, 4.0, 3.0])
    expected = stats.t.interval(0.95, 3, loc=2.5, scale=np.std(values, ddof=1) / 2)
    figure = estimate_ratio(make_mean(values))
    assert (figure.low, figure.high) == pytest.approx(expected)
    assert figure.center == 2.5


def test_a_ratio_is_of_sums_and_exact_where_every_week_has_it() -> None:
    figure = estimate_ratio(Ratio(numerators=np.array([2.0, 6.0]), denominators=np.array([1.0, 3.0])))
    assert (figure.center, figure.low, figure.high) == pytest.approx((2.0, 2.0, 2.0))


def test_the_interval_of_a_ratio_covers_the_truth_as_often_as_it_says() -> None:
    generator = np.random.default_rng(1)
    num_trials, num_weeks, covered = 1000, 30, 0
    for _ in range(num_trials):
        jobs = generator.poisson(20, num_weeks).astype(float)
        waits = np.array([generator.exponential(3.0, int(number)).sum() for number in jobs])
        figure = estimate_ratio(Ratio(numerators=waits, denominators=jobs))
        covered += figure.low <= 3.0 <= figure.high
    # 95 % of 1,000 trials, four standard deviations (6.9 each), and a little less for the delta method.
    assert covered / num_trials == pytest.approx(0.95, abs=0.03)


def test_a_ratio_without_denominator_is_unknown() -> None:
    assert isnan(estimate_ratio(Ratio(numerators=np.zeros(3), denominators=np.zeros(3))).center)


def test_what_weeks_do_to_both_sides_cancels_in_their_ratio() -> None:
    weeks = np.array([1.0, 5.0, 2.0, 8.0])
    figure = compare_ratios(make_mean(3 * weeks), make_mean(2 * weeks))
    assert (figure.center, figure.low, figure.high) == pytest.approx((1.5, 1.5, 1.5))


def test_the_ratio_of_independent_means_has_the_interval_of_their_logs() -> None:
    generator = np.random.default_rng(2)
    one, other = generator.normal(100, 10, 400), generator.normal(50, 5, 400)
    figure = compare_ratios(make_mean(one), make_mean(other))
    # Both have a relative standard error of 0.1 / 20, and they add in squares.
    half = 1.966 * sqrt(2) * 0.1 / 20
    assert figure.high / figure.center == pytest.approx(np.exp(half), rel=0.003)
    assert figure.center == pytest.approx(2.0, rel=0.03)


def test_a_percentile_is_of_all_weeks_together() -> None:
    weeks = [np.arange(1.0, 51.0), np.array([]), np.arange(51.0, 101.0)]
    assert estimate_percentile(weeks, 0.95).center == 95.0
    assert isnan(estimate_percentile([np.array([])] * 2, 0.95).center)


def test_the_interval_of_a_percentile_covers_the_truth_about_as_often_as_it_says() -> None:
    generator = np.random.default_rng(3)
    truth = float(stats.expon.ppf(0.95))
    figures = [estimate_percentile([generator.exponential(1.0, 30) for _ in range(40)], 0.95) for _ in range(60)]
    # 57 of 60 on average, with a standard deviation of 1.7.
    assert sum(figure.low <= truth <= figure.high for figure in figures) >= 52


@pytest.mark.parametrize(("amounts", "index"), [([5.0, 5.0], 1.0), ([4.0, 0.0, 0.0, 0.0], 0.25), ([3.0, 1.0], 16 / 20)])
def test_jains_index(amounts: list[float], index: float) -> None:
    assert compute_jain(np.array(amounts)) == pytest.approx(index)


def test_jains_index_is_of_what_users_got_in_all_weeks_together() -> None:
    # In each week one has all; over both, everybody has the same.
    figure = estimate_jain(np.array([[1.0, 0.0], [0.0, 1.0]]))
    assert figure.center == 1.0
    assert figure.low == 0.5  # a draw of one week alone
    assert isnan(estimate_jain(np.zeros((2, 2))).center)


def test_jains_index_of_a_quotient_leaves_out_who_has_no_divisor() -> None:
    alone, turnarounds = np.array([[1.0, 2.0, 0.0]] * 3), np.array([[2.0, 8.0, 0.0]] * 3)
    assert estimate_jain(alone, turnarounds).center == pytest.approx(compute_jain(np.array([0.5, 0.25])))
