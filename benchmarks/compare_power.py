"""Simulates how often `benchmatrix compare` is right: false alarms of identical runs, and steps that it finds.

Prints the tables of docs/compare.md. A run shifts all of its cells together and each by itself, and one cell in ten
jumps between two levels, so that a repeat may have either. The history holds so many identical runs, A among them;
without any, the default noise counts. Where a side has several runs, each of them is one observation. Needs no
framework and takes about twenty minutes: PYTHONPATH=images/bench/src:. .venv/bin/python benchmarks/compare_power.py
"""

import math
from collections.abc import Iterator
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from itertools import product

import numpy as np
import numpy.typing as npt

from collector.statistics import (
    Estimate,
    Judged,
    combine_estimates,
    compute_geometric_mean,
    estimate_center,
    estimate_ratio,
)
from collector.versus.sides import NONE, Noise, RunEstimate, assume_noise, estimate_noise, list_differences
from collector.versus.verdicts import RatioTest, judge

SEED = 20261122
NUM_SIMULATIONS = 500
NUM_POWER_SIMULATIONS = 250
SHARE_WITH_LEVELS = 0.1
STEP = 0.05
START = datetime(2026, 11, 22, tzinfo=UTC)
FloatArray = npt.NDArray[np.float64]


@dataclass(frozen=True, kw_only=True)
class Machine:
    """How much measurements on a machine vary, as standard deviations of the log."""

    name: str
    repeats: float
    """Between the repeats of a cell in one run."""
    shared: float
    """By which a run shifts all of its cells."""
    own: float
    """By which a run shifts each of them by itself."""
    level_gap: float
    """How far the two levels are apart that one cell in ten jumps between."""
    loud: float | None = None
    """By which a run shifts `num_loud` cells by themselves, if another than `own`."""
    num_loud: int = 1


QUIET = Machine(name="repeats 0.3 %, runs 0.7 %", repeats=0.003, shared=0.005, own=0.005, level_gap=0.02)
USUAL = Machine(name="repeats 2 %, runs 1.4 %", repeats=0.02, shared=0.01, own=0.01, level_gap=0.10)
RESTLESS = Machine(name="repeats 2 %, runs 3 %", repeats=0.02, shared=0.021, own=0.021, level_gap=0.10)
UNEVEN = tuple(
    (
        num_cells,
        replace(QUIET, name=f"{QUIET.name}, {num_loud} of {num_cells} cells 3 %", loud=0.0296, num_loud=num_loud),
    )
    for num_cells, num_loud in ((20, 1), (20, 5), (100, 1), (100, 5), (100, 20))
)
"""Numbers of cells, with machines whose runs shift some by 3 % in all, the others by 0.7 %."""


@dataclass(frozen=True, kw_only=True)
class Design:
    """What is simulated."""

    machine: Machine
    num_cells: int
    num_repeats: int
    num_identical: int
    """Identical runs of the history; the compared A is one of them where there are any."""
    num_runs: int = 1
    """Runs of each side; with several, A's are the identical ones."""

    @property
    def history(self) -> str:
        """What is known of the noise, in words."""
        if self.num_runs > 1:
            return f"{self.num_runs} a side"
        return f"{self.num_identical} identical" if self.num_identical else "1 a side, default floor"


def main() -> None:
    """Print the tables."""
    rng = np.random.default_rng(SEED)
    print(
        "\n| machine | cells | repeats | runs | exit code 1 | cells undecided | floor |\n|---|---|---|---|---|---|---|"
    )
    for machine in (QUIET, USUAL, RESTLESS):
        for design in list_designs(machine, (1, 5, 20), (3, 5)):
            print(format_null_line(rng, design), flush=True)
    for (num_cells, machine), num_repeats, num_identical in product(UNEVEN, (3, 5), (2, 3, 4, 5)):
        design = Design(machine=machine, num_cells=num_cells, num_repeats=num_repeats, num_identical=num_identical)
        print(format_null_line(rng, design), flush=True)
    rng = np.random.default_rng(SEED)
    print("\n| machine | cells | repeats | runs | one cell 5 % slower: found | all cells 5 % slower: exit code 1 |")
    print("|---|---|---|---|---|---|")
    for machine in (QUIET, USUAL):
        for design in list_designs(machine, (1, 10), (3, 5)):
            print(format_power_line(rng, design), flush=True)


def list_designs(machine: Machine, numbers: tuple[int, ...], repeats: tuple[int, ...]) -> Iterator[Design]:
    """Yield the designs for a machine: numbers of cells and of repeats, with what is known of the noise."""
    for num_cells in numbers:
        for num_repeats in repeats:
            for num_identical, num_runs in ((0, 1), (2, 1), (5, 1), (3, 3), (5, 5)):
                yield Design(
                    machine=machine,
                    num_cells=num_cells,
                    num_repeats=num_repeats,
                    num_identical=num_identical,
                    num_runs=num_runs,
                )


def format_null_line(rng: np.random.Generator, design: Design) -> str:
    """Return how often identical runs end with exit code 1, and what share of the cells stays undecided."""
    found = [simulate(rng, design, np.zeros(design.num_cells)) for _ in range(NUM_SIMULATIONS)]
    alarms = np.mean([any(one.verdict == "above" for one in verdicts) for verdicts, _ in found])
    undecided = np.mean([one.verdict == "undecided" for verdicts, _ in found for one in verdicts[: design.num_cells]])
    floor = np.median([math.expm1(noise.between_runs.log_floor) for _, noise in found])
    return f"{format_design(design)} {alarms:.1%} | {undecided:.0%} | {floor:.1%} |".replace("%", " %")


def format_power_line(rng: np.random.Generator, design: Design) -> str:
    """Return how often a step of one cell is found, and how often one of all cells gives exit code 1."""
    one_step = np.zeros(design.num_cells)
    one_step[-1] = math.log1p(STEP)  # one without levels
    all_steps = np.full(design.num_cells, math.log1p(STEP))
    single = [simulate(rng, design, one_step)[0][design.num_cells - 1] for _ in range(NUM_POWER_SIMULATIONS)]
    common = [simulate(rng, design, all_steps)[0] for _ in range(NUM_POWER_SIMULATIONS)]
    found = np.mean([verdict.verdict == "above" for verdict in single])
    alarms = np.mean([any(verdict.verdict == "above" for verdict in verdicts) for verdicts in common])
    return f"{format_design(design)} {found:.0%} | {alarms:.0%} |".replace("%", " %")


def format_design(design: Design) -> str:
    """Return the first columns of a line."""
    name = design.machine.name.replace(" %", "%")
    return f"| {name} | {design.num_cells} | {design.num_repeats} | {design.history} |"


def simulate(rng: np.random.Generator, design: Design, steps: FloatArray) -> tuple[list[Judged], Noise]:
    """Return the verdicts on a side B whose cells are slower by `steps` (logs), and the noise that they rest on."""
    history = [draw_logs(rng, design) for _ in range(max(design.num_runs, design.num_identical))]
    after = [draw_logs(rng, design) + steps[:, np.newaxis] for _ in range(design.num_runs)]
    noise = assume_noise(is_same_machine=True)
    if design.num_identical:
        noise = estimate_noise(list_differences(name_estimates(history)))
    tests = [
        RatioTest(
            ratio=estimate_ratio(estimate_side(after, cell), estimate_side(history[-design.num_runs :], cell)),
            noise=noise.between_runs,
            runs_share=0.0 if design.num_runs > 1 else 1.0,
            own=noise.own.get(str(cell), NONE),
        )
        for cell in range(design.num_cells)
    ]
    if design.num_cells > 1:
        ratio = estimate_ratio(estimate_mean(after), estimate_mean(history[-design.num_runs :]))
        tests.append(replace(tests[0], ratio=ratio, noise=noise.shared, own=NONE))
    return judge(tests), noise


def estimate_side(runs: list[FloatArray], cell: int) -> Estimate:
    """Return the centre of a cell over the runs of a side: over its repeats where there is one run."""
    if len(runs) == 1:
        return estimate_center(list(np.exp(runs[0][cell])))
    return estimate_center([float(np.exp(logs[cell].mean())) for logs in runs])


def estimate_mean(runs: list[FloatArray]) -> Estimate:
    """Return the centre of all cells together."""
    if len(runs) == 1:
        cells = [estimate_side(runs, cell) for cell in range(len(runs[0]))]
        center = compute_geometric_mean([cell.center for cell in cells])
        return combine_estimates(center, [(cell, 1 / len(cells)) for cell in cells])
    return estimate_center([float(np.exp(logs.mean())) for logs in runs])


def draw_logs(rng: np.random.Generator, design: Design) -> FloatArray:
    """Return the logs of the repeats of a run, of shape (cells, repeats); the first cells have two levels."""
    machine, shape = design.machine, (design.num_cells, design.num_repeats)
    logs = machine.repeats * rng.standard_normal(shape)
    own = np.full((design.num_cells, 1), machine.own)
    if machine.loud is not None:
        own[-1 - machine.num_loud : -1] = machine.loud  # the last cell is the one that a step is put into
    logs += machine.shared * rng.standard_normal() + own * rng.standard_normal((design.num_cells, 1))
    num_levels = int(SHARE_WITH_LEVELS * design.num_cells)
    logs[:num_levels] += machine.level_gap * (rng.random((num_levels, design.num_repeats)) < 0.5)
    return np.asarray(logs)


def name_estimates(history: list[FloatArray]) -> Iterator[RunEstimate]:
    """Yield the centres as those of runs that followed each other."""
    for number, cells in enumerate(history):
        for cell, logs in enumerate(cells):
            yield RunEstimate(
                kind=cell,
                cell_id=str(cell),
                device="cpu",
                run_id=f"run-{number}",
                started_at=START + timedelta(days=number),
                machines="bench-1",
                estimate=estimate_center(list(np.exp(logs))),
            )


if __name__ == "__main__":
    main()
