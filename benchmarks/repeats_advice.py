"""Simulates how often the number of repeats that `compare` proposes for an undecided pair decides it.

Prints the table of docs/compare.md, "How many repeats"; tests/repeat_proposals.py says what is drawn. Needs no
framework and takes about three minutes: PYTHONPATH=images/bench/src:. .venv/bin/python benchmarks/repeats_advice.py
"""

import sys
from pathlib import Path

import numpy as np

from collector.versus.noise import NONE, Component, assume_noise

sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))

from repeat_proposals import Design, simulate  # noqa: E402

SEED = 20261123
NUM_PAIRS = 1000
ASSUMED = assume_noise(is_same_machine=True).between_runs
TRUTHS = ((NONE, 1.0), (NONE, 1.02), (NONE, 1.05), (ASSUMED, 1.0), (ASSUMED, 1.05), (ASSUMED, 1.15))
"""What the runs do to a pair, and its true ratio: of one run none, one and two and a half deviations of a repeat; of
two runs none, one within the floor, one beyond it."""


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
