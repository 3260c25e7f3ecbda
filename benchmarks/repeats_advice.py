"""Simulates how often the number of repeats that `compare` proposes for an undecided pair decides it.

Prints the table of docs/compare.md, "How many repeats". A pair is measured; where it stays undecided and a number of
repeats is proposed, it is measured anew with as many a side and judged again, by the code of the command. Its true
ratio and the true spread of its repeats do not change meanwhile; the proposal knows both only from the repeats that it
has. Needs no framework and takes about three minutes:
PYTHONPATH=images/bench/src:. .venv/bin/python benchmarks/repeats_advice.py
"""

import math
from dataclasses import dataclass, replace

import numpy as np

from collector.statistics import Estimate, Judged, estimate_center, estimate_ratio, measure_variance
from collector.versus.sides import NONE, Component, assume_noise
from collector.versus.verdicts import RatioTest, count_repeats, judge

SEED = 20261123
NUM_PAIRS = 1000
ASSUMED = assume_noise(is_same_machine=True).between_runs
TRUTHS = ((NONE, 1.0), (NONE, 1.02), (NONE, 1.05), (ASSUMED, 1.0), (ASSUMED, 1.05), (ASSUMED, 1.15))
"""What the runs do to a pair, and its true ratio: of one run none, one and two and a half deviations of a repeat; of
two runs none, one within the floor, one beyond it."""


MAX_DRAWS = 40_000
"""Pairs that are drawn at most until enough have a proposal."""
DEVIATION = 0.02
"""The standard deviation of the log of one repeat: only its relation to the ratio and the floor matters."""
SURE = Estimate(center=1.0, log_standard_error=0.01, degrees_of_freedom=4)
"""A ratio that shows nothing: the others of a family are such ones."""


@dataclass(frozen=True, kw_only=True)
class Design:
    """What is simulated."""

    num_repeats: int
    """Of a side, when the number is proposed."""
    ratio: float
    """The true one."""
    noise: Component
    num_tests: int


def simulate(rng: np.random.Generator, design: Design, num_pairs: int) -> tuple[list[int], int]:
    """Return the numbers that were proposed for `num_pairs` undecided pairs, and how many of these they decided."""
    numbers: list[int] = []
    decided = 0
    for _ in range(MAX_DRAWS):
        test = measure(rng, design, design.num_repeats)
        if judge_one(test, design).verdict != "undecided":
            continue
        number = count_repeats(test, design.num_tests)
        if number is None:
            continue
        numbers.append(number)
        decided += judge_one(measure(rng, design, number), design).verdict != "undecided"
        if len(numbers) == num_pairs:
            break
    return numbers, decided


def measure(rng: np.random.Generator, design: Design, num_repeats: int) -> RatioTest:
    """Return the test of a pair with so many repeats a side, whose truth is that of the design.

    The runs of the default floor shift each side by what the default says.
    """
    shift = math.sqrt(design.noise.log_variance) * rng.standard_normal()
    sides = [
        estimate_center(list(np.exp(center + DEVIATION * rng.standard_normal(num_repeats))))
        for center in (math.log(design.ratio) + shift, 0.0)
    ]
    one, other = (measure_variance(side, num_repeats) for side in sides)
    assert one is not None
    assert other is not None
    return RatioTest(
        ratio=estimate_ratio(*sides),
        noise=design.noise,
        runs_share=1.0,
        variances=(one, other),
    )


def judge_one(test: RatioTest, design: Design) -> Judged:
    others = [replace(test, ratio=SURE, noise=NONE)] * (design.num_tests - 1)
    return judge([test, *others])[0]


def main() -> None:
    """Print the table: shares of the pairs with a proposal that it decided, alone and as one of 20 ratios."""
    rng = np.random.default_rng(SEED)
    names = [f"{'one run' if noise is NONE else 'two runs'}, {100 * (ratio - 1):.0f} %" for noise, ratio in TRUTHS]
    print(f"| repeats | {' | '.join(names)} |\n|---|{'---|' * len(names)}")
    for num_repeats in (2, 3, 5, 10):
        cells = [format_shares(rng, num_repeats, noise, ratio) for noise, ratio in TRUTHS]
        print(f"| {num_repeats} | {' | '.join(cells)} |", flush=True)


def format_shares(rng: np.random.Generator, num_repeats: int, noise: Component, ratio: float) -> str:
    """Return the shares of a cell of the table, a dash where hardly any pair stays undecided."""
    shares = []
    for num_tests in (1, 20):
        design = Design(num_repeats=num_repeats, ratio=ratio, noise=noise, num_tests=num_tests)
        numbers, decided = simulate(rng, design, NUM_PAIRS)
        shares.append(f"{100 * decided / len(numbers):.0f} %" if len(numbers) == NUM_PAIRS else "–")
    return ", ".join(shares)


if __name__ == "__main__":
    main()
