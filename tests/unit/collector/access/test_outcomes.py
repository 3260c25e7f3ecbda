"""Estimates over weeks: centres by hand, intervals against known truths."""

from math import isnan

import numpy as np
import pytest
from scipy import stats

from access_scenarios import make_choice, make_group
from collector.access.outcomes import Ratio, estimate_percentile
from collector.access.simulation import add_working_time


def test_the_interval_of_a_mean_is_that_of_students_t() -> None:
    figure = Ratio(np.array([1.0, 2.0, 4.0, 3.0]), np.ones(4)).estimate()
    expected = stats.t.interval(0.95, 3, loc=2.5, scale=np.std([1.0, 2.0, 4.0, 3.0], ddof=1) / 2)
    assert figure == pytest.approx((2.5, *expected))
    assert isnan(Ratio(np.zeros(3), np.zeros(3)).estimate().center)


def test_the_interval_of_a_ratio_covers_the_truth_as_often_as_it_says() -> None:
    generator = np.random.default_rng(1)
    num_trials, num_weeks, covered = 1000, 30, 0
    for _ in range(num_trials):
        jobs = generator.poisson(20, num_weeks).astype(float)
        waits = np.array([generator.exponential(3.0, int(number)).sum() for number in jobs])
        figure = Ratio(waits, jobs).estimate()
        covered += figure.low <= 3.0 <= figure.high
    # 95 % of 1,000 trials, four standard deviations (6.9 each), and a little less for the delta method.
    assert covered / num_trials == pytest.approx(0.95, abs=0.03)


def test_what_weeks_do_to_both_sides_cancels_in_their_ratio() -> None:
    weeks, ones = np.array([1.0, 5.0, 2.0, 8.0]), np.ones(4)
    assert Ratio(3 * weeks, ones).compare(Ratio(2 * weeks, ones)) == pytest.approx((1.5, 1.5, 1.5))


def test_a_percentile_is_that_of_all_weeks_together() -> None:
    assert estimate_percentile(np.arange(1.0, 101.0), np.repeat([0, 2], 50), 3).center == 95.0


def test_slowdowns_are_on_straight_lines_and_beyond_the_last_all_share() -> None:
    kind = {"slowdowns": {"mps": {2: 1.5, 4: 2.5}}, "max_tenants": 8}
    slowdowns = [1 / rate for rate in make_choice(policy="mps", kind=kind).rates]
    assert slowdowns == pytest.approx([1.0, 1.5, 2.0, 2.5, 2.5 * 5 / 4, 2.5 * 6 / 4, 2.5 * 7 / 4, 5.0])
    assert make_choice(policy="time-slicing").rates == pytest.approx((1, 1 / 2, 1 / 3, 1 / 4))


def test_working_time_goes_from_the_end_of_one_day_to_the_next() -> None:
    group = make_group(working_hours=(9.0, 17.0), working_days=("mon", "wed"))
    found = [add_working_time(group, 0.0, hours) for hours in (0, 4, 8, 16)]
    assert found == [9, 13, 48 + 9, 168 + 9]
    assert [add_working_time(group, time, 1) for time in (13, 16.5, 40, 48 + 17)] == [14, 48 + 9.5, 48 + 10, 168 + 10]
