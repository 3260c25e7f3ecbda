"""Computes the roofline of a step: the least time that its operations and bytes take on the device.

Williams, Waterman and Patterson, "Roofline" (CACM 52, 2009): no step is faster than its operations at the peak rate,
nor than its bytes at the memory's bandwidth.
"""

from dataclasses import dataclass
from typing import Literal

from bench.measure.peaks import Peaks
from bench.models.flops import count_step_cost
from bench.schema import Cell, Roofline

# One byte that stays in the cache from one step to the next spares the memory at most one read and one write.
CACHE_TRANSFERS = 2


@dataclass(frozen=True, kw_only=True)
class Bound:
    """The shortest time of a step. None: not known."""

    memory_seconds: float | None
    """What the bytes take that the cache cannot keep from step to step (see CACHE_TRANSFERS)."""
    min_step_seconds: float | None
    name: Literal["arithmetic", "memory"] | None
    """What bounds the step."""


def make_roofline(cell: Cell, center_step_seconds: float, peaks: Peaks) -> Roofline:
    """Return how near the median step of `cell` came to what `peaks` allow, over all its GPUs."""
    cost = count_step_cost(cell)
    flops = cost.flops * cell.num_gpus
    num_bytes = cost.min_bytes * cell.num_gpus
    bound = find_bound(flops, num_bytes, peaks)
    achieved = flops / center_step_seconds
    peak = peaks.flops_per_second
    return Roofline(
        flops_per_step=flops,
        least_flops_per_step=cost.least_flops * cell.num_gpus,
        min_bytes_per_step=num_bytes,
        achieved_flops_per_second=achieved,
        peak_flops_per_second=peak,
        peak_bytes_per_second=peaks.bytes_per_second,
        peak_clock_mhz=peaks.clock_mhz,
        peak_source=peaks.source,
        share_of_peak=None if peak is None else achieved / peak,
        min_step_seconds=bound.min_step_seconds,
        min_memory_seconds=bound.memory_seconds,
        bound=bound.name,
        share_of_roofline=None if bound.min_step_seconds is None else bound.min_step_seconds / center_step_seconds,
    )


def find_bound(flops: int, num_bytes: int, peaks: Peaks) -> Bound:
    """Return the shortest time of a step of `flops` operations and `num_bytes` bytes.

    The bytes are those that the cache cannot keep from step to step (see CACHE_TRANSFERS): a step whose weights fit
    into it is not bound by memory.
    """
    memory_seconds = None
    if peaks.bytes_per_second is not None:
        memory_seconds = max(0, num_bytes - CACHE_TRANSFERS * peaks.cache_bytes) / peaks.bytes_per_second
    if peaks.flops_per_second is None:
        return Bound(memory_seconds=memory_seconds, min_step_seconds=None, name=None)
    arithmetic_seconds = flops / peaks.flops_per_second
    if memory_seconds is not None and memory_seconds > arithmetic_seconds:
        return Bound(memory_seconds=memory_seconds, min_step_seconds=memory_seconds, name="memory")
    return Bound(memory_seconds=memory_seconds, min_step_seconds=arithmetic_seconds, name="arithmetic")
