"""Fit lines of memory over batch size to measured cells: the largest batch for a card, and what that rests on."""

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import NamedTuple

import numpy as np
import pandas as pd
from scipy import stats

from collector.results.frames import list_rows, select_alone
from collector.units import GIB, MIB, format_number, join_some

MIB_BYTES = 2**20
# The driver keeps memory that it counts neither as used nor as free: 616 MiB on an H200 (143,771 MiB in total, less 788
# used and 142,367 free: docs/results/2026-11-22-h200). A T4 keeps 250 MiB (15,360 less the 15,110 that CUDA sees, as
# deviceQuery prints). What an H200 keeps is taken for all: on a T4 that leaves a batch 366 MiB too little.
DRIVER_BYTES = 616 * MIB_BYTES
# The CUDA context with the libraries' kernels, where a framework does not say what its allocator holds: what PyTorch
# training takes on an H100 and an H200 (the most in use less what the allocator held, docs/results).
CONTEXT_BYTES = 768 * MIB_BYTES


class Card(NamedTuple):
    """A size of GPU memory."""

    name: str
    sold_as: str
    """The size by which its vendor sells it, such as `16 GB`."""
    total_bytes: int
    """As the driver reports it."""

    @property
    def label(self) -> str:
        return f"{self.sold_as} ({self.name})"

    def find_budget(self, context_bytes: int) -> int:
        return self.total_bytes - DRIVER_BYTES - context_bytes


# Totals as nvidia-smi reports them: https://thundergolfer.com/blog/nvidia-gpu-memory-capacity (read in November 2026);
# those of the H100 and the H200 are also in docs/results. The marketed GB are sometimes GiB and sometimes less.
CARDS = (
    Card("T4", "16 GB", 15_360 * MIB_BYTES),
    Card("L4", "24 GB", 23_034 * MIB_BYTES),
    Card("A100", "40 GB", 40_960 * MIB_BYTES),
    Card("H100", "80 GB", 81_559 * MIB_BYTES),
    Card("H200", "141 GB", 143_771 * MIB_BYTES),
)
MIN_BATCHES = 3
"""Fewest batch sizes for an interval: two are a line whatever they are."""
VERSION = "framework_version"
LINE_COLUMNS = [
    "model", "framework", "phase", "precision", "mode", "input_size", "num_classes", "num_gpus", "data_dir", "gpu_name",
    VERSION,
]  # fmt: skip
"""What cells have in common whose batches are on one line. Real data is another line than synthetic data: its pipeline
can hold batches on the GPU beside the one that a step takes. Another version of the framework is another line; results
that do not record theirs are on a line of their own."""


class LargestBatch(NamedTuple):
    """The largest batch for a budget: the prediction and its interval, in whole samples; infinite: no bound."""

    value: float
    lower: float
    upper: float


@dataclass(frozen=True, kw_only=True)
class MemoryLine:
    """Holds the least-squares line of the bytes of tensors at the peak of a step over the batch of one GPU."""

    key: Mapping[str, object]
    """LINE_COLUMNS of its cells; None: they have no such value, as a model without classes."""
    batches: tuple[int, ...]
    needed_bytes: tuple[int, ...]
    """The most of the repeats of each batch."""
    context_bytes: int
    """What the process took on the GPU beside its allocator."""
    environment_ids: tuple[str, ...]
    """Of the repeats, sorted: several may differ in libraries or settings that the line does not divide by."""
    fixed_bytes: float
    sample_bytes: float
    residual_bytes: float
    """Standard deviation of what single batches are off the line; NaN for two batches."""

    @property
    def has_interval(self) -> bool:
        return len(self.batches) >= MIN_BATCHES

    def predict_bytes(self, batch: float) -> float:
        return self.fixed_bytes + self.sample_bytes * batch

    def find_largest(self, budget_bytes: float, level: float) -> LargestBatch:
        """Return the largest batch for a budget, with the interval by inverting the line's prediction interval.

        Fieller's theorem for a new observation (Draper and Smith, Applied Regression Analysis, 3rd ed., 1998, section
        3.2): the batches whose prediction interval of memory holds the budget. It takes what batches are off the line
        for independent and normal; libraries choose other kernels and workspaces for other batches, so it says
        nothing of a jump beyond the batches that were measured.
        """
        if self.sample_bytes <= 0:
            return LargestBatch(math.inf, math.nan, math.nan)
        value = (budget_bytes - self.fixed_bytes) / self.sample_bytes
        lower, upper = math.nan, math.nan
        if self.has_interval:
            # Batches that are all on the line: inverting it would only round, below a whole batch perhaps.
            lower, upper = self._invert(budget_bytes, level) if self.residual_bytes else (value, value)
        return LargestBatch(*(max(0, math.floor(one)) if math.isfinite(one) else one for one in (value, lower, upper)))

    def _invert(self, budget_bytes: float, level: float) -> tuple[float, float]:
        batches = np.array(self.batches, dtype=float)
        centre, spread = batches.mean(), ((batches - batches.mean()) ** 2).sum()
        reach = float(stats.t.ppf((1 + level) / 2, len(batches) - 2)) * self.residual_bytes
        distance = budget_bytes - self.predict_bytes(centre)
        # (distance - slope u)^2 = reach^2 (1 + 1/n + u^2 / spread), a quadratic in u = batch - centre.
        leading = self.sample_bytes**2 - reach**2 / spread
        if leading <= 0:  # the slope may be zero: memory may not grow at all
            return 0.0, math.inf
        half = self.sample_bytes * distance
        inside = max(0.0, half**2 - leading * (distance**2 - reach**2 * (1 + 1 / len(batches))))
        low, high = ((half + sign * math.sqrt(inside)) / leading for sign in (-1, 1))
        return centre + low, centre + high


def fit_line(
    key: Mapping[str, object],
    points: Mapping[int, int],
    context_bytes: int = CONTEXT_BYTES,
    environment_ids: Sequence[str] = (),
) -> MemoryLine | None:
    """Return the line through the bytes that each batch needs; None for fewer than two batches."""
    if len(points) < 2:
        return None
    batches = sorted(points)
    needed = [points[batch] for batch in batches]
    # Exactly: where all batches need the same, a slope that is only rounding would give a largest batch.
    centre, mean = Fraction(sum(batches), len(batches)), Fraction(sum(needed), len(needed))
    spread = sum((batch - centre) ** 2 for batch in batches)
    slope = sum((batch - centre) * each for batch, each in points.items()) / spread
    fixed = mean - slope * centre
    off = sum((each - fixed - slope * batch) ** 2 for batch, each in points.items())
    freedom = len(batches) - 2
    return MemoryLine(
        key=key,
        batches=tuple(batches),
        needed_bytes=tuple(needed),
        context_bytes=context_bytes,
        environment_ids=tuple(environment_ids),
        fixed_bytes=float(fixed),
        sample_bytes=float(slope),
        residual_bytes=math.sqrt(off / freedom) if freedom > 0 else math.nan,
    )


def fit_lines(results: pd.DataFrame) -> list[MemoryLine]:
    """Return a line for each kind of GPU cell with two batches or more; columns RESULT_COLUMNS.

    Only repeats that ended ok and recorded what their tensors took at the peak count, of cells that had their GPU to
    themselves: a tenant beside others, or on a slice, may be given another allocator and other kernels.
    """
    measured = select_alone(results[(results["status"] == "ok") & (results["device"] == "gpu")])
    measured = measured[measured["peak_memory_allocated_bytes"].notna()]
    lines = []
    for _, rows in measured.groupby(LINE_COLUMNS, dropna=False, sort=True):
        points = rows["peak_memory_allocated_bytes"].groupby(rows["batch_size"] // rows["num_gpus"]).max()
        beside = (rows["gpu_memory_peak_bytes"] - rows["peak_memory_reserved_bytes"]).dropna()
        line = fit_line(
            list_rows(rows[LINE_COLUMNS].head(1))[0],
            {int(size): int(needed) for size, needed in points.items()},  # type: ignore[call-overload]  # of integers
            int(beside.max()) if len(beside) else CONTEXT_BYTES,
            sorted(rows["environment_id"].dropna().unique()),
        )
        lines += [line] if line else []
    return lines


def hold_out_largest(line: MemoryLine) -> float | None:
    """Return by which share the line through the others misses the largest batch's bytes; None for fewer than four.

    None also where the largest batch took none.
    Of one held-out batch, at 2 to 4 times the next one as a rule: a sample of how well the line reaches beyond itself.
    """
    if len(line.batches) <= MIN_BATCHES or not line.needed_bytes[-1]:
        return None
    shorter = fit_line(line.key, dict(zip(line.batches[:-1], line.needed_bytes[:-1], strict=True)))
    if shorter is None:
        return None
    return shorter.predict_bytes(line.batches[-1]) / line.needed_bytes[-1] - 1


MAX_NAMED = 3
"""Environments that a sentence names; the others are counted."""


def describe_line(line: MemoryLine, level: float) -> list[str]:
    intro = (
        f"{describe_key(line.key)}: {format_number(line.fixed_bytes, GIB)} GiB and "
        f"{format_number(line.sample_bytes, MIB)} MiB a sample, from {len(line.batches)} batches, {line.batches[0]} to "
        f"{line.batches[-1]}"
    )
    off = f"; single batches are off it by {format_number(line.residual_bytes, MIB)} MiB"
    cautions = _list_cautions(line)
    if line.sample_bytes <= 0:
        scattered = off if line.has_interval and line.residual_bytes else ""
        return [
            f"{intro}{scattered}: memory does not grow with the batch here, so no largest batch follows.",
            *cautions,
        ]
    if not line.has_interval:
        why = "any two batches are on a line, so there is no interval and no largest batch; measure a third"
        return [f"{intro}: {why}.", *cautions]
    held_out = hold_out_largest(line)
    checked = "" if held_out is None else f"; the others' line misses the largest batch by {100 * held_out:+.1f} %"
    sizes = (
        f"{card.label} {format_largest(line.find_largest(card.find_budget(line.context_bytes), level))}"
        for card in CARDS
    )
    beyond = f"Batches above {line.batches[-1]} were not measured: the intervals hold if the line goes on."
    return [
        f"{intro}{off}{checked}.",
        f"  largest batch ({100 * level:g} % interval): {', '.join(sizes)}. {beyond}",
        *cautions,
    ]


def _list_cautions(line: MemoryLine) -> Iterator[str]:
    if line.fixed_bytes < 0 < line.sample_bytes:
        yield "  it gives no sample less than no memory, so memory bends: larger batches may take more than it says."
    ids = line.environment_ids
    if len(ids) > 1:
        yield (
            f"  its results are of {len(ids)} environments ({join_some(ids, MAX_NAMED)}): other libraries or settings "
            "may need other memory, which the line takes for chance."
        )


def describe_key(key: Mapping[str, object]) -> str:
    gpus = "" if key["num_gpus"] == 1 else f" x {key['num_gpus']}, batch of one GPU"
    data = "" if key["data_dir"] is None else f", data {key['data_dir']}"
    return (
        f"{key['model']} {key['phase']}, {key['framework']} {key[VERSION] or '(version not recorded)'} {key['mode']}, "
        f"{key['precision']}, size {key['input_size']}, {key['gpu_name'] or 'GPU not recorded'}{gpus}{data}"
    )


def format_largest(largest: LargestBatch) -> str:
    if math.isnan(largest.lower):
        return f"{largest.value:,} (no interval)"
    upper = "no bound" if math.isinf(largest.upper) else f"{largest.upper:,}"
    return f"{largest.value:,} ({largest.lower:,} to {upper})"
