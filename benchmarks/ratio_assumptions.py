"""Simulates how often equal sides are called different, where repeats are not as the test of a ratio takes them.

Prints the last column of decision 0077 and the table of docs/statistics.md, "Can the interval be believed?": of one
ratio, and of any of ten that are judged together. Repeats are drawn as logs; the ratios are the collector's. Needs no
framework and takes about three minutes: PYTHONPATH=images/bench/src:. .venv/bin/python benchmarks/ratio_assumptions.py
"""

import math
from collections.abc import Callable
from functools import partial

import numpy as np
import numpy.typing as npt

from collector.statistics import estimate_center, estimate_ratio

SEED = 20261123
NUM_RATIOS = 20_000
NUM_TOGETHER = 10
BOUND = 0.05
DEVIATION = 0.02
FloatArray = npt.NDArray[np.float64]
Draw = Callable[[np.random.Generator, int], FloatArray]
SIZES = ((2, 2), (3, 3), (5, 5), (10, 10), (3, 2), (5, 2), (10, 2), (10, 3), (30, 3), (10, 5))


def main() -> None:
    """Print a row for each kind of repeats and each pair of numbers of them."""
    rng = np.random.default_rng(SEED)
    print("| repeats | of | one ratio | a table of ten |\n|---|---|---|---|")
    for name, draw in DRAWS.items():
        for many, few in SIZES:
            p_values = np.array([find_p_value(draw(rng, many), draw(rng, few)) for _ in range(NUM_RATIOS)])
            alone, together = ((p_values < bound).mean() for bound in (BOUND, BOUND / NUM_TOGETHER))
            print(f"| {name} | {many} and {few} | {100 * alone:.1f} % | {100 * (1 - (1 - together) ** 10):.0f} % |")


def find_p_value(one: FloatArray, other: FloatArray) -> float:
    """Return the p-value of the ratio of two sides; `one` and `other` are the logs of their repeats' step times."""
    p_value = estimate_ratio(*(estimate_center(list(np.exp(logs))) for logs in (one, other))).p_value
    assert p_value is not None, "each side has two repeats or more"
    return p_value


def draw_alike(rng: np.random.Generator, number: int) -> FloatArray:
    """Return independent normal repeats."""
    return DEVIATION * rng.standard_normal(number)


def draw_correlated(rng: np.random.Generator, number: int, *, correlation: float) -> FloatArray:
    """Return repeats that resemble the one before them."""
    logs = rng.standard_normal(number)
    for index in range(1, number):
        logs[index] = correlation * logs[index - 1] + math.sqrt(1 - correlation**2) * logs[index]
    return DEVIATION * logs


def draw_levels(rng: np.random.Generator, number: int) -> FloatArray:
    """Return repeats that are wholly on one of two levels 10 % apart, three of ten on the upper one."""
    return 0.1 * (rng.random(number) < 0.3) + 0.003 * rng.standard_normal(number)


def draw_disturbed(rng: np.random.Generator, number: int) -> FloatArray:
    """Return repeats of which one in ten took 22 % longer, and was not found to be contaminated."""
    return DEVIATION * rng.standard_normal(number) + 0.2 * (rng.random(number) < 0.1)


DRAWS: dict[str, Draw] = {
    "vary alike": draw_alike,
    "correlation 0.3": partial(draw_correlated, correlation=0.3),
    "correlation 0.6": partial(draw_correlated, correlation=0.6),
    "two levels": draw_levels,
    "one in ten disturbed": draw_disturbed,
}

if __name__ == "__main__":
    main()
