"""Ratios of tenants to the same work alone: by the textbook for one kind of tenant, by simulation for two."""

import math

import numpy as np
import pytest

from collector.sharing import Series, compute_jain_index, estimate_total
from intervals import measure_coverage

ONE = ("host GPU-1",) * 3
TENANTS = Series(values=(30.0, 33.0, 31.0), machines=ONE)
ALONE = Series(values=(60.0, 62.0, 61.0), machines=ONE)


def test_two_kinds_are_added_repeat_by_repeat_each_over_its_own_work_alone() -> None:
    others = Series(values=(500.0, 450.0, 480.0), machines=ONE)
    others_alone = Series(values=(1000.0, 1000.0, 1000.0), machines=ONE)
    alone = (60 * 62 * 61) ** (1 / 3)
    sums = [first / alone + second / 1000 for first, second in zip(TENANTS.values, others.values, strict=True)]
    estimate = estimate_total([TENANTS, others], [ALONE, others_alone])
    assert estimate.center == pytest.approx(math.prod(sums) ** (1 / 3))
    # Variances of the means of logs: that of the sums, and that of the first work alone, as its share of the sum.
    share = np.mean([value / alone / total for value, total in zip(TENANTS.values, sums, strict=True)])
    own = np.log(sums).var(ddof=1) / 3
    first = share**2 * np.log(ALONE.values).var(ddof=1) / 3
    assert estimate.log_standard_error == pytest.approx(math.sqrt(own + first))
    assert estimate.degrees_of_freedom == pytest.approx((own + first) ** 2 / (own**2 / 2 + first**2 / 2))


def test_intervals_of_two_kinds_hold_the_truth_in_95_percent_of_runs() -> None:
    generator = np.random.default_rng(20261122)
    estimates = []
    for _ in range(600):
        both = generator.normal(0, 0.02, 4)  # what a repeat does to all of its tenants
        rates = [np.exp(both + generator.normal(0, 0.01, 4)) * rate for rate in (30, 700)]
        alone = [np.exp(generator.normal(0, 0.02, 4)) * rate for rate in (60, 1000)]
        tenants, works = ([Series(values=tuple(one), machines=("m",) * 4) for one in found] for found in (rates, alone))
        estimates.append(estimate_total(tenants, works))
    assert 0.92 < measure_coverage(estimates, truth=30 / 60 + 700 / 1000) < 0.98


@pytest.mark.parametrize(
    ("shares", "index"),
    [((3.0, 3.0, 3.0, 3.0), 1.0), ((5.0, 0.0, 0.0, 0.0), 0.25), ((1.0, 2.0), 0.9), ((0.5, 0.5, 0.0), 2 / 3)],
)
def test_jains_index_is_1_for_equal_shares_and_1_over_n_where_one_has_all(
    shares: tuple[float, ...], index: float
) -> None:
    assert compute_jain_index(shares) == pytest.approx(index)
