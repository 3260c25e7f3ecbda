"""Intervals calibrated on errors: by hand, and how often they hold the truth where that is known."""

import numpy as np
import pytest
from scipy import stats

from collector.forecast.calibration import calibrate, count_independent


def test_errors_of_years_that_do_not_overlap_are_all_independent() -> None:
    assert count_independent([2010, 2011, 2012], 1) == pytest.approx(3.0)
    assert count_independent([2010, 2013, 2016], 3) == pytest.approx(3.0)
    assert count_independent([2010], 4) == pytest.approx(1.0)


def test_errors_that_share_years_count_less() -> None:
    # Two origins one year apart, two years ahead, share one year: correlation 1/2, of squares 1/4: 4 / (2 + 2 / 4).
    assert count_independent([2010, 2011], 2) == pytest.approx(1.6)
    # Eight origins four ahead: 64 / (8 + 2 (7 * 9/16 + 6 * 4/16 + 5 * 1/16)).
    assert count_independent(range(8), 4) == pytest.approx(64 / 19.5)


def test_cases_of_one_origin_count_as_one() -> None:
    origins, errors = np.array([2010, 2010, 2010, 2011, 2012]), np.array([3.0, 3.0, 3.0, 1.0, 2.0])
    calibration = calibrate(origins, errors, 1)
    assert calibration is not None
    assert (calibration.num_origins, calibration.num_cases) == (3, 5)
    assert calibration.spread_log2 == pytest.approx(np.sqrt((9 + 1 + 4) / 3))
    assert calibration.find_half_width(0.9) == pytest.approx(stats.t.ppf(0.95, 3) * np.sqrt(14 / 3))


def test_there_is_no_calibration_on_a_case_without_forecast_or_on_less_than_two_independent_ones() -> None:
    assert calibrate(np.arange(5), np.array([1.0, 1.0, np.nan, 1.0, 1.0]), 1) is None
    assert calibrate(np.array([2010, 2011]), np.array([0.5, 0.4]), 2) is None  # worth 1.6
    assert calibrate(np.array([2010, 2011]), np.array([0.5, 0.4]), 1) is not None
    assert calibrate(np.array([]), np.array([]), 1) is None


@pytest.mark.parametrize(("horizon", "num_origins"), [(1, 10), (3, 8), (4, 8)])
def test_intervals_hold_95_percent_of_the_errors_of_a_random_walk(horizon: int, num_origins: int) -> None:
    """Errors are sums of `horizon` yearly shocks, as those of a candidate that knows the drift of a random walk."""
    rng = np.random.default_rng(20260102)
    trials, held = 2000, 0
    for _ in range(trials):
        shocks = rng.normal(0, 0.4, num_origins + 2 * horizon)
        errors = np.array([shocks[start : start + horizon].sum() for start in range(num_origins)])
        calibration = calibrate(np.arange(num_origins), errors, horizon)
        assert calibration is not None
        held += abs(shocks[-horizon:].sum()) <= calibration.find_half_width(0.95)
    # 4 standard deviations of a share of 2,000 are 0.02; Satterthwaite's approximation is off by less than 0.01 more.
    assert held / trials == pytest.approx(0.95, abs=0.03)
