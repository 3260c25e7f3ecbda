"""Tries the stopping rule of `repeats: {min, max, until}`: how often its intervals hold the truth, what time it saves.

Prints the tables of docs/statistics.md as Markdown. The first: simulated repeats whose truth is known, with the rule,
with the interval of all repeats looked at after each of them, and with a number that is fixed. The second: ratios and
means of such cells. The third: the cells of the published runs, their spread between processes taken as the true one.
From the checkout, two minutes:
.venv/bin/python benchmarks/stopping_rule.py
"""

import itertools
import math
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import numpy.typing as npt

from bench.store import Store
from collector.results.frames import list_rows
from collector.results.load import load_run
from collector.results.summary import summarize_cells
from collector.statistics import Estimate, combine_estimates, estimate_center, estimate_ratio
from runner.stopping import count_for

FloatArray = npt.NDArray[np.float64]

SEED = 20261128
NUM_CELLS = 4000
"""Of each row: a share of 95 % is known within 0.7 % by so many."""
TARGET = 0.02
SPREADS = (0.01, 0.02, 0.04)
"""Standard deviations of the log of a repeat."""
FIRST, MOST = (3, 5, 8), 20
RATIOS = (
    (3, 20, (0.02, 0.02)),
    (3, 200, (0.02, 0.02)),
    (2, 200, (0.01, 0.01)),
    (5, 200, (0.03, 0.03)),
    (3, 200, (0.01, 0.04)),
)
"""First repeats, most, and the spreads of both sides."""
RESULTS = Path(__file__).parent.parent / "docs" / "results"


def draw_levels(random: np.random.Generator, share: float) -> FloatArray:
    """Return repeats of which a share is on a slower level, 0.9 of their variance being between the two."""
    slow = (random.random(MOST) < share) - share
    return np.sqrt(0.9 / (share * (1 - share))) * slow + np.sqrt(0.1) * random.standard_normal(MOST)


# Logs of repeats, with mean 0 and variance 1.
KINDS: dict[str, Callable[[np.random.Generator], FloatArray]] = {
    "normal": lambda random: random.standard_normal(MOST),
    "skewed (gamma, shape 4)": lambda random: (random.gamma(4, size=MOST) - 4) / 2,
    "exponential": lambda random: random.exponential(size=MOST) - 1,
    "two levels, half each": lambda random: draw_levels(random, 0.5),
    "two levels, 1 in 10 slow": lambda random: draw_levels(random, 0.1),
}


def measure_by_rule(values: list[float], first: int, target: float = TARGET) -> Estimate:
    return estimate_center(values[: count_repeats(values, first, target)], first)


def measure_by_looks(values: list[float], first: int) -> Estimate:
    """Return the interval of all repeats at the first look that finds it narrow enough."""
    for number in range(first, MOST + 1):
        found = estimate_center(values[:number])
        if is_narrow(found):
            break
    return found


def is_narrow(estimate: Estimate) -> bool:
    low, high = estimate.interval or (0.0, math.inf)
    return math.log(high / low) / 2 <= math.log1p(TARGET) * (1 + 1e-9)


def holds(estimate: Estimate) -> bool:
    low, high = estimate.interval or (0.0, math.inf)
    return low <= 1 <= high


def list_coverage() -> Iterator[str]:
    yield "| repeats | first | spread | rule holds | number | looks hold | number | fixed holds |"
    yield "|---|---|---|---|---|---|---|---|"
    for kind, draw in KINDS.items():
        for first in FIRST:
            for spread in SPREADS:
                random = np.random.default_rng(SEED)
                cells = [np.exp(spread * draw(random)).tolist() for _ in range(NUM_CELLS)]
                rule, looks = ([way(cell, first) for cell in cells] for way in (measure_by_rule, measure_by_looks))
                fixed = [estimate_center(cell[:first]) for cell in cells]
                shares = [f"{100 * np.mean([holds(one) for one in found]):.1f} %" for found in (rule, looks, fixed)]
                # The standard error says how many repeats there were.
                by_rule = np.mean([count_repeats(cell, first) for cell in cells])
                by_looks = np.mean([(one.degrees_of_freedom or 0) + 1 for one in looks])
                yield (
                    f"| {kind} | {first} | {100 * spread:g} % | {shares[0]} | {by_rule:.1f} | {shares[1]} | "
                    f"{by_looks:.1f} | {shares[2]} |"
                )


def count_repeats(values: list[float], first: int, target: float = TARGET) -> int:
    """Return how many of the values, which are as many as there may be, the rule takes."""
    error = estimate_center(values[:first]).log_standard_error
    assert error is not None
    return min(len(values), max(first, count_for(error, first, first, target)))


def list_ratios() -> Iterator[str]:
    """Yield how often ratios of two normal cells and means of twenty hold, with `until_ratio`, and their width."""
    target = math.expm1(math.log1p(TARGET) / math.sqrt(2))
    yield "| first | most | spreads | ratio holds | half width | mean of 20 holds |"
    yield "|---|---|---|---|---|---|"
    for first, most, spreads in RATIOS:
        random = np.random.default_rng(SEED)
        ratios = [
            estimate_ratio(*(draw_side(random, spread, first, most, target) for spread in spreads))
            for _ in range(NUM_CELLS)
        ]
        means = []
        for _ in range(NUM_CELLS // 10):
            parts = [draw_side(random, spreads[0], first, most, target) for _ in range(20)]
            center = math.exp(float(np.mean([math.log(part.center) for part in parts])))
            means.append(combine_estimates(center, [(part, 1 / 20) for part in parts]))
        widths = [math.log(high / low) / 2 for low, high in (one.interval or (1.0, math.inf) for one in ratios)]
        shares = [100 * np.mean([holds(one) for one in found]) for found in (ratios, means)]
        shown = " and ".join(f"{100 * spread:g} %" for spread in spreads)
        width = f"{100 * np.median(widths):.2f} %"
        yield f"| {first} | {most} | {shown} | {shares[0]:.1f} % | {width} | {shares[1]:.1f} % |"


def draw_side(random: np.random.Generator, spread: float, first: int, most: int, target: float) -> Estimate:
    return measure_by_rule(np.exp(spread * random.standard_normal(most)).tolist(), first, target)


def list_savings() -> Iterator[str]:
    yield f"| run | cells | spread | first | repeats of {MOST} | time | within ±{100 * TARGET:g} % |"
    yield "|---|---|---|---|---|---|---|"
    for folder in sorted(path for path in RESULTS.iterdir() if (path / "runs").is_dir()):
        store = Store.open(f"file://{folder}")
        for run_id in store.list_run_ids():
            collection = load_run(store, run_id)
            seconds = collection.results["finished_at"] - collection.results["started_at"]
            by_cell = seconds.dt.total_seconds().groupby(collection.results["cell_id"]).median()
            rows = [row for row in list_rows(summarize_cells(collection)) if row["num_sound"] >= min(FIRST)]
            spreads = [row["log_standard_error"] * math.sqrt(row["num_counted"]) for row in rows]
            random = np.random.default_rng(SEED)
            for first in FIRST[:2] if rows else ():
                numbers, narrow = [], []
                for spread in spreads:
                    cells = np.exp(spread * random.standard_normal((100, MOST))).tolist()
                    numbers.append(np.mean([count_repeats(cell, first) for cell in cells]))
                    narrow.append(np.mean([is_narrow(measure_by_rule(cell, first)) for cell in cells]))
                weights = [by_cell[row["cell_id"]] for row in rows]
                time = np.average(numbers, weights=weights) / MOST
                yield (
                    f"| {run_id} | {len(rows)} | {100 * np.median(spreads):.2g} % | {first} | {np.mean(numbers):.1f} | "
                    f"{100 * time:.0f} % | {100 * np.mean(narrow):.0f} % |"
                )


def main() -> None:
    for line in itertools.chain(list_coverage(), [""], list_ratios(), [""], list_savings()):
        print(line, flush=True)


if __name__ == "__main__":
    main()
