"""bench.verdicts.series: whether the rate of steps that take turns is known, and the same all the time."""

import random

import pytest

from bench.verdicts.series import check_rate
from validity_inputs import make_inputs


def find(*steps: float) -> list[str]:
    """Return the verdicts on a series of steps."""
    return [verdict for verdict, _ in check_rate(make_inputs(tuple(steps)))]


def test_steps_that_alternate_are_no_noise() -> None:
    assert find(*[0.1, 0.3] * 45) == []  # they spread by half of their median


def test_a_rate_that_differs_from_block_to_block_is_not_known() -> None:
    # Nine blocks of ten steps, of 0.1 and 0.3 s in turns: they differ by 0.2 s from one to the next. The deviation is
    # 0.2 / root 2 of a mean of 0.189, 75 %, and that of the mean of nine blocks a third of it.
    assert find(*[step for block in range(9) for step in [0.1 + 0.2 * (block % 2)] * 10]) == ["noisy"]


def test_a_rate_that_falls_is_not_steady() -> None:
    # Each block takes 3 % longer than the one before: the deviation is 3 % / root 2 of the mean, three standard errors
    # of the difference of thirds 5 %; the last third takes 18 % longer than the first.
    steps = [0.1 * (1 + 0.03 * block) for block in range(9) for _ in range(10)]
    assert find(*steps) == ["not-steady"]
    assert find(*reversed(steps)) == ["not-steady"]


def test_a_drift_below_the_bound_is_nothing() -> None:
    assert find(*[0.1 * (1 + 0.005 * block) for block in range(9) for _ in range(10)]) == []


def test_too_few_steps_tell_nothing() -> None:
    assert find(*[0.1, 0.5] * 4) == []


@pytest.mark.parametrize("seed", range(5))
def test_independent_steps_of_a_tenth_spread_are_neither(seed: int) -> None:
    drawn = random.Random(seed)
    assert find(*[drawn.gauss(0.1, 0.01) for _ in range(90)]) == []
