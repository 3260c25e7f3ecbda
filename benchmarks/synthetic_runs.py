"""Makes runs of any size whose truth is known: what each thing costs is a factor, and a share of the repeats fails.

The same number of cells gives the same run each time. Twelve cells share a model, a phase and a batch: four programs on
a CPU, and on a GPU in two precisions.
"""

import math
import random
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import count, islice, product
from typing import Any

from bench.schema import Cell, Result, Run
from factories import (
    Sink,
    make_cell,
    make_environment,
    make_failed_result,
    make_gpu,
    make_result,
    make_run,
    make_validity,
    put_documents,
)

BASE_SECONDS = {"conv6": 2e-4, "resnet18": 2e-3, "vgg16": 8e-3}
"""Of one sample in training on the CPU in PyTorch, eager; made up."""
PROGRAMS = {
    ("pytorch", "eager"): 1.0,
    ("pytorch", "compiled"): 0.8,
    ("tensorflow", "graph"): 1.15,
    ("jax", "compiled"): 0.85,
}
DEVICES = {("cpu", "fp32"): 1.0, ("gpu", "fp32"): 0.05, ("gpu", "bf16"): 0.03}
PHASES = {"train": 1.0, "infer": 0.3}
SPREAD = 0.01
"""Standard deviation of the log of a repeat's step time, and of that of a step."""
PACKAGES = {"pytorch": "torch", "tensorflow": "tensorflow", "jax": "jax"}
SHARE_FAILED, SHARE_MISSING, SHARE_THROTTLED = 0.02, 0.01, 0.02
LOG = 'Traceback (most recent call last):\n  File "bench/harness.py", line {line}, in run\nRuntimeError: it broke\n'


@dataclass(frozen=True, kw_only=True)
class Size:
    """How large a run is."""

    num_cells: int
    num_repeats: int = 3
    num_steps: int = 40


def list_cells(num_cells: int) -> list[Cell]:
    """Return so many cells, the workloads with small batches first."""
    return list(islice(_make_cells(), num_cells))


def make_results(size: Size) -> Iterator[Result]:
    """Yield the results of a run; of a share of its repeats there is none."""
    rng = random.Random(size.num_cells)
    for cell in list_cells(size.num_cells):
        # Of some cells no repeat ends ok.
        is_broken = rng.random() < SHARE_FAILED
        for repeat in range(1, size.num_repeats + 1):
            if rng.random() >= SHARE_MISSING:
                yield _make_result(cell, repeat, size, rng, is_broken or rng.random() < SHARE_FAILED)


def put_run(store: Sink, size: Size) -> Run:
    run = make_run(list_cells(size.num_cells), repeats=size.num_repeats)
    put_documents(store, run, make_results(size))
    return run


def find_step_seconds(cell: Cell) -> float:
    """Return the true step time of a cell."""
    factor = PROGRAMS[cell.framework, cell.mode] * DEVICES[cell.device, cell.precision] * PHASES[cell.phase]
    return BASE_SECONDS[cell.model] * cell.batch_size * factor


def _make_cells() -> Iterator[Cell]:
    for batch_size in count(1):
        for model, phase in product(BASE_SECONDS, PHASES):
            for (device, precision), (framework, mode) in product(DEVICES, PROGRAMS):
                yield make_cell(
                    model=model,
                    phase=phase,
                    batch_size=batch_size,
                    device=device,
                    precision=precision,
                    framework=framework,
                    mode=mode,
                )


def _make_result(cell: Cell, repeat: int, size: Size, rng: random.Random, is_failed: bool) -> Result:
    if is_failed:
        return make_failed_result(cell, repeat=repeat, stderr_tail=LOG.format(line=rng.randrange(1000)))
    center = find_step_seconds(cell) * rng.lognormvariate(0, SPREAD)
    steps = [round(center * rng.lognormvariate(0, SPREAD), 9) for _ in range(size.num_steps)]
    overrides: dict[str, Any] = {"environment": _make_environment(cell)}
    if rng.random() < SHARE_THROTTLED:
        overrides["validity"] = make_validity("throttled")
    warmup = [round(center * (1 + math.exp(-step)), 9) for step in range(5)]
    return make_result(cell, repeat=repeat, step_seconds=steps, warmup_step_seconds=warmup, **overrides)


def _make_environment(cell: Cell) -> Any:
    return make_environment(
        versions={PACKAGES[cell.framework]: "2.11.0"}, gpus=(make_gpu(),) if cell.device == "gpu" else ()
    )
