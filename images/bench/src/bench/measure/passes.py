"""The passes beside the timed window: spinning up before it; steps back to back, and steps that run on, after it.

In the timed window the device falls idle between the end of a step and the launch of the next one. Back to back, as
people train, the next step is launched while the device works on the last: what a launch costs is hidden as far as it
is shorter than the step. A GPU that has been idle runs at a fraction of its clock and takes tenths of a second to raise
it: what frameworks time meanwhile says little about which algorithm is faster. A device that heats up is slower after a
minute than at first.
"""

import math
from collections.abc import Callable
from itertools import accumulate
from time import perf_counter

from bench.measure.harness import Workload, run_steps
from bench.schema import PipelinedWindow, SustainedRun

# A GPU raises its clocks within some tenths of a second (harness.STEADY_MIN_SECONDS): a second is twice as long.
SPIN_UP_SECONDS = 1.0
# Operations element by element on this many float32 values, 32 MiB: a matrix product would leave the workspace of its
# library in the memory peaks. They take about as long as an operation takes to launch, so the GPU hardly falls idle.
NUM_ELEMENTS = 8 * 2**20
OPERATIONS_PER_BURST = 100


def spin_up(run_burst: Callable[[], None]) -> None:
    """Call `run_burst`, which keeps the device busy for some milliseconds and waits for it, for SPIN_UP_SECONDS."""
    end = perf_counter() + SPIN_UP_SECONDS
    while perf_counter() < end:
        run_burst()


# More steps than the timed window's median gives for the length asked for: back to back they take less, up to 17 % for
# Conv6 on an H200.
LENGTH_RESERVE = 1.25
# One step alone has nothing to overlap with.
MIN_STEPS = 2
# Two seconds of the shortest steps that were seen (0.1 ms). A CUDA stream takes about 1,000 launches and makes the host
# wait beyond, and queued steps have no memory each: PyTorch and TensorFlow reuse it in the order of the stream, JAX
# starts few programs ahead. So this bounds the length of the window only.
MAX_STEPS = 20_000


def run_pipelined(workload: Workload, seconds: float, step_seconds: float) -> PipelinedWindow:
    expected = LENGTH_RESERVE * seconds / step_seconds
    num_steps = math.ceil(min(max(expected, MIN_STEPS), MAX_STEPS))
    run_step = workload.run_step
    workload.synchronize()
    start = perf_counter()
    for _ in range(num_steps):
        run_step()
    workload.synchronize()
    return PipelinedWindow(num_steps=num_steps, seconds=perf_counter() - start)


# Long enough that single outliers hardly move the mean of a window, short enough to follow a device that heats up over
# tens of seconds.
WINDOW_SECONDS = 5.0
# The speed is flat where it stays within this share for this long: the clock of a GPU at its power limit moves by steps
# of 15 MHz, about 1 %, and a heat sink takes tens of seconds to warm up.
FLAT_TOLERANCE = 0.01
FLAT_SECONDS = 30.0


def run_sustained(workload: Workload, max_seconds: float) -> SustainedRun:
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
