"""Medians, intervals and ratios, against formulas, scipy and simulations."""

import math

import numpy as np
import numpy.typing as npt
import pytest
from scipy import stats

from collector.statistics import (
    Estimate,
    compute_percentile,
    compute_quartiles,
    estimate_median,
    estimate_ratio,
    resample_centers,
    resample_medians,
)


def read_interval(estimate: Estimate) -> tuple[float, float]:
    """Return the interval of an estimate that has one."""
    assert estimate.interval is not None
    return estimate.interval


def draw_repeats(
    rng: np.random.Generator, *, num_repeats: int, between: float, within: float, num_steps: int = 30
) -> list[npt.NDArray[np.float64]]:
    """Lognormal repeats: true centre 1 s, a shift per repeat and noise per step, both on the log scale."""
    shifts = between * rng.standard_normal(num_repeats)
    return [np.exp(shift + within * rng.standard_normal(num_steps)) for shift in shifts]


def measure_coverage(*, num_repeats: int, num_simulations: int = 400) -> float:
    """Share of simulations whose interval holds the true centre."""
    rng = np.random.default_rng(7)
    held = 0
    for simulation in range(num_simulations):
        repeats = draw_repeats(rng, num_repeats=num_repeats, between=0.05, within=0.02)
        low, high = read_interval(estimate_median(repeats, seed=(simulation,)))
        held += low <= 1 <= high
    return held / num_simulations


def measure_coverage_of_steps_alone(*, num_repeats: int, num_simulations: int = 400) -> float:
    """The same for a percentile bootstrap that takes all steps of all repeats for independent."""
    rng = np.random.default_rng(7)
    held = 0
    for _ in range(num_simulations):
        steps = np.concatenate(draw_repeats(rng, num_repeats=num_repeats, between=0.05, within=0.02))
        resamples = rng.choice(steps, size=(300, len(steps)))
        low, high = np.quantile(np.median(resamples, axis=1), [0.025, 0.975])
        held += low <= 1 <= high
    return held / num_simulations


@pytest.mark.parametrize("num_repeats", [3, 5])
def test_the_interval_holds_the_truth_about_as_often_as_it_says(num_repeats: int) -> None:
    assert 0.93 <= measure_coverage(num_repeats=num_repeats) <= 0.995


@pytest.mark.parametrize("num_repeats", [3, 5])
def test_an_interval_from_independent_steps_would_mostly_miss_the_truth(num_repeats: int) -> None:
    assert measure_coverage_of_steps_alone(num_repeats=num_repeats) < 0.5


def test_the_centre_is_the_median_of_the_medians_not_of_the_pool() -> None:
    repeats = [np.array([1.0, 1.0, 1.0, 1.0, 1.0]), np.array([2.0, 2.0, 9.0]), np.array([3.0])]
    assert estimate_median(repeats).center == 2.0


def test_one_repeat_has_a_centre_and_no_interval() -> None:
    estimate = estimate_median([np.array([0.1, 0.3, 0.2])])
    assert estimate.center == 0.2
    assert estimate.interval is None


def test_equal_steps_have_an_interval_of_no_width() -> None:
    assert estimate_median([np.full(4, 0.5)] * 3).interval == pytest.approx((0.5, 0.5))


def test_the_interval_is_the_same_in_every_run() -> None:
    repeats = draw_repeats(np.random.default_rng(1), num_repeats=3, between=0.1, within=0.1)
    assert estimate_median(repeats, seed=(3,)) == estimate_median(repeats, seed=(3,))


def test_the_interval_scales_with_the_unit() -> None:
    repeats = draw_repeats(np.random.default_rng(1), num_repeats=3, between=0.1, within=0.1)
    low, high = read_interval(estimate_median(repeats))
    assert estimate_median([1000 * steps for steps in repeats]).interval == pytest.approx([1000 * low, 1000 * high])


def test_the_standard_error_of_two_constant_repeats_is_known_exactly() -> None:
    # Resamples of two repeats: both 1 s (1/4), both e^2 s (1/4), one of each (1/2), whose median is their mean.
    centers = np.array([1.0, math.exp(2), (1 + math.exp(2)) / 2, (1 + math.exp(2)) / 2])
    expected = np.log(centers).std() * math.sqrt(2)
    estimate = estimate_median([np.full(3, 1.0), np.full(3, math.exp(2))])
    assert estimate.log_standard_error == pytest.approx(expected, rel=0.03)
    assert estimate.degrees_of_freedom == 1


def test_the_interval_is_students_t_around_the_log_centre() -> None:
    # t at 2 degrees of freedom and 97.5 %: 4.302653 (any printed table)
    low, high = read_interval(Estimate(center=2.0, log_standard_error=0.1, degrees_of_freedom=2))
    assert low == pytest.approx(2.0 * math.exp(-0.4302653), rel=1e-6)
    assert high == pytest.approx(2.0 * math.exp(0.4302653), rel=1e-6)


@pytest.mark.parametrize("num_steps", [1, 2, 9, 10, 31])
def test_medians_drawn_from_order_statistics_are_distributed_as_those_of_real_resamples(num_steps: int) -> None:
    rng = np.random.default_rng(5)
    steps = rng.lognormal(size=num_steps)
    real = np.median(rng.choice(steps, size=(20_000, num_steps)), axis=1)
    drawn = resample_medians(steps, 20_000, rng)
    values = np.unique(np.concatenate([real, drawn]))
    shares = [np.searchsorted(np.sort(sample), values, side="right") / 20_000 for sample in (real, drawn)]
    # Distance of two empirical distributions: above 1.95 * sqrt(2 / n) once in a thousand (Kolmogorov, Smirnov).
    assert np.abs(shares[0] - shares[1]).max() < 1.95 * math.sqrt(2 / 20_000)


def test_resampled_centres_vary_as_those_of_a_plain_two_stage_bootstrap() -> None:
    rng = np.random.default_rng(11)
    repeats = draw_repeats(rng, num_repeats=3, between=0.02, within=0.05, num_steps=8)
    plain = [
        np.median([np.median(rng.choice(repeats[index], size=8)) for index in rng.integers(3, size=3)])
        for _ in range(4000)
    ]
    assert np.std(plain) == pytest.approx(np.std(resample_centers(repeats, rng, 20_000)), rel=0.05)


def test_the_ratio_of_medians_adds_variances_and_takes_welchs_degrees_of_freedom() -> None:
    over = Estimate(center=3.0, log_standard_error=0.3, degrees_of_freedom=2)
    under = Estimate(center=2.0, log_standard_error=0.4, degrees_of_freedom=4)
    ratio = estimate_ratio(over, under)
    assert ratio.center == 1.5
    assert ratio.log_standard_error == pytest.approx(0.5)
    # 0.25^2 / (0.09^2 / 2 + 0.16^2 / 4) by hand
    assert ratio.degrees_of_freedom == pytest.approx(0.0625 / (0.00405 + 0.0064))


def test_welchs_degrees_of_freedom_agree_with_scipy() -> None:
    rng = np.random.default_rng(2)
    first, second = rng.normal(size=4), 3 * rng.normal(size=7)
    errors = [sample.std(ddof=1) / math.sqrt(len(sample)) for sample in (first, second)]
    ratio = estimate_ratio(
        Estimate(center=1.0, log_standard_error=errors[0], degrees_of_freedom=3),
        Estimate(center=1.0, log_standard_error=errors[1], degrees_of_freedom=6),
    )
    assert ratio.degrees_of_freedom == pytest.approx(stats.ttest_ind(first, second, equal_var=False).df)


def test_a_ratio_with_one_single_repeat_has_no_interval() -> None:
    known = Estimate(center=3.0, log_standard_error=0.3, degrees_of_freedom=2)
    single = Estimate(center=2.0, log_standard_error=None, degrees_of_freedom=None)
    assert estimate_ratio(known, single).interval is None
    assert estimate_ratio(known, single).center == 1.5


def test_the_ratio_of_two_exact_medians_is_exact() -> None:
    exact = Estimate(center=3.0, log_standard_error=0.0, degrees_of_freedom=2)
    assert estimate_ratio(exact, exact).interval == (1.0, 1.0)


def test_quartiles_are_those_of_the_pooled_steps() -> None:
    assert compute_quartiles([np.array([1.0, 5.0]), np.array([3.0, 2.0, 4.0])]) == (2.0, 4.0)


@pytest.mark.parametrize(("percent", "enough"), [(95, 20), (99, 100)])
def test_a_percentile_needs_steps_beyond_it(percent: int, enough: int) -> None:
    assert compute_percentile([np.ones(enough - 1)], percent) is None
    assert compute_percentile([np.ones(enough - 1), np.ones(1)], percent) == 1.0


def test_p95_is_interpolated_over_the_pool() -> None:
    # 0..100 in two repeats: 95 % of the way from 0 to 100
    assert compute_percentile([np.arange(51.0), np.arange(51.0, 101.0)], 95) == pytest.approx(95.0)
