"""How much each machine differs: the two-way fit against ordinary least squares with dummies."""

import math

import numpy as np
import pytest
import statsmodels.api as sm

from collector.statistics import estimate_machine_effects, join_overlapping

CELLS = ["c1"] * 4 + ["c2"] * 4 + ["c3"] * 3
MACHINES = ["a", "a", "b", "b", "a", "b", "c", "c", "b", "c", "c"]
VALUES = [1.0, 1.02, 1.1, 1.13, 20.0, 22.5, 19.0, 19.2, 0.52, 0.44, 0.45]


def test_effects_and_intervals_are_those_of_least_squares_with_a_dummy_per_cell_and_machine() -> None:
    effects = estimate_machine_effects(VALUES, CELLS, MACHINES)

    cells = np.array([[cell == name for name in ("c1", "c2", "c3")] for cell in CELLS], dtype=float)
    machines = np.array([[machine == name for name in ("b", "c")] for machine in MACHINES], dtype=float)
    fitted = sm.OLS(np.log(VALUES), np.hstack([cells, machines])).fit()
    # The effects of b and c over a, as effects over the mean of all three.
    contrasts = {"a": [-1 / 3, -1 / 3], "b": [2 / 3, -1 / 3], "c": [-1 / 3, 2 / 3]}
    for name, contrast in contrasts.items():
        oracle = fitted.t_test([0.0, 0.0, 0.0, *contrast])
        assert math.log(effects[name].center) == pytest.approx(oracle.effect[0])
        low, high = oracle.conf_int()[0]
        assert effects[name].interval == pytest.approx((math.exp(low), math.exp(high)))
        assert effects[name].p_value == pytest.approx(float(oracle.pvalue))


def test_a_machine_that_shares_no_cell_with_another_is_left_out() -> None:
    effects = estimate_machine_effects([1.0, 1.1, 1.2, 9.0], ["c1", "c1", "c1", "c2"], ["a", "a", "b", "z"])
    assert set(effects) == {"a", "b"}
    assert effects["a"].center * effects["b"].center == pytest.approx(1)
    assert effects["b"].center ** 2 == pytest.approx(1.2 / math.sqrt(1.0 * 1.1))
    assert effects["b"].degrees_of_freedom == 1


def test_machines_that_no_cell_connects_are_not_held_against_each_other() -> None:
    values = [1.0, 2.0, 100.0, 100.0]
    effects = estimate_machine_effects(values, ["c1", "c1", "c2", "c2"], ["a", "b", "y", "z"])
    assert [effects[name].center for name in "abyz"] == pytest.approx([0.5**0.5, 2**0.5, 1.0, 1.0])
    assert all(effect.interval is None for effect in effects.values())  # one value each: nothing is known of the spread


def test_equal_values_are_known_no_better_than_the_clock_reads() -> None:
    # The mean of two values on a machine is 2 s; its factor is half of the difference of two such means.
    effect = estimate_machine_effects([2.0] * 4, ["c1"] * 4, list("aabb"))["a"]
    assert effect.log_standard_error == pytest.approx(2.886751e-10 / 2 / 2)


def test_a_later_cell_connects_two_groups() -> None:
    cells = ["c1", "c1", "c2", "c2", "c3", "c3"]
    effects = estimate_machine_effects([1.0, 2.0, 5.0, 10.0, 1.0, 1.0], cells, ["a", "b", "c", "d", "b", "c"])
    assert join_overlapping(map(frozenset, ("ab", "yz", "bc"))) == [frozenset("yz"), frozenset("abc")]
    # b is as fast as c by the third cell, so a : b : c : d is 1 : 2 : 2 : 4, with the geometric mean 2
    assert [effects[name].center for name in "abcd"] == pytest.approx([0.5, 1.0, 1.0, 2.0])
