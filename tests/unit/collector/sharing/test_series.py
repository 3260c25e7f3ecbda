"""Ratios of tenants to the same work alone: by the textbook, for one kind of tenant and for two."""

import math

import numpy as np
import pytest

from collector.sharing import Series, compute_jain_index, estimate_total

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


@pytest.mark.parametrize(
    ("shares", "index"),
    [((3.0, 3.0, 3.0, 3.0), 1.0), ((5.0, 0.0, 0.0, 0.0), 0.25), ((1.0, 2.0), 0.9), ((0.5, 0.5, 0.0), 2 / 3)],
)
def test_jains_index_is_1_for_equal_shares_and_1_over_n_where_one_has_all(
    shares: tuple[float, ...], index: float
) -> None:
    assert compute_jain_index(shares) == pytest.approx(index)
