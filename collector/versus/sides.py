"""Pair the cells of two sides, compute ratios of cells and groups, and estimate by how much identical runs differ.

That difference is the floor below which one between two runs means nothing. Identical runs measured the same cell in
the same environment, with the same revision of the tool. Repeats of one run share its hour: what the room, the clock
and the neighbours do to all of them is in no spread between repeats. It shows only in the difference of two runs that
should not differ. They are looked for among the other runs of the store.
"""

import math
from collections import defaultdict
from collections.abc import Hashable, Iterable, Mapping, Sequence, Set
from dataclasses import dataclass, field
from datetime import datetime
from functools import cached_property
from itertools import pairwise

from scipy import special

from bench.errors import TransientError, UserError
from bench.schema import Run
from bench.store import Store, is_confirmation
from bench.store.documents import read_runs
from collector.comparisons import is_confounded
from collector.labels import add_labels, label_shared
from collector.results.collection import Collection
from collector.results.frames import CELL_COLUMNS, PROTOCOL_FIELDS, Row, group_rows, is_shared, make_frame
from collector.results.load import load_run
from collector.results.summary import SOUND_VERDICTS, count_values, describe_places
from collector.statistics import (
    CONFIDENCE,
    Estimate,
    Measured,
    Variance,
    add_variances,
    combine_estimates,
    compute_geometric_mean,
    divide,
    estimate_center,
    measure,
)
from collector.units import count_things, join_some
from collector.versus.question import Metric, Reason, ReasonCode, Source, describe_value, list_values

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
    problem: Reason | None
    """Why no ratio can be computed of it."""

    @property
    def cell(self) -> Row:
        return self.rows[0]

    @property
    def run_ids(self) -> tuple[str, ...]:
        return tuple(sorted({row["run_id"] for row in self.counted or self.rows}))

    @property
    def is_broken(self) -> bool:
        """Whether no repeat ended ok, and one of them failed by itself."""
        statuses = {row["status"] for row in self.rows}
        return "ok" not in statuses and bool(statuses & FAILED_STATUSES)

    @cached_property
    def row(self) -> Row:
        """The fields of the cell, and where the repeats that count ran, as `collector.comparisons` reads them."""
        columns = ("machine", "host", "instance_type")
        return self.cell | describe_places(*([row[name] for row in self.counted] for name in columns))

    @cached_property
    def measured(self) -> Measured:
        """The metric of the repeats; of several runs, each run is one observation, since its hour is."""
        column = "run_id" if len(self.run_ids) > 1 else "machine"
        is_first = [row["is_first_stage"] for row in self.counted]
        return measure(self.values, [row[column] for row in self.counted], is_first)


def make_side(name: str, rows: Rows, metric: Metric, *, include_invalid: bool) -> CellSide:
    """Return the side of one cell, whose planned repeats `rows` (at least one) are."""
    ok = [row for row in rows if row["status"] == "ok"]
    sound = [row for row in ok if row["verdict"] in SOUND_VERDICTS]
    counted = ok if include_invalid and not sound else sound
    if metric.is_of_some:
        counted = [row for row in counted if metric.read(row) is not None] or counted
    values = [value for row in counted if (value := metric.read(row)) is not None]

    code: ReasonCode | None = None
    if not ok:
        code = "failed"
    elif not counted:
        code = "unsound"
    elif len(values) < len(counted):
        code = "not-measured"
    elif min(values) <= 0:
        code = "zero"
    elif len({row["environment_id"] for row in counted}) > 1:
        code = "several-environments"
    elif len(values) < 2:
        code = "one-repeat"
    figures = {
        "side": name,
        "counts": count_values(row["verdict" if ok else "status"] for row in ok or rows),
        "metric": metric.title,
        "missing": len(counted) - len(values),
        "number": len(counted),
    }
    problem = code and Reason(code, figures)
    return CellSide(name=name, rows=tuple(rows), counted=tuple(counted), values=tuple(values), problem=problem)


@dataclass(frozen=True, kw_only=True)
class CellPair:
    """Two cells that belong together."""

    label: str
    a: CellSide
    b: CellSide

    @property
    def problems(self) -> tuple[Reason, ...]:
        """Why the two have no ratio; empty where they have one."""
        return tuple(side.problem for side in (self.a, self.b) if side.problem)

    @property
    def is_same_run(self) -> bool:
        """Whether both sides rest on the same runs, so that what a run does to all cells cancels."""
        return self.a.run_ids == self.b.run_ids

    @property
    def is_confounded(self) -> bool:
        """Whether the ratio of one run holds a difference of machines of which nothing says how large it is."""
        return self.is_same_run and not self.problems and is_confounded(self.b.row, self.a.row)

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


MAX_RUNS = 10
"""So many other runs are read at the most, the newest first: with ten of them the noise of a run's cells has six
degrees of freedom or more, and twice as many would make its floor narrower by a tenth only."""
MAX_NAMED = 5
DEFAULT_RUN_DEVIATION = 0.03
"""The standard deviation of the log by which a run shifts a cell, where no identical runs show it: the most of the 1 to
3 % that nights are taken to differ by (docs/measurement.md, "What identical runs differ by")."""
DEFAULT_MACHINE_DIFFERENCE = 0.03
"""The standard deviation of the log of one machine's time over another's of the same kind, where no identical runs
show it: as in docs/statistics.md, "Machines", for two cards of one model."""
TWO_SIDED_QUANTILE = float(special.ndtri((1 + CONFIDENCE) / 2))
KIND_FIELDS = ("cell_id", "environment_id", "revision")
"""What is equal for identical runs."""


@dataclass(frozen=True, kw_only=True)
class RunEstimate:
    """The centre of one cell in one run."""

    kind: Hashable
    """What must be equal for two runs to be identical."""
    cell_id: str
    device: str
    run_id: str
    started_at: datetime
    machines: str
    estimate: Estimate
    is_shared: bool = False
    """Whether the cell shared its device with other tenants: its noise is theirs too."""


@dataclass(frozen=True, kw_only=True)
class RunDifference:
    """By how much one cell differed between two identical runs, one after the other."""

    pool: PoolKey
    runs: tuple[str, str]
    cell_id: str
    log_difference: float
    repeats: Variance
    """What the spread between the repeats contributes to the variance of the difference."""


@dataclass(frozen=True, kw_only=True)
class Component:
    """A part of the noise: the variance of the log ratio of two runs of a cell, whose truth is 1."""

    log_variance: float
    degrees_of_freedom: float | None
    """None: taken as known."""
    repeats: Variance = (0.0, 1.0)
    """The part of it that comes from the spread between repeats, which each comparison knows for itself."""

    @property
    def excess(self) -> float:
        """The variance beyond that of the repeats, 0 at least."""
        return max(0.0, self.log_variance - self.repeats[0])

    @property
    def excess_error(self) -> float:
        """Half the variance of the estimate `excess`, for Satterthwaite's formula."""
        parts = ((self.log_variance, self.degrees_of_freedom), self.repeats)
        return sum(variance**2 / freedom for variance, freedom in parts if freedom is not None)

    @property
    def log_floor(self) -> float:
        """The log ratio that 95 % of pairs of identical runs would stay below, had they very many repeats.

        Where the repeats explain all of their difference, the runs' own share of it is taken to be the standard error
        with which it is known: it is not 0, only not seen. How well the variance is known does not enter: what is
        hardly known would make a wide floor, within which anything is the same. The test of a difference allows for it.
        """
        return TWO_SIDED_QUANTILE * math.sqrt(max(self.excess, math.sqrt(2 * self.excess_error)))


NONE = Component(log_variance=0.0, degrees_of_freedom=None)
"""Of two sides of the same runs: what a run does to both cancels in their ratio. What it does to one of them is in the
spread of several runs; of one run it is not known, so what is said is about that run."""


@dataclass(frozen=True, kw_only=True)
class Noise:
    """By how much identical runs of the cells of one pool differ, and how that is known."""

    source: Source
    between_runs: Component
    shared: Component
    """Of the mean over all cells of two runs."""
    own: Mapping[str, Component] = field(default_factory=dict)
    """By cell_id: what that cell's own differences between runs show."""
    run_ids: tuple[str, ...] = ()
    num_cells: int = 0


def identify_kind(row: Row) -> Hashable:
    return tuple(row[name] for name in KIND_FIELDS)


def list_run_estimates(rows: Rows, metric: Metric, *, include_invalid: bool) -> list[RunEstimate]:
    """Return the centre of each cell in each environment of each run that has two repeats of it or more."""
    groups = group_rows((row for row in rows if row["status"] == "ok"), ("run_id", *KIND_FIELDS))
    sides = (make_side("", group, metric, include_invalid=include_invalid) for group in groups.values())
    return [
        RunEstimate(
            kind=identify_kind(first),
            cell_id=first["cell_id"],
            device=first["device"],
            is_shared=is_shared(first),
            run_id=first["run_id"],
            started_at=first["run_started"],
            machines=side.row["machines"],
            estimate=side.measured.estimate,
        )
        for side in sides
        if side.problem is None
        for first in side.counted[:1]
    ]


def list_differences(estimates: Iterable[RunEstimate]) -> list[RunDifference]:
    """Return the differences between successive identical runs, of cells with at least two repeats in both.

    Successive: a slow drift of the machine over weeks hardly shows in them, and a lasting change shows in one of them.
    """
    kinds: defaultdict[Hashable, list[RunEstimate]] = defaultdict(list)
    for estimate in estimates:
        if estimate.estimate.log_standard_error is not None:
            kinds[estimate.kind].append(estimate)
    differences = []
    for found in kinds.values():
        for before, after in pairwise(sorted(found, key=lambda one: (one.started_at, one.run_id))):
            known = [one.estimate for one in (before, after)]
            repeats = (((one.log_standard_error or 0.0) ** 2, one.degrees_of_freedom or 1.0) for one in known)
            differences.append(
                RunDifference(
                    pool=(before.device, before.machines == after.machines, before.is_shared),
                    runs=(before.run_id, after.run_id),
                    cell_id=before.cell_id,
                    log_difference=math.log(after.estimate.center / before.estimate.center),
                    repeats=add_variances(*repeats),
                )
            )
    return differences


def estimate_noise(differences: Sequence[RunDifference]) -> Noise:
    """Return the noise that `differences` (of one pool, at least one) show.

    A run shifts all of its cells together and each by itself: of each two runs, the mean difference over the cells
    shows the one with a single degree of freedom, the spread around it the other. Satterthwaite's formula puts them
    together. Successive differences share a run, so K of them have 2 K^2 / (3 K - 1) degrees of freedom (J. von
    Neumann and others, Annals of Mathematical Statistics 12, 1941, 153-162: the mean square successive difference).
    """
    by_runs: defaultdict[tuple[str, str], list[RunDifference]] = defaultdict(list)
    by_cell: defaultdict[str, list[RunDifference]] = defaultdict(list)
    for difference in differences:
        by_runs[difference.runs].append(difference)
        by_cell[difference.cell_id].append(difference)
    num_pairs = len(by_runs)
    means = {runs: sum(one.log_difference for one in found) / len(found) for runs, found in by_runs.items()}
    spreads = sum((one.log_difference - means[one.runs]) ** 2 for one in differences)
    num_spreads = len(differences) - num_pairs
    share = sum(1 / len(found) for found in by_runs.values()) / num_pairs
    shared, shared_freedom = sum(mean**2 for mean in means.values()) / num_pairs, _count_freedom(num_pairs)
    own = spreads / num_spreads if num_spreads else 0.0
    repeats = _average_repeats(differences)
    between = Component(
        log_variance=shared + own * (1 - share),
        degrees_of_freedom=max(1.0, add_variances((shared, shared_freedom), (own * (1 - share), num_spreads))[1]),
        repeats=repeats,
    )
    return Noise(
        source="measured",
        between_runs=between,
        shared=Component(
            log_variance=shared, degrees_of_freedom=shared_freedom, repeats=(share * repeats[0], repeats[1])
        ),
        own={
            cell_id: Component(
                log_variance=sum(one.log_difference**2 for one in found) / len(found),
                degrees_of_freedom=_count_freedom(len(found)),
                repeats=_average_repeats(found),
            )
            for cell_id, found in by_cell.items()
        },
        run_ids=tuple(sorted({run for runs in by_runs for run in runs})),
        num_cells=len(by_cell),
    )


def assume_noise(*, is_same_machine: bool) -> Noise:
    """Return the noise of step times where no identical runs show it."""
    variance = 2 * DEFAULT_RUN_DEVIATION**2 + (0.0 if is_same_machine else DEFAULT_MACHINE_DIFFERENCE**2)
    return _make_known("default", variance)


def take_noise(floor: float) -> Noise:
    """Return the noise of runs that are said to differ by less than `floor` (0.05: 5 %) in 95 % of the pairs."""
    return _make_known("given", (math.log1p(floor) / TWO_SIDED_QUANTILE) ** 2)


def _make_known(source: Source, variance: float) -> Noise:
    component = Component(log_variance=variance, degrees_of_freedom=None)
    return Noise(source=source, between_runs=component, shared=component)


def _average_repeats(differences: Sequence[RunDifference]) -> Variance:
    total, freedom = add_variances(*(one.repeats for one in differences))
    return total / len(differences), max(1.0, freedom)


def _count_freedom(num_differences: int) -> float:
    """Return the degrees of freedom of the mean square of successive differences, which share a run."""
    return 2 * num_differences**2 / (3 * num_differences - 1)


@dataclass(frozen=True, kw_only=True)
class RelatedRuns:
    """Other runs that planned a compared cell, and those of which that cannot be known."""

    collections: tuple[Collection, ...] = ()
    passed_over: Mapping[str, str] = field(default_factory=dict)
    """By id, why a run cannot be read, or not verified: it may have measured the compared cells."""

    def list_warnings(self) -> list[str]:
        if not self.passed_over:
            return []
        named = join_some([f"{run_id} ({why})" for run_id, why in self.passed_over.items()], MAX_NAMED, separator="; ")
        runs = count_things(len(self.passed_over), "other run")
        return [f"of {runs} it is not known whether they show the noise, as they cannot be read: {named}"]


OtherPlans = tuple[list[Run], dict[str, str]]
"""The plans of the store's other runs, and of those that cannot be read the reason, by run id."""


def read_other_plans(store: Store, own: set[str]) -> OtherPlans:
    """Return the plans of all runs but `own` and confirmations.

    A confirmation is minutes from its night and has only the cells that were slow: its noise is no other run's.
    """
    others = [run_id for run_id in store.list_run_ids() if run_id not in own and not is_confirmation(run_id)]
    return read_runs(store, others)


def load_related_runs(store: Store, compared: Sequence[Collection], plans: OtherPlans | None = None) -> RelatedRuns:
    """Return the newest MAX_RUNS other runs of the store that planned a cell of `compared`.

    Unreadable ones, and those that were deleted meanwhile, are named instead. `plans`: where they were read before.
    """
    own = {collection.run.run_id for collection in compared}
    others, unreadable = plans or read_other_plans(store, own)
    cell_ids = {planned.cell.cell_id for collection in compared for planned in collection.run.cells}
    related = [
        run
        for run in others
        if run.run_id not in own and any(planned.cell.cell_id in cell_ids for planned in run.cells)
    ]
    read, passed_over = [], dict(unreadable)
    for run in sorted(related, key=lambda run: (run.created_at, run.run_id), reverse=True)[:MAX_RUNS]:
        try:
            read.append(load_run(store, run.run_id))
        except TransientError:
            raise
        except UserError as error:
            passed_over[run.run_id] = str(error)
    return RelatedRuns(collections=tuple(read), passed_over=passed_over)
