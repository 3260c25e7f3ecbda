"""Measure a cell whose input pipeline is slower than its steps, and count what its queues hold; print one line of JSON.

Arguments: the framework and a folder with CIFAR-10's files. Every image that is read leaves a byte in a file, whichever
process reads it, and takes SECONDS_PER_IMAGE.
"""

import json
import os
import sys
import time
from pathlib import Path
from typing import Any

from bench.data.files import Cifar10Records
from bench.frameworks.interface import load_framework
from bench.measure.harness import measure
from bench.schema import Framework, Phases
from bench.verdicts import judge_validity
from factories import make_cell
from validity_inputs import make_inputs

SECONDS_PER_IMAGE = 0.5
# A queue into which no image has come for so long is full: far longer than it takes to read one.
SECONDS_WHEN_FULL = 4.0


class SlowRecords(Cifar10Records):
    """CIFAR-10's images on a slow disk."""

    log = ""

    def __getitem__(self, index: int) -> tuple[Any, int]:
        with open(self.log, "ab") as file:
            file.write(b".")
        time.sleep(SECONDS_PER_IMAGE)
        return super().__getitem__(index)


def await_full_queue(log: Path) -> int:
    """Return how many images were read when no more are; a busy machine takes its time to start the readers."""
    num_read, changed = log.stat().st_size, time.monotonic()
    while time.monotonic() < changed + SECONDS_WHEN_FULL:
        if log.stat().st_size > num_read:
            num_read, changed = log.stat().st_size, time.monotonic()
        time.sleep(0.05)
    return num_read


def main(framework: Framework, folder: Path) -> None:
    """Print what the queue held when nobody took a batch, and the verdict on the steps that followed."""
    SlowRecords.log = str(folder / f"{framework}.log")
    if framework == "pytorch":
        from bench.data import pytorch as pipeline
    else:
        from bench.data import jax as pipeline  # type: ignore[no-redef]
    pipeline.Cifar10Records = SlowRecords  # type: ignore[attr-defined]
    fields: dict[str, Any] = {"mode": "eager" if framework == "pytorch" else "compiled", "data_dir": str(folder)}
    cell = make_cell(framework=framework, phase="infer", batch_size=1, num_steps=10, **fields)
    workload = load_framework(cell, 1).build_workload(cell)
    workload.run_step()  # starts Grain's workers
    workload.synchronize()
    num_read = await_full_queue(Path(SlowRecords.log))
    phases, samples, _ = measure(workload, cell, Phases(import_seconds=1.0, build_seconds=1.0))
    validity = judge_validity(make_inputs(samples=samples, phases=phases))
    answer = {
        "num_read": num_read - 1,
        "max_queued_batches": samples.max_queued_batches,
        "num_warmup_steps": len(samples.warmup_step_seconds),
        "verdict": validity.verdict,
    }
    print(json.dumps(answer), flush=True)
    os._exit(0)  # as `python -m bench` ends: closing Grain's pipeline waits for its workers


if __name__ == "__main__":
    main(sys.argv[1], Path(sys.argv[2]))  # type: ignore[arg-type]
