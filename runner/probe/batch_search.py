"""Search the largest batch size that fits: around the prediction from smaller ones, then by bisection.

The memory that batches take grows with them in a line. Without a prediction, because the memory of a batch is not known
or does not grow, the search goes by doubling.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from math import isqrt
from typing import Literal

from bench.schema import Document

TrialOutcome = Literal["fits", "out-of-memory", "time-limit", "failure"]
StopReason = Literal["found", "max-batch-size", "time-limit", "failure"]

# The second batch, in units, from whose memory and the first's the line is drawn: two are too near for a slope.
SECOND_UNITS = 4
# A line that reaches further than this many times its largest batch is first made longer, by half of the way; where
# that does not fit, by the middle of what is left in the logarithm.
MAX_REACH = 16
# A prediction that is left in steps up to this one says nothing of the limit: on by doubling, or from the middle.
MAX_STEP = 8


class Trial(Document):
    """One batch size, tried in a process of its own."""

    batch_size: int
    outcome: TrialOutcome
    """`time-limit`: the time for the whole search was up before the trial had ended."""
    seconds: float
    """How long the trial took, starting the framework included."""
    peak_bytes: int | None = None
    """Peak memory where the batch fits: of the framework's allocator on a GPU, of the process on a CPU."""
    needed_bytes: int | None = None
    """The part of it that the batch needed: on a GPU without what the allocator kept unused."""
    available_bytes: int | None = None
    """What the batch could have taken at most: on a GPU what the process held and what was still free."""
    bytes_requested: int | None = None
    """The size of the allocation that failed, where the framework says it."""
    message: str = ""
    """Why the batch does not fit or the trial failed, in one line."""


@dataclass(frozen=True, kw_only=True)
class Footprint:
    """What one batch that fits took of the memory that there was."""

    num_units: int
    """The batch, in multiples of the smallest."""
    needed_bytes: int
    available_bytes: int
    """What the batch could have taken at most, as its process saw it."""


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
    bracket = Bracket(bound=max_batch_size // multiple)
    stop_reason: StopReason | None = None
    while stop_reason is None:
        chosen = bracket.choose_next()
        if chosen is None:
            stop_reason = "max-batch-size" if bracket.failing is None else "found"
        elif is_time_up():
            stop_reason = "time-limit"
        else:
            trials.append(try_batch(chosen * multiple))
            match trials[-1].outcome:
                case "fits":
                    bracket.note_fit(chosen, trials[-1])
                case "out-of-memory":
                    bracket.failing = chosen
                case "time-limit" | "failure" as outcome:
                    stop_reason = outcome
    return BatchSearch(
        trials=tuple(trials),
        stop_reason=stop_reason,
        largest_batch_size=bracket.fitting * multiple or None,
        smallest_failing_batch_size=None if bracket.failing is None else bracket.failing * multiple,
    )


@dataclass(kw_only=True)
class Bracket:
    """Where the limit lies, in multiples of the smallest batch, and where to look next."""

    bound: int
    """The largest that is tried."""
    fitting: int = 0
    failing: int | None = None
    footprints: list[Footprint] = field(default_factory=list)
    step: int = 0
    """How far beyond what is known to look at the least; 1 after the first prediction, then doubled each time."""

    def note_fit(self, chosen: int, trial: Trial) -> None:
        self.fitting = chosen
        if trial.needed_bytes is not None and trial.available_bytes is not None:
            footprint = Footprint(
                num_units=chosen, needed_bytes=trial.needed_bytes, available_bytes=trial.available_bytes
            )
            self.footprints.append(footprint)

    def choose_next(self) -> int | None:
        """Return the next number to try, between what fits and what does not; None if there is none between them."""
        predicted = predict_limit(self.footprints)
        if self.failing is None:
            return None if self.fitting >= self.bound else min(self._choose_above(predicted), self.bound)
        if self.failing - self.fitting <= 1:
            return None
        return self._choose_between(predicted, self.failing)

    def _choose_above(self, predicted: int | None) -> int:
        if self.fitting == 0:
            return 1
        if predicted is None:
            return SECOND_UNITS if self.fitting == 1 and self.footprints else 2 * self.fitting
        if min(predicted, self.bound) > MAX_REACH * self.fitting:
            return min(predicted, self.bound) // 2
        step = self._take_step()
        return 2 * self.fitting if step > MAX_STEP else max(predicted, self.fitting + step)

    def _choose_between(self, predicted: int | None, failing: int) -> int:
        """Return the next number below `failing`: near the prediction in steps that double, at last in the middle.

        So the interval is left after at most about twice as many trials as a bisection takes.
        """
        is_wide = failing > MAX_REACH * self.fitting
        if is_wide and (predicted is None or predicted >= failing):  # the line was too short
            return max(self.fitting + 1, isqrt(self.fitting * failing))
        step = self._take_step()
        if predicted is None or step > MAX_STEP or 2 * step >= failing - self.fitting:
            return (self.fitting + failing) // 2
        if predicted >= failing:
            return failing - step
        return max(predicted, self.fitting + step)

    def _take_step(self) -> int:
        step = max(1, self.step)
        self.step = max(1, 2 * self.step)
        return step


def predict_limit(footprints: Sequence[Footprint]) -> int | None:
    """Return the largest number of units on the line of needed memory below what is available; None without a line.

    The line goes through the largest batch and the largest of at most half its size: neighbours would make a slope of
    their rounding. The most that any process saw available counts: allocators keep some of it for themselves.
    """
    if len(footprints) < 2:
        return None
    largest = max(footprints, key=lambda one: one.num_units)
    others = sorted((one for one in footprints if one.num_units < largest.num_units), key=lambda one: one.num_units)
    if not others:
        return None
    distant = [one for one in others if 2 * one.num_units <= largest.num_units] or others[:1]
    slope = (largest.needed_bytes - distant[-1].needed_bytes) / (largest.num_units - distant[-1].num_units)
    if slope <= 0:
        return None
    available = max(one.available_bytes for one in footprints)
    return max(0, largest.num_units + int((available - largest.needed_bytes) // slope))
