"""Hands out the batches of a pipeline, records how long each was waited for, and ends its workers with this process."""

import os
import threading
from collections.abc import Iterator
from importlib import import_module
from multiprocessing import parent_process
from multiprocessing.connection import wait
from time import perf_counter
from typing import Any

from bench.registry import FRAMEWORKS
from bench.schema import Cell


class BatchFeed(Iterator[tuple[Any, ...]]):
    """The endless batches of a pipeline, as an iterator that knows how long it made its caller wait."""

    def __init__(self, batches: Iterator[tuple[Any, ...]], max_queued_batches: int) -> None:
        self._batches = batches
        self.max_queued_batches = max_queued_batches
        """The most batches that the pipeline can hold ready, so that a slow one shows only after as many."""
        self.wait_seconds = 0.0
        """How long the last batch was waited for."""

    def __next__(self) -> tuple[Any, ...]:
        start = perf_counter()
        batch = next(self._batches)
        self.wait_seconds = perf_counter() - start
        return batch


def open_feed(cell: Cell, num_threads: int) -> BatchFeed | None:
    """Return the batches of the cell's real data from its framework's pipeline; None where the data are synthetic.

    Raise UserError where the files are not as they should be; for an image that cannot be decoded, `next` does.
    """
    if cell.data_dir is None:
        return None
    module = FRAMEWORKS[cell.framework].module or f"bench.data.{cell.framework}"
    feed: BatchFeed = import_module(module).open_pipeline(cell, num_threads)
    return feed


def end_with_parent(*_: int) -> None:
    """End this worker when its parent ends, however that ends; called in the worker, with its number.

    PyTorch's own workers notice it up to 5 s later, Grain's never: they would take CPU time from the next repeat.
    """
    parent = parent_process()
    assert parent is not None

    def wait_for_end() -> None:
        wait([parent.sentinel])
        os._exit(1)

    threading.Thread(target=wait_for_end, name="end-with-parent", daemon=True).start()
