"""A way to try a batch size in, the largest batch that fits out: by doubling, then by halving the gap that is left."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

from bench.schema import Document

Outcome = Literal["fits", "out-of-memory", "time-limit", "failure"]
Ending = Literal["found", "max-batch-size", "time-limit", "failure"]


class Try(Document):
    """One batch size, tried in a process of its own."""

    batch_size: int
    outcome: Outcome
    """`time-limit`: the time for the whole search was up before the try had ended."""
    seconds: float
    """How long the try took, starting the framework included."""
    peak_bytes: int | None = None
    """Peak memory where the batch fits: of the framework's allocator on a GPU, of the process on a CPU."""
    bytes_requested: int | None = None
    """What the allocation that failed had asked for, where the framework says it."""
    message: str = ""
    """Why the batch does not fit or the try failed, in one line."""


@dataclass(frozen=True, kw_only=True)
class BatchSearch:
    """How a search went. `largest_batch_size`: the largest that was seen to fit; None: none was."""

    tries: tuple[Try, ...]
    ended_by: Ending
    """`found`: the next larger batch does not fit. `max-batch-size`: the upper bound fits."""
    largest_batch_size: int | None
    smallest_failing_batch_size: int | None


def search_largest_batch(
    try_batch: Callable[[int], Try], *, multiple: int, max_batch_size: int, is_time_up: Callable[[], bool]
) -> BatchSearch:
    """Return the largest multiple of `multiple` up to `max_batch_size` that fits; takes smaller batches to fit then.

    A try that neither fits nor runs out of memory ends the search, and so does the time, asked for before each try.
    """
    tries: list[Try] = []
    fitting, failing = 0, None  # in multiples
    ended_by: Ending | None = None
    while ended_by is None:
        chosen = _choose_next(fitting, failing, max_batch_size // multiple)
        if chosen is None:
            ended_by = "max-batch-size" if failing is None else "found"
        elif is_time_up():
            ended_by = "time-limit"
        else:
            tries.append(try_batch(chosen * multiple))
            match tries[-1].outcome:
                case "fits":
                    fitting = chosen
                case "out-of-memory":
                    failing = chosen
                case "time-limit" | "failure" as outcome:
                    ended_by = outcome
    return BatchSearch(
        tries=tuple(tries),
        ended_by=ended_by,
        largest_batch_size=fitting * multiple or None,
        smallest_failing_batch_size=None if failing is None else failing * multiple,
    )


def _choose_next(fitting: int, failing: int | None, bound: int) -> int | None:
    """Return the next number to try above `fitting` and below `failing`; None where nothing is left between them."""
    if failing is None:
        return None if fitting >= bound else min(max(1, 2 * fitting), bound)
    return (fitting + failing) // 2 if failing - fitting > 1 else None
