"""Count what the queues of a framework's input pipeline hold where nobody takes a batch; print one line of JSON.

Arguments: the framework and a folder with CIFAR-10's files. Every image that is read leaves a byte in a file, whichever
process reads it, and takes SECONDS_PER_IMAGE.
"""

import json
import os
import sys
import time
from importlib import import_module
from pathlib import Path
from typing import Any

from bench.data.files import Cifar10Records
from bench.registry import FRAMEWORKS
from factories import make_cell

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


def main(framework: Any, folder: Path) -> None:
    SlowRecords.log = str(folder / f"{framework}.log")
    pipeline: Any = import_module(f"bench.data.{framework}")
    pipeline.Cifar10Records = SlowRecords
    fields: dict[str, Any] = {"mode": FRAMEWORKS[framework].modes[0], "data_dir": str(folder)}
    feed = pipeline.open_pipeline(make_cell(framework=framework, phase="infer", batch_size=1, **fields), 1)
    next(feed)  # starts Grain's workers
    num_queued = await_full_queue(Path(SlowRecords.log)) - 1
    print(json.dumps({"num_queued": num_queued, "max_queued_batches": feed.max_queued_batches}), flush=True)
    os._exit(0)  # as `python -m bench` ends: closing Grain's pipeline waits for its workers


if __name__ == "__main__":
    main(sys.argv[1], Path(sys.argv[2]))
