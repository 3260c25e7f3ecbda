"""Gather what each side measured of a cell, pair the cells of both sides, and compute ratios of cells and groups."""

from collections import Counter
from collections.abc import Sequence, Set
from dataclasses import dataclass, field
from functools import cached_property

from collector.labels import DEVICE_NAMES, FRAMEWORK_NAMES, add_labels, label_shared
from collector.machines import describe_places, is_confounded
from collector.results.cell_repeats import SOUND_VERDICTS
from collector.results.frames import CELL_COLUMNS, PROTOCOL_FIELDS, Row, group_rows, is_shared, make_frame
from collector.statistics import (
    Estimate,
    Measured,
    combine_estimates,
    compute_geometric_mean,
    divide,
    estimate_center,
    measure,
)
from collector.units import count_things
from collector.versus.question import Metric, describe_value, list_values

Rows = Sequence[Row]
PoolKey = tuple[str, bool, bool]
"""Device, whether two runs used the same machines, and whether the cells shared their device."""

FAILED_STATUSES = {"failed", "oom", "timeout"}
"""How a repeat ends that the cell itself is to blame for; `preempted` and `missing` say nothing of the cell."""


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

    @cached_property
    def row(self) -> Row:
        """The fields of the cell, and where the repeats that count ran, as `collector.machines` reads them."""
        columns = ("machine", "host", "instance_type")
        return self.cell | describe_places(*([row[name] for row in self.counted] for name in columns))

    @cached_property
    def measured(self) -> Measured:
        """The metric of the repeats; of several runs, each run is one observation, since its hour is."""
        column = "run_id" if len(self.run_ids) > 1 else "machine"
        return measure(self.values, [row[column] for row in self.counted])


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
    def is_confounded(self) -> bool:
        """Whether the ratio of one run holds a difference of machines of which nothing says how large it is."""
        return self.is_same_run and not self.problem and is_confounded(self.b.row, self.a.row)

    @property
    def pools(self) -> tuple[PoolKey, ...]:
        """Which kinds of noise the pair is held against: one for each device of its sides.

        A GPU and a CPU cell are on the same machine where they are on the same hosts.
        """
        devices = sorted({side.cell["device"] for side in (self.a, self.b)})
        column = "machines" if len(devices) == 1 else "hostnames"
        is_same_machine = self.a.row[column] == self.b.row[column]
        shares = any(is_shared(side.cell) for side in (self.a, self.b))
        return tuple((device, is_same_machine, shares) for device in devices)

    @cached_property
    def ratio(self) -> Estimate:
        """B over A."""
        return divide(self.b.measured, self.a.measured)

    @property
    def runs_share(self) -> float:
        """How much of the noise between two runs the spread of the ratio does not hold: 1, 0.5 or 0."""
        if len(self.a.run_ids) > 1 and self.is_same_run:
            return 0.0
        return sum(0.5 for side in (self.a, self.b) if len(side.run_ids) == 1)


def estimate_group_ratio(pairs: Sequence[CellPair]) -> Estimate:
    """Return the geometric mean of the ratios of the pairs, B over A; all cells of a side are from the same runs.

    What all cells share shows in their mean long before it shows in one of them. Cells of one run are not independent,
    since the run shifts all of them. So a side of several runs is averaged over its cells in each run, and the runs are
    the observations; of a side of one run the shift is part of the noise.
    """
    sides = []
    for cells in ([pair.b for pair in pairs], [pair.a for pair in pairs]):
        found = [one.measured for one in cells]
        if len(cells[0].run_ids) > 1:
            by_run = {run: compute_geometric_mean([own.means[run] for own in found]) for run in found[0].means}
            sides.append(Measured(estimate_center(list(by_run.values())), by_run))
        else:
            center = compute_geometric_mean([own.estimate.center for own in found])
            sides.append(Measured(combine_estimates(center, [(own.estimate, 1 / len(found)) for own in found]), {}))
    return divide(*sides)


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
    left = [{id_: own for (id_,), own in group_rows(rows, ["cell_id"]).items()} for rows in (rows_a, rows_b)]
    fields = [name for name in CELL_COLUMNS if name not in free]
    for names in (fields, [name for name in fields if name not in PROTOCOL_FIELDS]):
        keyed = [group_rows((rows[0] for rows in cells.values()), names) for cells in left]
        for key in [key for key in keyed[0] if key in keyed[1]]:
            a, b = ([cells.pop(row["cell_id"]) for row in own[key]] for cells, own in zip(left, keyed, strict=True))
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


def describe_other_values(pairing: Pairing, free: Set[str]) -> str:
    """Return in which fields that are not `free` no cell of A has a value of a cell of B: why none is paired."""
    sides = [[rows[0] for rows in cells] for cells in (pairing.only_in_a, pairing.only_in_b)]
    differing = []
    for name in CELL_COLUMNS:
        a, b = (list_values(rows, name) for rows in sides)
        if name not in (*free, *PROTOCOL_FIELDS) and set(a).isdisjoint(b):
            differing.append(f"{name} is {' or '.join(a)} in A, {' or '.join(b)} in B")
    return "; ".join(differing)


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
