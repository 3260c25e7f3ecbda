"""Runs steps on until their speed is flat: a device that heats up is slower after a minute than at first."""

from itertools import accumulate
from time import perf_counter

from bench.measure.harness import Workload, run_steps
from bench.schema import SustainedRun

# Long enough that single outliers hardly move the mean of a window, short enough to follow a device that heats up over
# tens of seconds.
WINDOW_SECONDS = 5.0
# The speed is flat where it stays within this share for this long: the clock of a GPU at its power limit moves by steps
# of 15 MHz, about 1 %, and a heat sink takes tens of seconds to warm up.
FLAT_TOLERANCE = 0.01
FLAT_SECONDS = 30.0


def run_sustained(workload: Workload, max_seconds: float) -> SustainedRun:
    """Run steps window by window until the speed is flat or `max_seconds` have passed."""
    windows: list[tuple[float, float]] = []
    start = perf_counter()
    while True:
        window_start = perf_counter()
        num_steps = run_steps(workload, WINDOW_SECONDS)
        end = perf_counter()
        windows.append((end - window_start, (end - window_start) / num_steps))
        flat_after = find_flat_stretch(windows)
        if flat_after is not None or end - start >= max_seconds:
            return SustainedRun(
                window_step_seconds=tuple(step_seconds for _, step_seconds in windows),
                seconds=end - start,
                flat_after_seconds=flat_after,
            )


def find_flat_stretch(windows: list[tuple[float, float]]) -> float | None:
    """Return when the flat stretch that ends now began, in seconds from the start; None where there is none.

    `windows`: length and seconds per step of each. The stretch takes at least FLAT_SECONDS, and no two of its windows
    differ by more than FLAT_TOLERANCE.
    """
    ends = list(accumulate(seconds for seconds, _ in windows))
    starts = [0.0, *ends[:-1]]
    least = most = windows[-1][1]
    found = None
    for start, (_, step_seconds) in zip(reversed(starts), reversed(windows), strict=True):
        least, most = min(least, step_seconds), max(most, step_seconds)
        if most > (1 + FLAT_TOLERANCE) * least:
            break
        if ends[-1] - start >= FLAT_SECONDS:
            found = start
    return found
