"""Estimates over weeks: centres by hand, intervals against known truths."""

from math import isnan

import numpy as np
import pytest
from scipy import stats

from access_scenarios import make_group
from collector.access.outcomes import (
    Ratio,
    compare_ratios,
    compute_jain,
    estimate_jain,
    estimate_mean,
    estimate_percentile,
    estimate_ratio,
    interpolate_slowdown,
)
from collector.access.simulation import WorkingTime


def test_the_interval_of_a_mean_is_that_of_students_t() -> None:
    figure = estimate_mean(np.array([1.0, 2.0, 4.0, 3.0]))
    expected = stats.t.interval(0.95, 3, loc=2.5, scale=np.std([1.0, 2.0, 4.0, 3.0], ddof=1) / 2)
    assert figure == pytest.approx((2.5, *expected))
    assert isnan(estimate_ratio(Ratio(np.zeros(3), np.zeros(3))).center)


def test_the_interval_of_a_ratio_covers_the_truth_as_often_as_it_says() -> None:
    generator = np.random.default_rng(1)
    num_trials, num_weeks, covered = 1000, 30, 0
    for _ in range(num_trials):
        jobs = generator.poisson(20, num_weeks).astype(float)
        waits = np.array([generator.exponential(3.0, int(number)).sum() for number in jobs])
        figure = estimate_ratio(Ratio(waits, jobs))
        covered += figure.low <= 3.0 <= figure.high
    # 95 % of 1,000 trials, four standard deviations (6.9 each), and a little less for the delta method.
    assert covered / num_trials == pytest.approx(0.95, abs=0.03)


def test_what_weeks_do_to_both_sides_cancels_in_their_ratio() -> None:
    weeks, ones = np.array([1.0, 5.0, 2.0, 8.0]), np.ones(4)
    assert compare_ratios(Ratio(3 * weeks, ones), Ratio(2 * weeks, ones)) == pytest.approx((1.5, 1.5, 1.5))


def test_the_interval_of_a_percentile_covers_the_truth_about_as_often_as_it_says() -> None:
    assert estimate_percentile([np.arange(1.0, 51.0), np.array([]), np.arange(51.0, 101.0)], 0.95).center == 95.0
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
    assert estimate_jain(np.array([[1.0, 0.0], [0.0, 1.0]]))[:2] == (1.0, 0.5)
    alone, turnarounds = np.array([[1.0, 2.0, 0.0]] * 3), np.array([[2.0, 8.0, 0.0]] * 3)
    assert estimate_jain(alone, turnarounds).center == pytest.approx(compute_jain(np.array([0.5, 0.25])))


@pytest.mark.parametrize(("number", "slowdown"), [(2, 2.0), (3, 3.0), (4, 4.0), (8, 8.0)])
def test_slowdowns_are_on_straight_lines_and_beyond_the_last_all_share(number: int, slowdown: float) -> None:
    assert interpolate_slowdown({2: 2.0, 4: 4.0}, number) == slowdown


def test_working_time_goes_from_the_end_of_one_day_to_the_next() -> None:
    time = WorkingTime(make_group(working_hours=(9.0, 17.0), working_days=("mon", "wed")))
    assert [time.measure(hour) for hour in (0, 9, 13, 40, 48 + 10)] == [0, 0, 4, 8, 9]
    assert [time.locate(hours) for hours in (0, 4, 8, 16)] == [9, 13, 48 + 9, 168 + 9]
