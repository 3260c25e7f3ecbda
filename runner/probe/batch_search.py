"""Search the largest batch size that fits: by doubling, then by bisection of the interval that is left."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

from bench.schema import Document

TrialOutcome = Literal["fits", "out-of-memory", "time-limit", "failure"]
StopReason = Literal["found", "max-batch-size", "time-limit", "failure"]


class Trial(Document):
    """One batch size, tried in a process of its own."""

    batch_size: int
    outcome: TrialOutcome
    """`time-limit`: the time for the whole search was up before the trial had ended."""
    seconds: float
    """How long the trial took, starting the framework included."""
    peak_bytes: int | None = None
    """Peak memory where the batch fits: of the framework's allocator on a GPU, of the process on a CPU."""
    bytes_requested: int | None = None
    """The size of the allocation that failed, where the framework says it."""
    message: str = ""
    """Why the batch does not fit or the trial failed, in one line."""


@dataclass(frozen=True, kw_only=True)
class BatchSearch:
    """What a search found."""

    trials: tuple[Trial, ...]
    stop_reason: StopReason
    """`found`: the next larger batch does not fit. `max-batch-size`: the upper bound fits."""
    largest_batch_size: int | None
    """The largest that was seen to fit; None if none was."""
    smallest_failing_batch_size: int | None


def search_largest_batch(
    try_batch: Callable[[int], Trial], *, multiple: int, max_batch_size: int, is_time_up: Callable[[], bool]
) -> BatchSearch:
    """Return the largest multiple of `multiple` up to `max_batch_size` that fits.

    If a batch fits, every smaller one is taken to fit too. A trial that neither fits nor runs out of memory stops the
    search, and so does `is_time_up`, which is called before each trial.
    """
    trials: list[Trial] = []
    fitting, failing = 0, None  # in multiples
    stop_reason: StopReason | None = None
    while stop_reason is None:
        chosen = _choose_next(fitting, failing, max_batch_size // multiple)
        if chosen is None:
            stop_reason = "max-batch-size" if failing is None else "found"
        elif is_time_up():
            stop_reason = "time-limit"
        else:
            trials.append(try_batch(chosen * multiple))
            match trials[-1].outcome:
                case "fits":
                    fitting = chosen
                case "out-of-memory":
                    failing = chosen
                case "time-limit" | "failure" as outcome:
                    stop_reason = outcome
    return BatchSearch(
        trials=tuple(trials),
        stop_reason=stop_reason,
        largest_batch_size=fitting * multiple or None,
        smallest_failing_batch_size=None if failing is None else failing * multiple,
    )


def _choose_next(fitting: int, failing: int | None, bound: int) -> int | None:
    """Return the next number to try above `fitting` and below `failing`; None if there is none between them."""
    if failing is None:
        return None if fitting >= bound else min(max(1, 2 * fitting), bound)
    return (fitting + failing) // 2 if failing - fitting > 1 else None
