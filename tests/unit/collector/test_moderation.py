"""Moderated standard errors: the fit of what the variances of cells have in common, and what it does to intervals."""

import math

import numpy as np
import pytest
from scipy.special import polygamma

from collector.moderation import fit_prior, invert_trigamma, moderate_estimates, squeeze_variance
from collector.statistics import Estimate, estimate_center
from intervals import measure_coverage


def draw_run(rng: np.random.Generator, *, num_cells: int, num_repeats: int = 3) -> list[Estimate]:
    """Return the estimates of cells whose true centre is 1 and whose variances come from a scaled inverse chi-squared.

    Its scale is 0.02 squared, its degrees of freedom are 4.
    """
    between = 0.02 * np.sqrt(4 / rng.chisquare(4, num_cells))
    logs = between[:, np.newaxis] * rng.standard_normal((num_cells, num_repeats))
    return [estimate_center(list(values)) for values in np.exp(logs)]


@pytest.mark.parametrize("value", [1e-8, 1e-3, 0.3, math.pi**2 / 6, 40.0, 1e8])
def test_the_trigamma_function_of_its_inverse_is_the_value(value: float) -> None:
    assert float(polygamma(1, invert_trigamma(value))) == pytest.approx(value, rel=1e-3 if value > 1e7 else 1e-6)


def test_the_fit_finds_the_distribution_that_variances_were_drawn_from() -> None:
    rng = np.random.default_rng(3)
    freedoms = rng.choice([2.0, 4.0, 9.0], 100_000)
    true = 0.02**2 * 6 / rng.chisquare(6, len(freedoms))
    prior = fit_prior(true * rng.chisquare(freedoms) / freedoms, freedoms)
    assert prior.degrees_of_freedom == pytest.approx(6, rel=0.05)
    assert math.sqrt(prior.variance) == pytest.approx(0.02, rel=0.01)


def test_variances_that_differ_no_more_than_by_chance_are_pooled() -> None:
    prior = fit_prior(np.array([1.0, 1.1, 0.9]), np.array([2.0, 2.0, 4.0]))
    assert prior.degrees_of_freedom == math.inf
    assert prior.variance == pytest.approx((2 * 1.0 + 2 * 1.1 + 4 * 0.9) / 8)
    assert squeeze_variance(9.0, 2, prior) == prior.variance


def test_a_moderated_standard_error_is_the_weighted_mean_of_both_variances() -> None:
    estimates = [
        Estimate(center=1.0, log_standard_error=error, degrees_of_freedom=2) for error in (0.001, 0.01, 0.2, 0.05)
    ]
    moderated = moderate_estimates(estimates)
    variances = np.array([3 * error**2 for error in (0.001, 0.01, 0.2, 0.05)])
    prior = fit_prior(variances, np.full(4, 2.0))
    weight = 2 + prior.degrees_of_freedom
    expected = [(2 * variance + prior.degrees_of_freedom * prior.variance) / weight for variance in variances]
    assert [e.log_standard_error for e in moderated] == pytest.approx([math.sqrt(v / 3) for v in expected])
    assert [e.degrees_of_freedom for e in moderated] == pytest.approx([weight] * 4)


def test_the_degrees_of_freedom_are_at_most_those_of_all_cells() -> None:
    estimates = [Estimate(center=1.0, log_standard_error=0.01, degrees_of_freedom=n) for n in (1, 2, 4)]
    assert [e.degrees_of_freedom for e in moderate_estimates(estimates)] == [7, 7, 7]


def test_what_has_no_standard_error_stays_as_it_is_and_so_do_too_few() -> None:
    single = Estimate(center=5.0, log_standard_error=None, degrees_of_freedom=None)
    two = [Estimate(center=1.0, log_standard_error=error, degrees_of_freedom=2) for error in (0.01, 0.02)]
    assert moderate_estimates([single, *two]) == [single, *two]
    assert moderate_estimates([*two, *two, single])[4] == single


def test_moderated_intervals_hold_the_truth_as_often_as_they_say_and_are_narrower() -> None:
    rng = np.random.default_rng(11)
    runs = [draw_run(rng, num_cells=20) for _ in range(150)]
    moderated = [moderate_estimates(run) for run in runs]
    # 3,000 intervals: the share of 0.95 has a standard error of 0.004, and somewhat more as cells of a run share a fit.
    assert measure_coverage(estimate for run in moderated for estimate in run) == pytest.approx(0.95, abs=0.02)
    assert np.median(list_widths(moderated)) < 0.75 * np.median(list_widths(runs))


def list_widths(runs: list[list[Estimate]]) -> list[float]:
    """Return the log of high over low of every interval."""
    return [math.log(e.interval[1] / e.interval[0]) for run in runs for e in run if e.interval is not None]
