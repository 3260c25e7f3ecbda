"""The roofline of a step, and the peak rates of GPUs, by the names that NVML gives them, from `gpus.csv`.

Williams, Waterman and Patterson, "Roofline" (CACM 52, 2009): no step is faster than its operations at the peak rate,
nor than its bytes at the memory's bandwidth.

The table holds dense figures: where the vendor gives those of structured sparsity, a half of them. TFLOP/s are as
printed, at the clock that the vendor took for them: on most data centre GPUs the highest for float32, and one below it
for Hopper's tensor cores (1830 of 1980 MHz on an H100 SXM); on GeForce and older ones a boost clock that the device
passes. fp16 and bf16 are tensor cores that accumulate in float32, as frameworks do: GeForce cards, the A10G and the L40
do that at a half of their rate. fp32 is CUDA cores; int8-weights multiply in bf16.
"""

import csv
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Literal

from bench.models.flops import count_step_cost
from bench.schema import Cell, Precision, Roofline

TABLE = Path(__file__).parent / "gpus.csv"
PRECISIONS: tuple[Precision, ...] = ("fp32", "tf32", "fp16", "bf16", "fp8")


@dataclass(frozen=True, kw_only=True)
class Peaks:
    """The peak rates of a cell's devices together, in its precision. None: not known."""

    flops_per_second: float | None = None
    bytes_per_second: float | None = None
    cache_bytes: int = 0
    """Last level of cache in front of that memory; 0 where `bytes_per_second` is None."""
    clock_mhz: float | None = None
    """The clock that the figures of a GPU's datasheet are for; None for a peak that was measured."""
    source: str
    """In words, for the record."""


@dataclass(frozen=True, kw_only=True)
class GpuRow:
    """One line of the table."""

    names: tuple[str, ...]
    """The names that NVML reports; before driver 470 without `NVIDIA`."""
    cuda_cores: int
    tflops: dict[Precision, float]
    """A precision that the hardware lacks is missing: it falls back to other units, or runs emulated."""
    int8_tops: float | None
    """10^12 operations a second, for tables that people state; no cell multiplies int8."""
    gigabytes_per_second: float
    l2_mebibytes: float
    source: str

    @property
    def clock_mhz(self) -> float:
        """The clock that the float32 figure is for: a core does a multiply-add, two operations, in a cycle."""
        return self.tflops["fp32"] * 1e6 / (2 * self.cuda_cores)


@cache
def read_gpu_table() -> tuple[GpuRow, ...]:
    with TABLE.open(encoding="utf-8", newline="") as lines:
        return tuple(
            GpuRow(
                names=tuple(row["names"].split("|")),
                cuda_cores=int(row["cuda_cores"]),
                tflops={name: float(row[f"{name}_tflops"]) for name in PRECISIONS if row[f"{name}_tflops"]},
                int8_tops=float(row["int8_tops"]) if row["int8_tops"] else None,
                gigabytes_per_second=float(row["gigabytes_per_second"]),
                l2_mebibytes=float(row["l2_mebibytes"]),
                source=row["source"],
            )
            for row in csv.DictReader(lines)
        )


def find_gpu_peaks(names: Sequence[str], precision: Precision) -> Peaks:
    """Return the peaks of all GPUs of a cell together; unknown where they are not alike, in no row, or MIG slices.

    A slice has its share of the multiprocessors, but its bandwidth and cache are not simply theirs.
    """
    kinds = sorted(set(names))
    precision = "bf16" if precision == "int8-weights" else precision
    rows = [row for row in read_gpu_table() if len(kinds) == 1 and kinds[0] in row.names]
    if not rows:
        reason = f"{' and '.join(kinds) or 'no GPU'} not in the table of peaks"
        if any(" MIG " in kind for kind in kinds):
            gpus = " and ".join(f"{kind.partition(' MIG ')[0]} ({kind.rpartition(' MIG ')[2]})" for kind in kinds)
            reason = f"a slice of {gpus}: the peaks of slices are not known"
        return Peaks(source=reason)
    row = rows[0]
    tflops = row.tflops.get(precision)
    source = row.source if tflops is not None else f"{row.source}; no {precision} units"
    return Peaks(
        flops_per_second=None if tflops is None else len(names) * tflops * 1e12,
        bytes_per_second=len(names) * row.gigabytes_per_second * 1e9,
        cache_bytes=int(len(names) * row.l2_mebibytes * 2**20),
        clock_mhz=row.clock_mhz,
        source=source,
    )


# One byte that stays in the cache from one step to the next spares the memory at most one read and one write.
CACHE_TRANSFERS = 2


def make_roofline(cell: Cell, center_step_seconds: float, peaks: Peaks) -> Roofline:
    cost = count_step_cost(cell)
    flops = cost.flops * cell.num_gpus
    num_bytes = cost.min_bytes * cell.num_gpus
    memory_seconds, min_step_seconds, bound = find_bound(flops, num_bytes, peaks)
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
        min_step_seconds=min_step_seconds,
        min_memory_seconds=memory_seconds,
        bound=bound,
        share_of_roofline=None if min_step_seconds is None else min_step_seconds / center_step_seconds,
    )


def find_bound(
    flops: int, num_bytes: int, peaks: Peaks
) -> tuple[float | None, float | None, Literal["arithmetic", "memory"] | None]:
    """Return the seconds that the bytes of a step take, those of the step at the least, and what bounds it.

    The bytes are those that the cache cannot keep from step to step (see CACHE_TRANSFERS): a step whose weights fit
    into it is not bound by memory.
    """
    memory_seconds = None
    if peaks.bytes_per_second is not None:
        memory_seconds = max(0, num_bytes - CACHE_TRANSFERS * peaks.cache_bytes) / peaks.bytes_per_second
    if peaks.flops_per_second is None:
        return memory_seconds, None, None
    arithmetic_seconds = flops / peaks.flops_per_second
    if memory_seconds is not None and memory_seconds > arithmetic_seconds:
        return memory_seconds, memory_seconds, "memory"
    return memory_seconds, arithmetic_seconds, "arithmetic"
