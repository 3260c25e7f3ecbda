"""Series of step times that jump between two levels, and series that do not."""

from random import Random

import pytest

from bench.measure.levels import find_levels, score_runs
from factories import present

# Ten steps on the lower level, five on the upper, four times.
TURNS = ([False] * 10 + [True] * 5) * 4


def make_steps(are_high: list[bool], jump: float, noise: float) -> list[float]:
    """Return steps of 0.1 s, longer by the share `jump` where high, each off by `noise` as a standard deviation."""
    random = Random(7)
    return [0.1 * (1 + jump * is_high) * random.gauss(1.0, noise) for is_high in are_high]


@pytest.mark.parametrize(("jump", "noise"), [(0.06, 0.0), (0.10, 0.01), (0.15, 0.02), (0.20, 0.03)])
def test_levels_that_lie_apart_are_found(jump: float, noise: float) -> None:
    levels = present(find_levels(make_steps(TURNS, jump, noise)))
    assert levels.low_seconds == pytest.approx(0.1, rel=0.01)
    assert levels.high_seconds == pytest.approx(0.1 * (1 + jump), rel=0.02)
    assert levels.high_share == pytest.approx(1 / 3)


def test_a_single_step_of_ten_times_the_length_does_not_hide_the_levels() -> None:
    steps = make_steps(TURNS, 0.15, 0.01)
    steps[3] *= 10
    levels = present(find_levels(steps))
    assert levels.high_seconds == pytest.approx(0.115, rel=0.01)


@pytest.mark.parametrize(
    "steps",
    [
        [0.1] * 60,
        make_steps(TURNS, 0.04, 0.0),  # nothing worth reporting
        make_steps(TURNS, 0.10, 0.05),  # no farther apart than the steps spread
        make_steps([False] * 60, 0.0, 0.20),
        make_steps([True, False] * 30, 0.15, 0.01),  # in turns: no runs
        make_steps([False] * 57 + [True] * 3, 0.5, 0.01),  # outliers
        [0.1 + 0.001 * number for number in range(60)],  # a drift
        make_steps([False] * 10 + [True] * 9, 0.15, 0.01),  # too few to tell
    ],
)
def test_other_series_have_no_levels(steps: list[float]) -> None:
    assert find_levels(steps) is None


def test_runs_are_counted_against_those_of_a_random_order() -> None:
    # 5 and 5 in 2 runs: expected 6, variance 50 x 40 / (100 x 9).
    assert score_runs([True] * 5 + [False] * 5) == pytest.approx(-4 / (2000 / 900) ** 0.5)
    assert score_runs([True, False] * 5) == pytest.approx(4 / (2000 / 900) ** 0.5)
    assert score_runs([True] * 5) == 0.0
