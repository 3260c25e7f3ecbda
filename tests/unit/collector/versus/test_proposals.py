"""What is said of a proposed number of repeats holds for pairs that are drawn with a known truth."""

import re

import numpy as np
import pytest

from collector.versus.noise import NONE, Component, assume_noise
from collector.versus.words import ADVICE
from repeat_proposals import Design, simulate

NUM_PAIRS = 80
ASSUMED = assume_noise(is_same_machine=True).between_runs


def find_share(num_repeats: int, ratio: float, noise: Component, num_tests: int) -> float:
    design = Design(num_repeats=num_repeats, ratio=ratio, noise=noise, num_tests=num_tests)
    numbers, decided = simulate(np.random.default_rng(20261123), design, NUM_PAIRS)
    assert len(numbers) == NUM_PAIRS
    return decided / NUM_PAIRS


@pytest.mark.parametrize(
    ("num_repeats", "ratio", "noise", "num_tests"),
    [
        (2, 1.02, NONE, 20),  # the least of the table in docs/compare.md: 30 %
        (3, 1.02, NONE, 20),
        (3, 1.05, NONE, 1),
        (5, 1.05, NONE, 20),
        (3, 1.15, ASSUMED, 20),
    ],
)
def test_a_proposal_decides_as_many_pairs_that_differ_as_it_says(
    num_repeats: int, ratio: float, noise: Component, num_tests: int
) -> None:
    least, most = map(int, re.findall(r"decided (\d+) to (\d+) of 10 pairs that differ", ADVICE)[0])
    # Two standard deviations of a share of NUM_PAIRS.
    assert least / 10 - 0.11 <= find_share(num_repeats, ratio, noise, num_tests) <= most / 10


def test_no_proposal_decides_a_pair_that_does_not_differ_and_has_no_floor() -> None:
    assert "of equal ones without a floor next to none" in ADVICE
    assert find_share(3, 1.0, NONE, 20) <= 0.05
