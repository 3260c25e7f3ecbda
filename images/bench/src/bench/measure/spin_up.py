"""Keeps a GPU busy for a moment before the first step, in which frameworks choose their algorithms by timing them.

An idle GPU runs at a fraction of its clock and takes tenths of a second to raise it: what is timed meanwhile says
little about which algorithm is faster at the full one.
"""

from collections.abc import Callable
from time import perf_counter

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
