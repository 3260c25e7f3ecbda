"""Measures how often 95 % intervals hold the truth, how wide they are, and what they find, on simulated repeats.

Prints the tables of docs/statistics.md as Markdown. Steps are drawn as benchmarks/interval_scenarios.py says, and every
method sees the same ones. `--every` prints a line for each scenario too. From the checkout, a few minutes:
.venv/bin/python benchmarks/interval_coverage.py
"""

import argparse
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime

import numpy as np
import numpy.typing as npt
from bootstrap_interval import estimate_by_bootstrap
from card_coverage import list_card_lines
from interval_scenarios import NOISES, TWO_LEVELS, draw_steps

from collector.statistics import Estimate, estimate_center, estimate_ratio

FloatArray = npt.NDArray[np.float64]

SEED = 20261122
NUM_RUNS = 1000
NUM_CELLS = 10
"""Cells of a simulated run; the first two are compared with each other."""
BETWEEN = (0.01, 0.02, 0.05)
REPEATS = (2, 3, 5, 10)
TRUE_RATIO = 1.05
NUM_TRUTH = 20_000
"""Repeats from which the true centre of a scenario is taken."""
METHODS = ("bootstrap", "t")


@dataclass(frozen=True, kw_only=True)
class Scenario:
    """How repeats are drawn."""

    between: float
    noise: str
    num_repeats: int


@dataclass(frozen=True, kw_only=True)
class Outcome:
    """What one method did in one scenario: shares of the simulated runs, and a mean half width, relative."""

    scenario: Scenario
    method: str
    coverage: float
    """Of the interval of a cell."""
    half_width: float
    """Of the interval of a cell: the square root of high / low, less 1; the median of the runs."""
    power: float
    """How often a true ratio of TRUE_RATIO is found."""
    false_positives: float
    """How often a difference is found where there is none: how often a ratio's interval misses the truth."""


def main() -> None:
    """Print the tables."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--every", action="store_true", help="print a line for each scenario")
    parser.add_argument("--runs", type=int, default=NUM_RUNS, help="simulated runs of each scenario")
    arguments = parser.parse_args()
    rng = np.random.default_rng(SEED)
    scenarios = [Scenario(between=b, noise=noise, num_repeats=n) for n in REPEATS for noise in NOISES for b in BETWEEN]
    outcomes = [outcome for scenario in scenarios for outcome in simulate(scenario, arguments.runs, rng)]
    print(f"Simulated on {datetime.now(UTC):%Y-%m-%d}, {arguments.runs} runs of {NUM_CELLS} cells, seed {SEED}.\n")
    for line in list_summary_lines(outcomes):
        print(line)
    if arguments.every:
        for line in list_scenario_lines(outcomes):
            print(line)
    for line in list_card_lines(rng):
        print(line)
    for line in list_level_lines(np.random.default_rng((SEED, 1)), arguments.runs):
        print(line)


def simulate(scenario: Scenario, num_runs: int, rng: np.random.Generator) -> Iterator[Outcome]:
    """Yield what each method does in the scenario."""
    truth = find_truth(scenario, rng)
    runs: dict[str, list[list[Estimate]]] = {method: [] for method in METHODS}
    for _ in range(num_runs):
        steps = draw_steps(rng, (NUM_CELLS, scenario.num_repeats), between=scenario.between, noise=scenario.noise)
        plain = [estimate_center(list(medians)) for medians in np.median(steps, axis=-1)]
        runs["t"].append(plain)
        runs["bootstrap"].append([estimate_by_bootstrap(list(cell), rng) for cell in steps[:2]])
    for method in METHODS:
        yield judge(scenario, method, runs[method], truth["bootstrap" if method == "bootstrap" else "t"])


def find_truth(scenario: Scenario, rng: np.random.Generator) -> dict[str, float]:
    """Return the true centre by kind: the median of the repeats' medians, or their geometric mean."""
    steps = draw_steps(rng, (NUM_TRUTH,), between=scenario.between, noise=scenario.noise)
    medians = np.median(steps, axis=-1)
    return {"bootstrap": float(np.median(medians)), "t": float(np.exp(np.log(medians).mean()))}


def judge(scenario: Scenario, method: str, runs: Iterable[list[Estimate]], truth: float) -> Outcome:
    """Return how the intervals of the runs' first two cells did, both of whose true centres are `truth`."""
    cells = np.array([read_interval(run[0]) for run in runs])
    ratios = np.array([read_interval(estimate_ratio(run[0], run[1])) for run in runs])
    # Multiplying a cell's times by a number multiplies its centre and interval: no need to draw again.
    return Outcome(
        scenario=scenario,
        method=method,
        coverage=float(((cells[:, 0] <= truth) & (truth <= cells[:, 1])).mean()),
        half_width=float(np.median(np.sqrt(cells[:, 1] / cells[:, 0]) - 1)),
        power=float((ratios[:, 0] * TRUE_RATIO > 1).mean()),
        false_positives=float(((ratios[:, 0] > 1) | (ratios[:, 1] < 1)).mean()),
    )


def read_interval(estimate: Estimate) -> tuple[float, float]:
    assert estimate.interval is not None
    return estimate.interval


def list_summary_lines(outcomes: list[Outcome]) -> Iterator[str]:
    """Yield a line per number of repeats and method: ranges over the scenarios, width and power at a spread of 2 %.

    Steps with two levels have lines of their own, see `list_level_lines`.
    """
    yield "| repeats | interval | holds a cell's centre | false differences | half width | power for 5 % |"
    yield "|---|---|---|---|---|---|"
    for n in REPEATS:
        for method in METHODS:
            own = [out for out in outcomes if out.method == method and out.scenario.num_repeats == n]
            others = [o for o in own if o.scenario.noise != TWO_LEVELS]
            (usual,) = [o for o in own if o.scenario.noise == "lognormal" and o.scenario.between == 0.02]
            ranges = (format_range(others, read) for read in (read_coverage, read_false_positives))
            yield f"| {n} | {method} | {' | '.join(ranges)} | {100 * usual.half_width:.1f} % | {usual.power:.2f} |"
    yield ""


def list_scenario_lines(outcomes: list[Outcome]) -> Iterator[str]:
    """Yield a line per scenario and method."""
    yield "| repeats | steps | spread | interval | holds a cell's centre | half width | power for 5 % | false |"
    yield "|---|---|---|---|---|---|---|---|"
    for out in outcomes:
        chosen = out.scenario
        yield (
            f"| {chosen.num_repeats} | {chosen.noise} | {100 * chosen.between:.0f} % | {out.method} | "
            f"{100 * out.coverage:.1f} % | {100 * out.half_width:.1f} % | {out.power:.2f} | "
            f"{100 * out.false_positives:.1f} % |"
        )
    yield ""


def read_coverage(outcome: Outcome) -> float:
    """Return the share of intervals of a cell that hold the truth."""
    return outcome.coverage


def read_false_positives(outcome: Outcome) -> float:
    """Return the share of equal pairs that are called different."""
    return outcome.false_positives


def format_range(outcomes: list[Outcome], read: Callable[[Outcome], float]) -> str:
    """Return `94 to 97 %`."""
    values = [100 * read(outcome) for outcome in outcomes]
    return f"{min(values):.0f} to {max(values):.0f} %"


def list_level_lines(rng: np.random.Generator, num_runs: int) -> Iterator[str]:
    """Yield how often Student's t holds the centre of steps with two levels, by what stands for a repeat."""
    yield "| repeats | the median of its steps | the mean of its steps |"
    yield "|---|---|---|"
    centers: tuple[Callable[[FloatArray], FloatArray], ...] = (read_medians, read_means)
    for n in REPEATS:
        shares: list[list[float]] = [[], []]
        for between in BETWEEN:
            truth = draw_steps(rng, (NUM_TRUTH,), between=between, noise=TWO_LEVELS)
            runs = draw_steps(rng, (num_runs, n), between=between, noise=TWO_LEVELS)
            for own, center in zip(shares, centers, strict=True):
                true = np.exp(np.log(center(truth)).mean())
                intervals = [read_interval(estimate_center(list(values))) for values in center(runs)]
                own.append(float(np.mean([low <= true <= high for low, high in intervals])))
        ranges = (f"{100 * min(own):.0f} to {100 * max(own):.0f} %" for own in shares)
        yield f"| {n} | {' | '.join(ranges)} |"
    yield ""


def read_medians(steps: FloatArray) -> FloatArray:
    return np.asarray(np.median(steps, axis=-1))


def read_means(steps: FloatArray) -> FloatArray:
    """Return the mean of the steps of each repeat: the inverse of its mean rate."""
    return np.asarray(steps.mean(axis=-1))


if __name__ == "__main__":
    main()
