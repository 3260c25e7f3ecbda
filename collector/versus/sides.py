"""Gather what each side measured of a cell, pair the cells of both sides, and compute ratios of cells and groups."""

import math
from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence, Set
from dataclasses import dataclass, field
from typing import Any

import pandas as pd

from bench.schema import EARLIEST, LATEST
from collector.labels import DEVICE_NAMES, FRAMEWORK_NAMES, add_labels, label_shared
from collector.machines import DIFFERENT_BY_NATURE, is_confounded
from collector.results.cell_repeats import SOUND_VERDICTS
from collector.results.collection import Collection
from collector.results.frames import CELL_COLUMNS, PROTOCOL_FIELDS, is_shared, make_frame
from collector.statistics import (
    Estimate,
    average_by_machine,
    compute_geometric_mean,
    estimate_cell,
    estimate_center,
    estimate_paired_ratio,
    estimate_ratio,
)
from collector.units import count_things
from collector.versus.question import Metric, describe_value

Row = dict[str, Any]
Rows = Sequence[Row]
PoolKey = tuple[str, bool, bool]
"""Device, whether two runs used the same machines, and whether the cells shared their device."""

FAILED_STATUSES = {"failed", "oom", "timeout"}
"""How a repeat ends that the cell itself is to blame for; `preempted` and `missing` say nothing of the cell."""
COLUMNS = (
    *("run_id", "cell_id", "repeat", "status", "started_at", *CELL_COLUMNS, "verdict", "environment_id", "hardware_id"),
    *("cpu_model", "num_threads", "gpu_name", "driver_version", "python_version", "framework_version"),
    *("instance_type", "region", "zone", "is_spot", "image_id", "kubelet_version", "cpu_manager_policy"),
    *("hostname", "gpu_uuid", "boot_id", "booted_at", "lasting_ids", "host", "machine"),
    *("center_step_seconds", "mean_step_seconds", "summarized_by", "pipelined_step_seconds", "peak_rss_bytes"),
    *("peak_memory_allocated_bytes", "cpu_energy_per_sample_joules", "gpu_energy_per_sample_joules"),
    "gpu_power_limit_watts",
)
"""What is read of the results. A row has None where a value is missing."""


def list_measured(collections: Iterable[Collection]) -> list[Row]:
    """Return a row per planned repeat of all runs: COLUMNS, and `kernel`, `revision`, `image` and `run_started`."""
    rows: list[Row] = []
    for collection in collections:
        frame = collection.results[list(COLUMNS)].astype(object)
        for row in frame.where(pd.notna(frame), None).to_dict("records"):
            environment = collection.environments.get(row["environment_id"])
            rows.append(
                {str(name): value for name, value in row.items()}
                | {
                    "kernel": environment.kernel if environment else None,
                    "revision": environment.git_revision if environment else None,
                    "image": row["image_id"] or (environment.image if environment else None),
                    "run_started": collection.run.created_at,
                }
            )
    return rows


def unify_centers(rows: Rows) -> None:
    """Have the mean of the steps stand for every repeat of a cell that was on two levels in any of the runs.

    Within a run it is so already (collector.results.attempts).
    """
    on_levels = {row["cell_id"] for row in rows if row["summarized_by"] == "mean" and row["verdict"] in SOUND_VERDICTS}
    for row in rows:
        if row["cell_id"] in on_levels and row["mean_step_seconds"] is not None:
            row["center_step_seconds"], row["summarized_by"] = row["mean_step_seconds"], "mean"


@dataclass(frozen=True, kw_only=True)
class CellSide:
    """One cell on one side: the repeats that count, from one run or from several."""

    name: str
    """`A` or `B`."""
    rows: tuple[Row, ...]
    """All planned repeats, one at least."""
    counted: tuple[Row, ...]
    """Those that figures come from: measured under sound conditions, or all ok ones if these are asked for."""
    values: tuple[float, ...]
    """The metric of the counted repeats, in base units."""
    problem: str | None
    """Why no ratio can be computed of it."""

    @property
    def cell(self) -> Row:
        """A row that has the fields of the cell, and its id."""
        return self.rows[0]

    @property
    def run_ids(self) -> tuple[str, ...]:
        """The runs of the repeats, sorted."""
        return tuple(sorted({row["run_id"] for row in self.counted or self.rows}))

    @property
    def is_broken(self) -> bool:
        """Whether no repeat ended ok, and one of them failed by itself."""
        statuses = {row["status"] for row in self.rows}
        return "ok" not in statuses and bool(statuses & FAILED_STATUSES)

    def list_values(self, column: str) -> list[str]:
        """Return what the repeats that count have in a column, each value once, sorted."""
        return sorted({row[column] for row in self.counted if row[column] is not None})

    def average(self, column: str) -> dict[str, float]:
        """Return the geometric mean of the values by the `column` of their repeats: `run_id` or `machine`."""
        return average_by_machine(self.values, [row[column] for row in self.counted])

    def estimate(self) -> Estimate:
        """Return the centre of the repeats; of several runs, each run is one observation, since its hour is."""
        if len(self.run_ids) > 1:
            return estimate_center(list(self.average("run_id").values()))
        return estimate_cell(self.values, [row["machine"] for row in self.counted])


def make_side(name: str, rows: Rows, metric: Metric, *, include_invalid: bool) -> CellSide:
    """Return the side of one cell, whose planned repeats `rows` (at least one) are."""
    ok = [row for row in rows if row["status"] == "ok"]
    sound = [row for row in ok if row["verdict"] in SOUND_VERDICTS]
    counted = ok if include_invalid and not sound else sound
    values = [value for row in counted if (value := metric.read(row)) is not None]

    def count(rows: Rows, column: str) -> str:
        return ", ".join(f"{count} {value}" for value, count in Counter(row[column] for row in rows).most_common())

    problem = None
    if not ok:
        problem = f"no repeat of {name} ended ok ({count(rows, 'status')})"
    elif not counted:
        problem = f"no repeat of {name} was measured under sound conditions ({count(ok, 'verdict')})"
    elif len(values) < len(counted):
        missing = len(counted) - len(values)
        problem = f"{metric.title} was not measured in {missing} of {len(counted)} repeats of {name}"
    elif min(values) <= 0:
        problem = f"{metric.title} of {name} is 0, which has no ratio"
    elif len({row["environment_id"] for row in counted}) > 1:
        problem = f"the repeats of {name} ran in several environments, which are not averaged"
    elif len(values) < 2:
        problem = f"one repeat of {name} counts, which says nothing about its spread"
    return CellSide(name=name, rows=tuple(rows), counted=tuple(counted), values=tuple(values), problem=problem)


@dataclass(frozen=True, kw_only=True)
class CellPair:
    """Two cells that belong together."""

    label: str
    a: CellSide
    b: CellSide

    @property
    def problem(self) -> str | None:
        """Why the two have no ratio; None where they have one."""
        return "; ".join(side.problem for side in (self.a, self.b) if side.problem) or None

    @property
    def is_same_run(self) -> bool:
        """Whether both sides rest on the same runs, so that what a run does to all cells cancels."""
        return self.a.run_ids == self.b.run_ids

    @property
    def field(self) -> str:
        """The field in which the sides differ by nature, for the words on their machines; empty where in none."""
        return next((name for name in DIFFERENT_BY_NATURE if self.a.cell[name] != self.b.cell[name]), "")

    @property
    def is_confounded(self) -> bool:
        """Whether the ratio of one run holds a difference of machines of which nothing says how large it is."""
        return self.is_same_run and not self.problem and is_confounded(self.make_row(), self.field)

    def make_row(self) -> Row:
        """Return the pair as `collector.machines` reads it; A is its reference."""
        row: Row = {}
        for suffix, side in (("subject", self.b), ("reference", self.a)):
            machines = side.list_values("machine")
            row |= {
                f"machines_{suffix}": "; ".join(machines),
                f"num_machines_{suffix}": len(machines),
                f"hostnames_{suffix}": "; ".join(side.list_values("host")),
                f"instance_types_{suffix}": "; ".join(side.list_values("instance_type")) or None,
            }
            row |= {f"{name}_{suffix}" if self.field else name: side.cell[name] for name in DIFFERENT_BY_NATURE}
        return row

    @property
    def pools(self) -> tuple[PoolKey, ...]:
        """Which kinds of noise the pair is held against: one for each device of its sides.

        A GPU and a CPU cell are on the same machine where they are on the same hosts.
        """
        devices = sorted({side.cell["device"] for side in (self.a, self.b)})
        column = "machine" if len(devices) == 1 else "host"
        is_same_machine = self.a.list_values(column) == self.b.list_values(column)
        shares = any(is_shared(side.cell) for side in (self.a, self.b))
        return tuple((device, is_same_machine, shares) for device in devices)

    def estimate(self) -> Estimate:
        """Return B over A. Where both rest on the same runs, or else machines, and on several, each gives a ratio."""
        for column in ("run_id", "machine"):
            means = [side.average(column) for side in (self.b, self.a)]
            if len(means[0]) > 1 and means[0].keys() == means[1].keys():
                return estimate_paired_ratio(*means)
        return estimate_ratio(self.b.estimate(), self.a.estimate())

    @property
    def runs_share(self) -> float:
        """How much of the noise between two runs the spread of the ratio does not hold: 1, 0.5 or 0."""
        if len(self.a.run_ids) > 1 and self.is_same_run:
            return 0.0
        return sum(0.5 for side in (self.a, self.b) if len(side.run_ids) == 1)

    def find_hours_apart(self) -> float:
        """Return for how many hours at most a repeat of one side is away from the nearest of the other in its run.

        0.0 where no run has both. Repeats whose machine's clock was not set are left out.
        """
        gaps = [0.0]
        for side, other in ((self.a, self.b), (self.b, self.a)):
            times: dict[str, list[float]] = {}
            for row in other.counted:
                if EARLIEST < row["started_at"] < LATEST:
                    times.setdefault(row["run_id"], []).append(row["started_at"].timestamp())
            gaps += [
                min(abs(row["started_at"].timestamp() - time) for time in times[row["run_id"]])
                for row in side.counted
                if EARLIEST < row["started_at"] < LATEST and row["run_id"] in times
            ]
        return max(gaps) / 3600


def estimate_group_ratio(pairs: Sequence[CellPair]) -> Estimate:
    """Return the geometric mean of the ratios of the pairs, B over A; all cells of a side are from the same runs.

    What all cells share shows in their mean long before it shows in one of them. Cells of one run are not independent,
    since the run shifts all of them. So a side of several runs is averaged over its cells in each run, and the runs are
    the observations; of a side of one run the shift is part of the noise.
    """
    estimates, means = [], []
    for side in ([pair.b for pair in pairs], [pair.a for pair in pairs]):
        cells = [one.average("run_id") for one in side]
        by_run = {run: compute_geometric_mean([own[run] for own in cells]) for run in cells[0]}
        several = len(by_run) > 1
        means.append(by_run)
        estimates.append(
            estimate_center(list(by_run.values())) if several else average_estimates([one.estimate() for one in side])
        )
    if len(means[0]) > 1 and means[0].keys() == means[1].keys():
        return estimate_paired_ratio(*means)
    return estimate_ratio(*estimates)


def average_estimates(estimates: Sequence[Estimate]) -> Estimate:
    """Return the geometric mean of independent estimates, all with an interval."""
    parts = [
        (estimate.log_standard_error**2, estimate.degrees_of_freedom)
        for estimate in estimates
        if estimate.log_standard_error is not None and estimate.degrees_of_freedom is not None
    ]
    assert len(parts) == len(estimates), "each of the estimates has an interval"
    variance = sum(part for part, _ in parts)
    return Estimate(
        center=compute_geometric_mean([estimate.center for estimate in estimates]),
        log_standard_error=math.sqrt(variance) / len(estimates),
        degrees_of_freedom=1 / sum((part / variance) ** 2 / freedom for part, freedom in parts),
    )


MAX_NEAR_FIELDS = 2
"""Cells without a partner are near each other if they differ in so few fields: those are named beside them."""
MAX_NEAREST = 200
"""Of so many cells without a partner the nearest ones are looked for: each is held against all of the other side."""
WORKLOAD_FIELDS = frozenset({"model", "phase", "batch_size", "input_size"})
"""Without one of them, the name of what a cell does has a gap."""


@dataclass(kw_only=True)
class Pairing:
    """Which cells of A and B belong together; each as the rows of its planned repeats."""

    pairs: list[tuple[Rows, Rows]] = field(default_factory=list)
    only_in_a: Sequence[Rows] = ()
    only_in_b: Sequence[Rows] = ()
    ambiguities: list[str] = field(default_factory=list)
    """Of cells of which one side has several that fit the same cells of the other, a sentence without a full stop."""


def pair_cells(rows_a: Rows, rows_b: Rows, free: Set[str]) -> Pairing:
    """Pair cells that are equal in every field but those that are `free`, in which the sides are said to differ.

    Cells whose protocol (how long was measured) is equal are paired first; of the others it may differ.
    """
    pairing = Pairing()
    left: list[dict[str, list[Row]]] = [{}, {}]
    for cells, rows in zip(left, (rows_a, rows_b), strict=True):
        for row in rows:
            cells.setdefault(row["cell_id"], []).append(row)
    fields = [name for name in CELL_COLUMNS if name not in free]
    for names in (fields, [name for name in fields if name not in PROTOCOL_FIELDS]):
        keyed: list[defaultdict[Any, list[str]]] = [defaultdict(list), defaultdict(list)]
        for found, cells in zip(keyed, left, strict=True):
            for cell_id, rows in cells.items():
                found[tuple(rows[0][name] for name in names)].append(cell_id)
        for key in [key for key in keyed[0] if key in keyed[1]]:
            a, b = ([cells.pop(one) for one in ids[key]] for cells, ids in zip(left, keyed, strict=True))
            if len(a) == len(b) == 1:
                pairing.pairs.append((a[0], b[0]))
            pairing.ambiguities += [_describe_ambiguity(side, own) for side, own in (("A", a), ("B", b)) if own[1:]]
    pairing.only_in_a, pairing.only_in_b = (list(cells.values()) for cells in left)
    return pairing


def _describe_ambiguity(side: str, cells: Sequence[Rows]) -> str:
    values = {name: list(dict.fromkeys(describe_value(rows[0][name]) for rows in cells)) for name in CELL_COLUMNS}
    differ = ", ".join(f"{name} ({', '.join(own)})" for name, own in values.items() if len(own) > 1)
    return (
        f"not unique: {count_things(len(cells), 'cell')} of {side} like {label_cells(cells[:1])[0]} fit the same cell "
        f"of the other side and differ in {differ}; narrow it with --{side.lower()} KEY=VALUE"
    )


def describe_nearest(
    cells: Sequence[Rows], others: Sequence[Rows], other: str, free: Set[str] = frozenset()
) -> list[str]:
    """Return for each cell in which fields that are not `free` the first of the most similar `others` differs.

    An empty text where it differs in none, or in more than MAX_NEAR_FIELDS, and of cells after the MAX_NEAREST first.
    """
    varying = [
        name for name in CELL_COLUMNS if name not in free and len({rows[0][name] for rows in (*cells, *others)}) > 1
    ]
    described = [""] * len(cells)
    for place, rows in enumerate(cells[:MAX_NEAREST]):
        differing = ([name for name in varying if rows[0][name] != one[0][name]] for one in others)
        nearest, fields = min(enumerate(differing), key=lambda found: len(found[1]), default=(0, []))
        if len(fields) <= MAX_NEAR_FIELDS:
            described[place] = ", ".join(
                f"{name} is {describe_value(others[nearest][0][name])} in {other}" for name in fields
            )
    return described


def label_cells(cells: Sequence[Rows]) -> list[str]:
    """Return a label for each cell, given by rows of it."""
    if not cells:
        return []
    return [str(label) for label in add_labels(make_frame([rows[0] for rows in cells], CELL_COLUMNS))["label"]]


def label_pairs(pairing: Pairing, free: Set[str]) -> list[str]:
    """Return the names of the pairs: what both cells share. In the fields that are `free` they may differ.

    Both names where what they share does not tell the pairs apart.
    """
    differing = {name for name in free if any(a[0][name] != b[0][name] for a, b in pairing.pairs)}
    if not differing & WORKLOAD_FIELDS:
        shared = {name: dtype for name, dtype in CELL_COLUMNS.items() if name not in differing}
        return label_shared(make_frame([a[0] for a, _ in pairing.pairs], shared))
    both = list(zip(*(label_cells(side) for side in zip(*pairing.pairs, strict=True)), strict=True))
    common = [", ".join(part for part in a.split(", ") if part in b.split(", ")) for a, b in both]
    return common if all(common) and len(set(common)) == len(common) else [f"{a} / {b}" for a, b in both]


def name_sides(a: Row, b: Row) -> tuple[str, str]:
    """Return the names of two cells by what differs: `PyTorch eager`, `JAX compiled`; `A`, `B` where nothing does."""
    differing = [name for name in CELL_COLUMNS if name not in PROTOCOL_FIELDS and a[name] != b[name]]
    if "framework" in differing:
        differing = [name for name in differing if name != "mode"]

    def name_value(cell: Row, name: str) -> str:
        value = describe_value(cell[name])
        if name == "framework":
            return f"{FRAMEWORK_NAMES.get(value, value)} {cell['mode']}"
        if name in ("precision", "phase", "model", "mode"):
            return value
        return DEVICE_NAMES[value] if name == "device" else f"{'batch' if name == 'batch_size' else name} {value}"

    first, second = (", ".join(name_value(cell, name) for name in differing) for cell in (a, b))
    return (first, second) if differing else ("A", "B")
