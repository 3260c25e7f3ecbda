"""Computes the roofline of a step: the least time that its operations and bytes take on the device.

Williams, Waterman and Patterson, "Roofline" (CACM 52, 2009): no step is faster than its operations at the peak rate,
nor than its bytes at the memory's bandwidth.
"""

from typing import Literal

from bench.models.flops import count_step_cost
from bench.peaks import Peaks
from bench.schema import Cell, Roofline

# One byte that stays in the cache from one step to the next spares the memory at most one read and one write.
CACHE_TRANSFERS = 2


def make_roofline(cell: Cell, median_step_seconds: float, peaks: Peaks) -> Roofline:
    """Return how near the median step of `cell` came to what `peaks` allow, over all its GPUs."""
    cost = count_step_cost(cell)
    flops = cost.flops * cell.num_gpus
    num_bytes = cost.min_bytes * cell.num_gpus
    min_step_seconds, bound = find_bound(flops, num_bytes, peaks)
    achieved = flops / median_step_seconds
    peak = peaks.flops_per_second
    return Roofline(
        flops_per_step=flops,
        min_bytes_per_step=num_bytes,
        achieved_flops_per_second=achieved,
        peak_flops_per_second=peak,
        peak_bytes_per_second=peaks.bytes_per_second,
        peak_clock_mhz=peaks.clock_mhz,
        peak_source=peaks.source,
        share_of_peak=None if peak is None else achieved / peak,
        min_step_seconds=min_step_seconds,
        bound=bound,
        share_of_roofline=None if min_step_seconds is None else min_step_seconds / median_step_seconds,
    )


def find_bound(flops: int, num_bytes: int, peaks: Peaks) -> tuple[float | None, Literal["arithmetic", "memory"] | None]:
    """Return the shortest time of a step in seconds and what bounds it; None where a peak for that is not known.

    The bytes are those that the cache cannot keep from step to step (see CACHE_TRANSFERS): a step whose weights fit
    into it is not bound by memory.
    """
    memory_seconds = 0.0
    if peaks.bytes_per_second is not None:
        memory_seconds = max(0, num_bytes - CACHE_TRANSFERS * peaks.cache_bytes) / peaks.bytes_per_second
    if peaks.flops_per_second is None:
        return None, None
    arithmetic_seconds = flops / peaks.flops_per_second
    if memory_seconds > arithmetic_seconds:
        return memory_seconds, "memory"
    return arithmetic_seconds, "arithmetic"
