"""Fit lines of memory over batch size to measured cells, and invert them: the largest batch for a budget."""

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any

import numpy as np
import pandas as pd
from scipy import stats

from collector.batches.cards import CONTEXT_BYTES
from collector.results.cells import select_alone

MIN_BATCHES = 3
"""Fewest batch sizes for an interval: two are a line whatever they are."""
LINE_COLUMNS = [
    "model", "framework", "phase", "precision", "mode", "input_size", "num_classes", "num_gpus", "data_dir", "gpu_name",
]  # fmt: skip
"""What cells have in common whose batches are on one line. Real data is another line than synthetic data: its pipeline
can hold batches on the GPU beside the one that a step takes."""


@dataclass(frozen=True, kw_only=True)
class LargestBatch:
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
    fixed_bytes: float
    sample_bytes: float
    residual_bytes: float
    """Standard deviation of what single batches are off the line; NaN for two batches."""
    versions: tuple[str, ...] = ()
    """The framework's versions that the batches were measured with, as far as they are known; sorted."""

    @property
    def is_bent(self) -> bool:
        """Whether the line takes less than no memory for no sample: memory grows faster with larger batches."""
        return self.fixed_bytes < 0 < self.sample_bytes

    @property
    def has_interval(self) -> bool:
        """Whether there are enough batches to say how far off the line is."""
        return len(self.batches) >= MIN_BATCHES

    def predict_bytes(self, batch: float) -> float:
        """Return the bytes on the line."""
        return self.fixed_bytes + self.sample_bytes * batch

    def find_largest(self, budget_bytes: float, level: float) -> LargestBatch:
        """Return the largest batch for a budget, with the interval by inverting the line's prediction interval.

        Fieller's theorem for a new observation (Draper and Smith, Applied Regression Analysis, 3rd ed., 1998, section
        3.2): the batches whose prediction interval of memory holds the budget. It takes what batches are off the line
        for independent and normal; libraries choose other kernels and workspaces for other batches, so it says
        nothing of a jump beyond the batches that were measured.
        """
        if self.sample_bytes <= 0:
            return LargestBatch(value=math.inf, lower=math.nan, upper=math.nan)
        value = (budget_bytes - self.fixed_bytes) / self.sample_bytes
        if not self.has_interval:
            return LargestBatch(value=max(0, math.floor(value)), lower=math.nan, upper=math.nan)
        # Batches that are all on the line: inverting it would only round, below a whole batch perhaps.
        lower, upper = self._invert(budget_bytes, level) if self.residual_bytes else (value, value)
        rounded = [each if math.isinf(each) else max(0, math.floor(each)) for each in (value, lower, upper)]
        return LargestBatch(value=rounded[0], lower=rounded[1], upper=rounded[2])

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
    key: Mapping[str, object], points: Mapping[int, int], context_bytes: int = CONTEXT_BYTES
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
    for key, rows in measured.groupby(LINE_COLUMNS, dropna=False, sort=True):
        batch = rows["batch_size"] // rows["num_gpus"]
        points = rows["peak_memory_allocated_bytes"].groupby(batch).max()
        line = fit_line(
            key={name: _take_known(value) for name, value in zip(LINE_COLUMNS, key, strict=True)},
            points={int(size): int(needed) for size, needed in points.items()},  # type: ignore[call-overload]  # ints
            context_bytes=_find_context(rows),
        )
        versions = tuple(sorted(rows["framework_version"].dropna().unique()))
        lines += [replace(line, versions=versions)] if line else []
    return lines


def _take_known(value: Any) -> object:
    return None if pd.isna(value) else value


def _find_context(rows: pd.DataFrame) -> int:
    """Return the most that a process took beside its allocator; CONTEXT_BYTES where nothing says it."""
    beside = (rows["gpu_memory_peak_bytes"] - rows["peak_memory_reserved_bytes"]).dropna()
    return int(beside.max()) if len(beside) else CONTEXT_BYTES


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
