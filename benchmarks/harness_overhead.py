"""Measures what the harness costs: hand-written PyTorch steps and the harness's take turns in one process.

Prints a line per cell: medians of the step times of both sides, and harness over hand-written; the target is at most
1.01 where a step takes 1 ms or more, and 1.02 where it takes 0.1 ms or more. Run it with the image's interpreter
(--help lists the axes):
PYTHONPATH=images/bench/src .environments/pytorch-cpu/bin/python benchmarks/harness_overhead.py --models conv6
"""

import argparse
import gc
import itertools
import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from statistics import median
from time import perf_counter
from typing import Any, get_args

import torch
from hand_written import write_step

from bench.frameworks.pytorch import PyTorch, set_switches
from bench.measure.harness import measure
from bench.probes.cpu import count_threads
from bench.registry import MODELS, Phase
from bench.schema import Cell, Phases, Precision

# The ratio aimed at, from steps of so many seconds on.
TARGETS = ((1e-3, 1.01), (1e-4, 1.02))
NUM_UNTIMED_STEPS = 2  # at the start of each turn, as the harness's first step and its one step of warm-up
HEADER = (
    f"{'cell':44} {'by hand, ms':>12} {'harness, ms':>12} {'on device':>10} {'ratio':>7}  {'ratios by turn':16} target"
)


@dataclass(frozen=True, kw_only=True)
class Comparison:
    """Step times of both sides in seconds, one list per turn; `device_seconds`: the harness's own events, if any."""

    by_hand: list[list[float]]
    by_harness: list[list[float]]
    device_seconds: list[float]

    @property
    def ratios(self) -> list[float]:
        """Of single turns, as `ratio` is of all."""
        return [median(ours) / median(theirs) for ours, theirs in zip(self.by_harness, self.by_hand, strict=True)]

    @property
    def ratio(self) -> float:
        """Median of the harness's steps over the median of the hand-written ones."""
        return median(itertools.chain(*self.by_harness)) / median(itertools.chain(*self.by_hand))

    def describe(self) -> str:
        """Return the figures of one line, times in milliseconds."""
        hand, harness = (median(itertools.chain(*side)) for side in (self.by_hand, self.by_harness))
        ratios = self.ratios
        device = f"{median(self.device_seconds) * 1e3:10.3f}" if self.device_seconds else f"{'-':>10}"
        target = next((ratio for from_seconds, ratio in TARGETS if hand >= from_seconds), None)
        outcome = "below 0.1 ms" if target is None else "met" if self.ratio <= target else "MISSED"
        spread = f"{min(ratios):.3f} to {max(ratios):.3f}"
        return f"{hand * 1e3:12.3f} {harness * 1e3:12.3f} {device} {self.ratio:7.3f}  {spread:16} {outcome}"


def main() -> None:
    """Print a line per cell."""
    arguments = read_arguments()
    device = torch.cuda.get_device_name() if arguments.device == "gpu" else f"{count_threads()} threads"
    print(f"PyTorch {torch.__version__} on {device}; {arguments.turns} turns of {arguments.steps} steps each")
    print(HEADER)
    for cell in list_cells(arguments):
        comparison = compare(cell, arguments.turns)
        print(f"{cell.slug:44} {comparison.describe()}", flush=True)
        if arguments.json:
            print(json.dumps(comparison.ratios), flush=True)
        torch.compiler.reset()
        gc.collect()
        torch.cuda.empty_cache()


def compare(cell: Cell, num_turns: int) -> Comparison:
    """Let both sides take turns, each of them first in every other turn, after one turn each that warms them up."""
    set_switches(cell, count_threads())
    take_hand_turn = write_loop(write_step(cell), cell)
    workload = PyTorch(cell, count_threads()).build_workload(cell)
    workload.spin_up()
    workload.spin_up = lambda: None  # type: ignore[method-assign]  # once: every harness's turn would begin with it
    comparison = Comparison(by_hand=[], by_harness=[], device_seconds=[])

    def take_harness_turn() -> list[float]:
        samples = measure(workload, cell, Phases())[1]
        comparison.device_seconds.extend(samples.device_step_seconds or ())
        return list(samples.step_seconds)

    take_hand_turn()
    take_harness_turn()
    comparison.device_seconds.clear()
    for turn in range(num_turns):
        sides = [(take_hand_turn, comparison.by_hand), (take_harness_turn, comparison.by_harness)]
        for take_turn, turns in sides if turn % 2 else reversed(sides):
            turns.append(take_turn())
    return comparison


def write_loop(step: Callable[[], Any], cell: Cell) -> Callable[[], list[float]]:
    """Return the timed loop that somebody would write without the harness."""

    def loop() -> list[float]:
        seconds = []
        gc.collect()
        for _ in range(NUM_UNTIMED_STEPS + cell.num_steps):
            start = perf_counter()
            step()
            if cell.device == "gpu":
                torch.cuda.synchronize()
            seconds.append(perf_counter() - start)
        return seconds[NUM_UNTIMED_STEPS:]

    return loop


def list_cells(arguments: argparse.Namespace) -> Iterator[Cell]:
    """Yield the cells to step, with the least warm-up so that the turns are alike."""
    axes = (arguments.models, arguments.modes, arguments.phases, arguments.precisions)
    for model, mode, phase, precision in itertools.product(*axes):
        spec = MODELS[model]
        if phase not in spec.phases:
            continue
        yield Cell(
            model=model,
            framework="pytorch",
            device=arguments.device,
            phase=phase,
            precision=precision,
            mode=mode,
            batch_size=1 if MODELS[model].task in ("image-translation", "matrix-product") else arguments.batch_size,
            input_size=arguments.input_size or spec.input_size,
            num_classes=spec.num_classes,
            num_warmup_steps=1,
            max_warmup_seconds=1e-9,
            num_steps=arguments.steps,
            min_seconds=0,
        )


def read_arguments() -> argparse.Namespace:
    """Return the axes of the cells and how long to measure."""
    parser = argparse.ArgumentParser(description="The harness beside hand-written steps, in turns.")
    parser.add_argument("--models", nargs="+", choices=list(MODELS), default=["resnet18"])
    parser.add_argument("--modes", nargs="+", choices=("eager", "compiled"), default=["eager"])
    parser.add_argument("--phases", nargs="+", choices=get_args(Phase), default=["train", "infer"])
    parser.add_argument("--precisions", nargs="+", choices=get_args(Precision), default=["fp32"])
    parser.add_argument("--device", choices=("cpu", "gpu"), default="cpu")
    parser.add_argument("--batch-size", type=int, default=4, help="1 for cyclegan and matmul, whatever is given")
    parser.add_argument("--input-size", type=int, help="default: that of the model")
    parser.add_argument("--steps", type=int, default=10, help="steps of one turn")
    parser.add_argument("--turns", type=int, default=8)
    parser.add_argument("--json", action="store_true", help="print the ratios of each cell's turns as JSON too")
    return parser.parse_args()


if __name__ == "__main__":
    main()
