"""Hands out the batches of an input pipeline and records how long each was waited for. Imports no framework."""

from collections.abc import Iterator
from time import perf_counter
from typing import Any


class BatchFeed:
    """The endless batches of a pipeline, as an iterator that knows how long it made its caller wait."""

    def __init__(self, batches: Iterator[tuple[Any, ...]], max_queued_batches: int) -> None:
        self._batches = batches
        self.max_queued_batches = max_queued_batches
        """The most batches that the pipeline can hold ready, so that a slow one shows only after as many."""
        self.wait_seconds = 0.0
        """How long the last batch was waited for."""

    def __iter__(self) -> "BatchFeed":
        return self

    def __next__(self) -> tuple[Any, ...]:
        """Return the next batch. UserError where its data cannot be read."""
        start = perf_counter()
        batch = next(self._batches)
        self.wait_seconds = perf_counter() - start
        return batch
