"""What the harness costs: a loop written by hand and the harness step the same PyTorch model in turns, in one process.

Prints the ratio of the medians of their step times, harness over hand-written; the target is at most 1.01. Run it with
the image's interpreter: PYTHONPATH=images/bench/src .environments/pytorch-cpu/bin/python benchmarks/harness_overhead.py
"""

import argparse
from collections.abc import Callable
from dataclasses import dataclass, field
from statistics import median
from time import perf_counter

import torch

from bench.catalog import MODELS
from bench.frameworks.pytorch import PyTorchWorkload, load
from bench.harness import measure
from bench.probes.cpu import count_threads
from bench.schema import Cell, Phases

TARGET = 1.01
Loop = Callable[[], list[float]]


@dataclass(frozen=True, kw_only=True)
class Side:
    """One of the two: its loop and the step times it has taken so far, in seconds."""

    take_turn: Loop
    step_seconds: list[float] = field(default_factory=list)


def main() -> None:
    """Let both sides take turns, first one first and then the other, and print what each took."""
    cell, num_turns = read_arguments()
    workload = load(cell, count_threads()).build_workload(cell)
    by_hand = Side(take_turn=write_loop(workload, cell))
    by_harness = Side(take_turn=lambda: list(measure(workload, cell, Phases())[1].step_seconds))
    by_hand.take_turn()
    by_harness.take_turn()  # both are warm now
    ratios = []
    for turn in range(num_turns):
        medians = {}
        for side in (by_hand, by_harness) if turn % 2 else (by_harness, by_hand):
            steps = side.take_turn()
            side.step_seconds.extend(steps)
            medians[id(side)] = median(steps)
        ratios.append(medians[id(by_harness)] / medians[id(by_hand)])
    ratio = median(by_harness.step_seconds) / median(by_hand.step_seconds)
    print(f"{cell.slug}, {num_turns} turns of {cell.num_steps} steps each, {count_threads()} threads")
    print(f"hand-written loop  {median(by_hand.step_seconds) * 1e3:9.3f} ms")
    print(f"harness            {median(by_harness.step_seconds) * 1e3:9.3f} ms")
    print(f"ratio of medians   {ratio:9.4f}  (target: at most {TARGET})")
    print(f"ratios by turn     {min(ratios):9.4f} to {max(ratios):.4f}, median {median(ratios):.4f}")


def write_loop(workload: PyTorchWorkload, cell: Cell) -> Loop:
    """Return the loop that somebody would write without the harness, over the same model, data and optimiser."""
    model, images, labels = workload.model, workload.images, workload.labels
    criterion = torch.nn.CrossEntropyLoss()

    def train() -> None:
        workload.optimizer.zero_grad()
        criterion(model(images), labels).backward()
        workload.optimizer.step()

    @torch.inference_mode()
    def infer() -> None:
        model(images)

    step = train if cell.phase == "train" else infer

    def loop() -> list[float]:
        seconds = []
        for _ in range(cell.num_steps):
            start = perf_counter()
            step()
            if cell.device == "gpu":
                torch.cuda.synchronize()
            seconds.append(perf_counter() - start)
        return seconds

    return loop


def read_arguments() -> tuple[Cell, int]:
    """Return the cell to step, with the least warm-up so that the turns are alike, and the number of turns."""
    parser = argparse.ArgumentParser(description="The harness beside a hand-written loop, in turns.")
    parser.add_argument("--model", choices=list(MODELS), default="resnet18")
    parser.add_argument("--device", choices=("cpu", "gpu"), default="cpu")
    parser.add_argument("--phase", choices=("train", "infer"), default="train")
    parser.add_argument("--batch-size", type=int, default=4)
    parser.add_argument("--steps", type=int, default=10, help="steps of one turn")
    parser.add_argument("--turns", type=int, default=8)
    chosen = parser.parse_args()
    cell = Cell(
        model=chosen.model,
        framework="pytorch",
        device=chosen.device,
        phase=chosen.phase,
        batch_size=chosen.batch_size,
        input_size=MODELS[chosen.model].input_size,
        num_classes=MODELS[chosen.model].num_classes,
        num_warmup_steps=1,
        max_warmup_seconds=1e-9,
        num_steps=chosen.steps,
        min_seconds=0,
    )
    return cell, chosen.turns


if __name__ == "__main__":
    main()
