"""Centres, intervals and ratios of repeats, against hand-computed values and scipy."""

import math

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from scipy import stats
from statsmodels.stats.power import TTestIndPower

from collector.statistics import (
    Estimate,
    add_variances,
    compute_quantiles,
    estimate_center,
    estimate_paired_ratio,
    estimate_ratio,
    find_power,
    invert_estimate,
    judge_together,
    measure_variance,
    scale_estimate,
)
from factories import present


def test_the_centre_and_the_interval_of_three_repeats_are_those_computed_by_hand() -> None:
    # Logs 0, 1, 2: mean 1, standard deviation 1; t at 2 degrees of freedom and 97.5 %: 4.302653 (any printed table).
    estimate = estimate_center([1.0, math.e, math.e**2])
    half_width = 4.302653 / math.sqrt(3)
    assert estimate.center == pytest.approx(math.e)
    assert estimate.interval == pytest.approx((math.exp(1 - half_width), math.exp(1 + half_width)), rel=1e-6)


def test_one_repeat_and_a_ratio_with_one_have_a_centre_and_neither_interval_nor_p_value() -> None:
    one = estimate_center([0.2])
    for estimate, center in ((one, 0.2), (estimate_ratio(estimate_center([0.6, 0.6]), one), 3.0)):
        assert estimate.center == pytest.approx(center)
        assert (estimate.interval, estimate.p_value) == (None, None)


def test_equal_repeats_are_known_no_better_than_the_clock_reads() -> None:
    # A nanosecond over the square root of 12 is 2.886751e-10 s: of 1 ms, 2.886751e-7.
    estimate = estimate_center([1e-3] * 3)
    assert estimate.center == 1e-3
    assert estimate.log_standard_error == pytest.approx(2.886751e-7 / math.sqrt(3), rel=1e-6)


def test_a_ratio_of_sides_with_as_many_values_is_welchs_test_on_the_logs() -> None:
    rng = np.random.default_rng(2)
    first, second = np.exp(rng.normal(size=5)), np.exp(0.3 + 3 * rng.normal(size=5))
    ratio = estimate_ratio(estimate_center(list(first)), estimate_center(list(second)))
    oracle = stats.ttest_ind(np.log(first), np.log(second), equal_var=False)
    bounds = oracle.confidence_interval(0.95)
    assert ratio.degrees_of_freedom == pytest.approx(oracle.df)
    assert ratio.p_value == pytest.approx(oracle.pvalue)
    assert ratio.interval == pytest.approx((math.exp(bounds.low), math.exp(bounds.high)))


@pytest.mark.parametrize("scale", [0.01, 100.0])
def test_a_ratio_of_sides_with_other_numbers_of_values_is_no_surer_than_if_both_vary_alike(scale: float) -> None:
    rng = np.random.default_rng(2)
    few, many = scale * rng.normal(size=3), rng.normal(size=7)
    oracles = [stats.ttest_ind(few, many, equal_var=equal_var) for equal_var in (True, False)]
    errors = [(few.mean() - many.mean()) / oracle.statistic for oracle in oracles]
    for sides in ((few, many), (many, few)):
        ratio = estimate_ratio(*(estimate_center(list(np.exp(side))) for side in sides))
        assert ratio.log_standard_error == pytest.approx(max(map(abs, errors)))
        assert ratio.degrees_of_freedom == pytest.approx(oracles[1].df)


def test_an_estimate_that_was_put_together_is_not_pooled() -> None:
    joined, many = (Estimate(center=1.0, log_standard_error=e, degrees_of_freedom=n) for e, n in ((0.1, 2.5), (1.0, 9)))
    assert estimate_ratio(joined, many).log_standard_error == pytest.approx(math.hypot(0.1, 1.0))


def test_equal_ratios_on_two_machines_are_known_no_better_than_the_clock_reads() -> None:
    low, high = present(estimate_paired_ratio({"a": 1e-3, "b": 2e-3}, {"a": 2e-3, "b": 4e-3}).interval)
    # The rounding of 1 ms and 2 ms: sqrt(2.886751e-7^2 + 1.443376e-7^2) = 3.227486e-7, over sqrt(2), times t(1).
    assert math.log(high / low) / 2 == pytest.approx(12.70620 * 3.227486e-7 / math.sqrt(2), rel=1e-4)


RATIOS = st.builds(
    Estimate,
    center=st.floats(-3, 3).map(math.exp),
    log_standard_error=st.floats(-12, 1).map(math.exp),
    degrees_of_freedom=st.floats(1, 60),
)


SURE = Estimate(center=1.0, log_standard_error=0.01, degrees_of_freedom=4)


@given(ratio=RATIOS, size=st.integers(1, 300))
def test_a_difference_is_stated_exactly_where_the_joint_interval_excludes_1(ratio: Estimate, size: int) -> None:
    judged, inverse = judge_together([ratio, *[SURE] * (size - 1)])[0], invert_estimate(ratio)
    assert judged.is_different is (judged.joint_low > 1 or judged.joint_high < 1)
    assume(abs(judged.p_adjusted - 0.05) > 1e-7)  # at the bound, rounding decides
    assert judged.is_different is (judged.p_adjusted < 0.05)
    assert judge_together([inverse, *[SURE] * (size - 1)])[0].is_different is judged.is_different


@pytest.mark.parametrize(("percent", "enough"), [(95, 20), (99, 100)])
def test_a_percentile_needs_steps_beyond_it(percent: int, enough: int) -> None:
    assert compute_quantiles([np.arange(101.0)]) == (25.0, 75.0, 95.0, 99.0)
    place = {95: 2, 99: 3}[percent]
    assert compute_quantiles([np.ones(enough - 1)])[place] is None
    assert compute_quantiles([np.ones(enough - 1), np.ones(1)])[place] == 1.0


@pytest.mark.parametrize(("effect", "number", "num_tests"), [(1.5, 8, 1), (1.5, 8, 10), (0.8, 20, 3)])
def test_the_power_of_so_many_repeats_is_that_of_another_library(effect: float, number: int, num_tests: int) -> None:
    side = 1e-4 / number, number - 1
    power = find_power(effect * 0.01, *add_variances(side, side), num_tests)
    expected = TTestIndPower().power(effect, number, 0.05 / num_tests, alternative="two-sided")
    assert power == pytest.approx(expected, abs=1e-4)


def test_one_repeat_varies_as_the_logs_of_all_and_sides_that_vary_unlike_have_welchs_freedom() -> None:
    values = [1.0, 1.02, 0.99, 1.05]
    spread = float(np.var(np.log(values), ddof=1))
    assert measure_variance(estimate_center(values), 4) == pytest.approx(spread)
    assert measure_variance(estimate_center(values), 5) is None  # they are not its values
    assert add_variances((1 / 4, 3), (3 / 4, 3)) == pytest.approx((1.0, 3 / (1 / 16 + 9 / 16)))


def test_a_family_makes_no_chance_larger_than_certainty_and_a_known_factor_multiplies() -> None:
    same = estimate_ratio(estimate_center([1.0, 1.1, 0.9]), estimate_center([1.0, 1.12, 0.9]))
    assert [judged.p_adjusted for judged in judge_together([same] * 3)] == [1.0] * 3
    assert scale_estimate(estimate_center([2.0, 8.0]), 0.5).center == pytest.approx(2.0)
