"""Gather what one side measured of a cell, and compute the ratio of two sides."""

from bisect import bisect_left
from collections import Counter, defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from bench.schema import EARLIEST, LATEST
from collector.results.cell_repeats import SOUND_VERDICTS
from collector.results.frames import CELL_COLUMNS
from collector.statistics import (
    Estimate,
    average_by_machine,
    estimate_cell,
    estimate_center,
    estimate_paired_ratio,
    estimate_ratio,
)
from collector.versus.metrics import Metric

Row = dict[str, Any]

FAILED_STATUSES = ("failed", "oom", "timeout")
"""How a repeat ends that the cell itself is to blame for; `preempted` and `missing` say nothing of the cell."""


@dataclass(frozen=True, kw_only=True)
class CellSide:
    """One cell on one side: the repeats that count, from one run or from several."""

    name: str
    """`A` or `B`."""
    cell_id: str
    cell: Row
    rows: tuple[Row, ...]
    """All planned repeats."""
    counted: tuple[Row, ...]
    """Those that figures come from: measured under sound conditions, or all ok ones if these are asked for."""
    values: tuple[float, ...]
    """The metric of the counted repeats, in base units."""
    problem: str | None
    """Why no ratio can be computed of it."""

    def list_ok(self) -> list[Row]:
        """Return the repeats that ended ok, those among them that do not count: they ran somewhere, too."""
        return [row for row in self.rows if row["status"] == "ok"]

    @property
    def run_ids(self) -> tuple[str, ...]:
        """The runs of the repeats, sorted."""
        return tuple(sorted({row["run_id"] for row in self.counted or self.rows}))

    @property
    def machines(self) -> tuple[str, ...]:
        """The machines of the repeats that count, sorted."""
        return tuple(sorted({row["machine"] for row in self.counted}))

    @property
    def is_broken(self) -> bool:
        """Whether no repeat ended ok, and one of them failed by itself."""
        statuses = {row["status"] for row in self.rows}
        return "ok" not in statuses and bool(statuses & set(FAILED_STATUSES))

    def average(self, column: str) -> dict[str, float]:
        """Return the geometric mean of the values by the `column` of their repeats: `run_id` or `machine`."""
        return average_by_machine(self.values, [row[column] for row in self.counted])

    def estimate(self) -> Estimate:
        """Return the centre of the repeats; of several runs, each run is one observation, since its hour is."""
        if len(self.run_ids) > 1:
            return estimate_center(list(self.average("run_id").values()))
        return estimate_cell(self.values, [row["machine"] for row in self.counted])


def make_side(name: str, rows: Sequence[Row], metric: Metric, *, include_invalid: bool) -> CellSide:
    """Return the side of one cell, whose planned repeats `rows` (at least one) are."""
    ok = [row for row in rows if row["status"] == "ok"]
    sound = [row for row in ok if row["verdict"] in SOUND_VERDICTS]
    counted = ok if include_invalid and not sound else sound
    values = [value for row in counted if (value := metric.read(row)) is not None]
    return CellSide(
        name=name,
        cell_id=rows[0]["cell_id"],
        cell={field: rows[0][field] for field in CELL_COLUMNS},
        rows=tuple(rows),
        counted=tuple(counted),
        values=tuple(values),
        problem=_find_problem(name, ok, counted, values, metric) if counted or ok else _describe_ends(name, rows),
    )


def estimate_ratio_of_sides(a: CellSide, b: CellSide) -> Estimate:
    """Return B over A. Where both rest on the same runs, or else machines, and on several, each gives a ratio."""
    for column in ("run_id", "machine"):
        means = [side.average(column) for side in (b, a)]
        if len(means[0]) > 1 and means[0].keys() == means[1].keys():
            return estimate_paired_ratio(*means)
    return estimate_ratio(b.estimate(), a.estimate())


def share_runs(a: CellSide, b: CellSide) -> float:
    """Return how much of the noise between two runs the spread of the ratio does not hold: 1, 0.5 or 0."""
    if len(a.run_ids) > 1 and a.run_ids == b.run_ids:
        return 0.0
    return sum(0.5 for side in (a, b) if len(side.run_ids) == 1)


def find_hours_apart(a: CellSide, b: CellSide) -> float:
    """Return for how many hours at most a repeat of one side is away from the nearest of the other in the same run.

    0.0 where no run has both. Repeats whose machine's clock was not set are left out.
    """
    of_a, of_b = _list_times(a), _list_times(b)
    apart = [
        seconds
        for run_id in of_a.keys() & of_b.keys()
        for seconds in (*_measure_gaps(of_a[run_id], of_b[run_id]), *_measure_gaps(of_b[run_id], of_a[run_id]))
    ]
    return max(apart, default=0.0) / 3600


def _list_times(side: CellSide) -> dict[str, list[float]]:
    """Return by run when the repeats that count began, sorted, in seconds since 1970."""
    times = defaultdict(list)
    for row in side.counted:
        if EARLIEST < row["started_at"] < LATEST:
            times[row["run_id"]].append(row["started_at"].timestamp())
    return {run_id: sorted(own) for run_id, own in times.items()}


def _measure_gaps(times: Sequence[float], others: Sequence[float]) -> list[float]:
    """Return from each time how far the nearest of `others`, sorted, is."""
    gaps = []
    for time in times:
        place = bisect_left(others, time)
        gaps.append(min(abs(time - other) for other in others[max(place - 1, 0) : place + 1]))
    return gaps


def _find_problem(
    name: str, ok: Sequence[Row], counted: Sequence[Row], values: Sequence[float], metric: Metric
) -> str | None:
    if not counted:
        return f"no repeat of {name} was measured under sound conditions ({_count(ok, 'verdict')})"
    if len(values) < len(counted):
        return f"{metric.title} was not measured in {len(counted) - len(values)} of {len(counted)} repeats of {name}"
    if min(values) <= 0:
        return f"{metric.title} of {name} is 0, which has no ratio"
    if len({row["environment_id"] for row in counted}) > 1:
        return f"the repeats of {name} ran in several environments, which are not averaged"
    if len(values) < 2:
        return f"one repeat of {name} counts, which says nothing about its spread"
    return None


def _describe_ends(name: str, rows: Sequence[Row]) -> str:
    return f"no repeat of {name} ended ok ({_count(rows, 'status')})"


def _count(rows: Sequence[Row], column: str) -> str:
    return ", ".join(f"{count} {value}" for value, count in Counter(row[column] for row in rows).most_common())
