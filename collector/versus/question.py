"""What is asked of runs, and the document that answers it.

Sides are selected by conditions such as `framework=pytorch`, and compared in a quantity. `benchmatrix compare --json`
prints the document; all of its figures are in base units, and `benchmatrix schema compare` prints its JSON Schema.
"""

import difflib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from fnmatch import fnmatchcase
from typing import Any, Literal, NamedTuple

from bench.errors import UserError
from bench.schema import Document
from collector.results.frames import CELL_COLUMNS, PROTOCOL_FIELDS, Row
from collector.units import JOULE, MIB, MILLISECOND, SECOND, Unit, list_some

MAX_LISTED = 8
KEYS: dict[str, str] = {name: name for name in CELL_COLUMNS} | {
    **{"run": "run_id", "gpu": "gpu_name", "cpu": "cpu_model", "driver": "driver_version"},
    **{"version": "framework_version", "python": "python_version", "threads": "num_threads"},
    **{"node-type": "instance_type", "region": "region", "zone": "zone", "spot": "is_spot"},
    **{"host": "hostname", "kernel": "kernel", "revision": "revision", "image": "image"},
}
"""What a condition can name, to the column it is held against: the fields of a cell, and where and how it ran."""
UNKNOWN = "unknown"
"""How a condition names a value that was not recorded, or a field that the cell leaves open (`data_dir`)."""


@dataclass(frozen=True, kw_only=True)
class Condition:
    """Selects the rows that have a value, as `--a framework=jax` does."""

    key: str
    pattern: str
    """With `*`, `?` and `[...]` as in a shell; else the value itself."""

    @property
    def column(self) -> str:
        return KEYS[self.key]

    @property
    def text(self) -> str:
        return f"{self.key}={self.pattern}"

    def holds(self, row: Row) -> bool:
        value = describe_value(row[self.column])
        return value == self.pattern or fnmatchcase(value, self.pattern)


@dataclass(frozen=True, kw_only=True)
class Selection:
    """One side: the rows for which all of the conditions hold."""

    name: str
    """`A` or `B`."""
    conditions: tuple[Condition, ...]

    @property
    def label(self) -> str:
        """The side for people: its run, or its conditions."""
        if [condition.key for condition in self.conditions] == ["run"]:
            return self.conditions[0].pattern
        return ", ".join(condition.text for condition in self.conditions)

    @property
    def cell_fields(self) -> set[str]:
        """The fields of a cell that the conditions name; in these the two cells of a pair may differ."""
        return {condition.column for condition in self.conditions} & set(CELL_COLUMNS)


def select_runs(run_a: str, run_b: str) -> tuple[Selection, Selection]:
    a, b = (Condition(key="run", pattern=run_id) for run_id in (run_a, run_b))
    return Selection(name="A", conditions=(a,)), Selection(name="B", conditions=(b,))


def select(rows: Iterable[Row], conditions: Sequence[Condition]) -> list[Row]:
    return [row for row in rows if all(condition.holds(row) for condition in conditions)]


def parse_condition(text: str, option: str) -> Condition:
    """Return the condition that `text` (`KEY=VALUE`) holds; UserError, naming `option`, where it is none."""
    key, equals, pattern = text.partition("=")
    if not equals or not key or not pattern:
        raise UserError(f"{option} {text}: expected KEY=VALUE, such as `framework=pytorch` or `driver=580.*`")
    if key not in KEYS:
        nearest = difflib.get_close_matches(key, KEYS, n=1, cutoff=0.0)[0]
        raise UserError(f"{option} {text}: '{key}' is no key; did you mean '{nearest}'? There are {', '.join(KEYS)}")
    return Condition(key=key, pattern=pattern)


def check_not_empty(option: str, conditions: Sequence[Condition], rows: Sequence[Row], left: Sequence[Row]) -> None:
    """Raise UserError, naming the values that there are, if the conditions of `option` leave none of the rows."""
    if left or not rows:
        return
    advice = "" if option == "--where" else f"; {suggest_sides(rows)}"
    for condition in conditions:
        if not select(rows, [condition]):
            values = " or ".join(list_values(rows, condition.column)) or "not recorded"
            raise UserError(
                f"{option} {condition.text}: no repeat has it; {condition.key} is {values} in these runs{advice}"
            )
    label = ", ".join(condition.text for condition in conditions)
    raise UserError(f"{option} ({label}): no repeat fits all of its conditions together{advice or '; leave one out'}")


def suggest_sides(rows: Sequence[Row]) -> str:
    """Return in which fields the cells of the rows differ, with the options that compare two values of the first."""
    values = {name: list_values(rows, name) for name in CELL_COLUMNS if name not in PROTOCOL_FIELDS}
    axes = {name: own for name, own in values.items() if len(own) > 1}
    if not axes:
        return "their cells differ in nothing that could be compared"
    named = ", ".join(f"{name} ({', '.join(own)})" for name, own in axes.items())
    field, (one, other, *_) = next(iter(axes.items()))
    return f"their cells differ in {named}: try --a {field}={one} --b {field}={other}"


def list_values(rows: Iterable[Row], column: str) -> list[str]:
    """Return the values of a column, numbers before texts, MAX_LISTED at most; what was not recorded comes last."""
    found = {row[column] for row in rows}
    known = sorted(found - {None}, key=lambda value: (isinstance(value, str), value))
    return list_some([describe_value(value) for value in (*known, *({None} & found))], MAX_LISTED)


def describe_value(value: object) -> str:
    """Return a value as a condition names it: `64`, `2.5`, `true`, `unknown`."""
    if value is None:
        return UNKNOWN
    if isinstance(value, bool):
        return str(value).lower()
    return f"{value:g}" if isinstance(value, float) else str(value)


PROGRAM_FIELDS = ("framework", "mode")
"""With what a cell is computed: whoever names one of the two asks for programs, and a mode is that of its framework.
The other fields of a cell say what is computed; to let one of them differ unasked would answer another question."""


def infer_fields(rows_a: Sequence[Row], rows_b: Sequence[Row], named: set[str]) -> dict[str, tuple[str, str]]:
    """Return the PROGRAM_FIELDS that no condition names and of which each side has exactly one value, another one."""
    found = {}
    for name in PROGRAM_FIELDS:
        values = [{describe_value(row[name]) for row in rows} for rows in (rows_a, rows_b)]
        if name not in named and all(len(own) == 1 for own in values) and values[0] != values[1]:
            found[name] = (values[0].pop(), values[1].pop())
    return found if named & set(PROGRAM_FIELDS) else {}


MetricName = Literal[
    "step-time", "time-per-sample", "pipelined-step-time", "peak-memory", "energy", "cold-start", "warm-start"
]


@dataclass(frozen=True, kw_only=True)
class Metric:
    """What is compared of each repeat; the defaults are those of a time."""

    name: MetricName
    title: str
    columns: Mapping[str, str]
    """Device to the column of the results; a device that is not in it has no such figure."""
    unit: Unit = MILLISECOND
    base_unit: str = "seconds"
    worse: str = "slower"
    better: str = "faster"
    is_per_sample: bool = False
    """Whether the column is of a whole step, which is divided by the cell's batch."""
    has_intervals: bool = True
    """Whether repeats scatter as independent measurements do, so that Student's t applies. Memory does not: its
    repeats are mostly equal, and else differ by a whole workspace."""
    is_time: bool = True
    """Whether the default noise between runs is that of this metric."""
    is_of_some: bool = False
    """Whether only some repeats of a cell may have it, which then stand for the cell."""
    counts_all_tenants: bool = False
    """Whether it is of all tenants of a cell together; else a repeat has that of its first tenant alone."""

    @property
    def reading(self) -> str:
        return f"B / A: {self.title} of B over that of A; above 1, B is {self.worse}."

    def name_tenants(self) -> "Metric":
        """Return the metric as it is called where cells have tenants: the title says whose it is."""
        whose = "all tenants'" if self.counts_all_tenants else "first tenant's"
        return replace(self, title=f"{whose} {self.title}")

    def read(self, row: Mapping[str, Any]) -> float | None:
        """Return the figure of a repeat in base units; None: not measured, or the device has none."""
        column = self.columns.get(row["device"])
        if column is None or row[column] is None:
            return None
        return float(row[column]) / (row["batch_size"] if self.is_per_sample else 1)


STARTS: dict[MetricName, str] = {"cold-start": "cold_start_seconds", "warm-start": "warm_start_seconds"}
_STEP = {"cpu": "center_step_seconds", "gpu": "center_step_seconds"}
METRICS: dict[MetricName, Metric] = {
    metric.name: metric
    for metric in (
        Metric(name="step-time", title="step time", columns=_STEP),
        Metric(
            name="time-per-sample",
            title="time per sample (step time / batch)",
            columns=_STEP,
            unit=replace(MILLISECOND, label="ms per sample"),
            is_per_sample=True,
        ),
        Metric(name="pipelined-step-time", title="pipelined step time", columns={"gpu": "pipelined_step_seconds"}),
        Metric(
            name="peak-memory",
            title="peak memory",
            columns={"cpu": "peak_rss_bytes", "gpu": "peak_memory_allocated_bytes"},
            unit=MIB,
            base_unit="bytes",
            worse="larger",
            better="smaller",
            has_intervals=False,
            is_time=False,
        ),
        Metric(
            name="energy",
            title="energy per sample",
            columns={"cpu": "cpu_energy_per_sample_joules", "gpu": "gpu_energy_per_sample_joules"},
            unit=replace(JOULE, label="J per sample"),
            base_unit="joules",
            worse="higher",
            better="lower",
            is_time=False,
            counts_all_tenants=True,
        ),
        *(
            Metric(
                name=name,
                title=f"{name.replace('-', ' ')} (import, build and first step)",
                columns=dict.fromkeys(("cpu", "gpu"), column),
                unit=SECOND,
                is_time=False,
                is_of_some=True,
            )
            for name, column in STARTS.items()
        ),
    )
}
"""Of a larger batch a step takes longer and yet is worth more: where no metric is named and the batches of the sides
differ, they are compared by the time for one sample."""


@dataclass(frozen=True, kw_only=True)
class Question:
    """What is asked of the runs."""

    a: Selection
    b: Selection
    where: tuple[Condition, ...] = ()
    """What both sides are restricted to."""
    metric: Metric | None = None
    """None: the step time, and where the batches of the sides differ the time per sample."""
    floor: float | None = None
    """The relative difference that the user takes for none."""
    include_invalid: bool = False
    fails_undecided: bool = False
    """Whether undecided cells give exit code 2."""


CellVerdict = Literal["worse", "better", "same", "undecided", "fails", "not comparable"]
ExitCode = Literal[0, 1, 2]
ReasonCode = Literal[
    "failed", "unsound", "not-measured", "zero", "several-environments", "one-repeat", "machines", "noise-unknown",
    "floor-too-wide", "more-runs", "more-machines", "more-repeats", "runs-vary", "near-floor", "near-one",
]  # fmt: skip
Source = Literal["measured", "default", "given"]


class Reason(NamedTuple):
    """Why a pair is not comparable or fails, or what would decide it; `collector.versus.words` has the sentences."""

    code: ReasonCode
    values: Mapping[str, object] = {}


class MetricDescription(Document):
    """What is compared."""

    name: MetricName
    title: str
    base_unit: str
    reading: str
    """What the ratio is, and which direction is worse."""
    worse: str
    """What B is called where it is worse: `slower`, `larger`, `higher`."""
    better: str


class Side(Document):
    """One side of the comparison."""

    label: str
    """The run, or the conditions."""
    run_ids: tuple[str, ...]
    num_planned: int
    """Repeats; of those without a result, or with one that the store does not give, `warnings` tell."""
    num_ok: int


class EnvironmentDifference(Document):
    """A fact of the environments that is not the same on both sides."""

    fact: str
    a: tuple[str, ...]
    """The values of the repeats of A that ended ok; empty: not recorded."""
    b: tuple[str, ...]
    is_hardware: bool


class NoiseDescription(Document):
    """By how much identical runs differ, and how that is known."""

    device: str
    is_same_machine: bool
    is_shared: bool = False
    """Whether it is that of cells that shared their device with other tenants."""
    source: Source
    floor: float
    """The relative difference that 95 % of pairs of identical runs stay below: 0.03 is 3 %."""
    run_ids: tuple[str, ...]
    """The identical runs that it was measured from."""
    num_cells: int


class JudgedRatio(Document):
    """A ratio, B over A, with what is said of it."""

    label: str
    verdict: CellVerdict
    ratio: float | None = None
    """None where it is not comparable."""
    ratio_low: float | None = None
    """The 95 % interval of this ratio alone by its repeats, which decides whether it is the same within a floor; None
    where repeats have none, as with memory."""
    ratio_high: float | None = None
    joint_low: float | None = None
    """The 95 % interval that holds together with those of its family, and of two runs allows for what identical runs
    differ by: `worse` and `better` are ratios where it excludes 1, beyond a floor. None without a test. Of two runs all
    ratios are one family; of two sides of the same runs the cells are one, and `together` another."""
    joint_high: float | None = None
    p_value: float | None = None
    """Two-sided, of a true ratio of 1; of two runs, repeats and runs are both taken to vary."""
    p_adjusted: float | None = None
    """After Bonferroni's adjustment over its family: below 0.05 where the joint interval excludes 1."""
    floor: float | None = None
    """The floor, as a relative difference; None where no floor decides."""


class CellComparison(JudgedRatio):
    """What is said of one pair of cells; its label is what both share."""

    name_a: str = "A"
    """What A's cell is where the two differ: `PyTorch eager`; `A` where they are equal."""
    name_b: str = "B"
    cell_id_a: str
    cell_id_b: str
    reasons: tuple[ReasonCode, ...] = ()
    """Why it is not comparable or fails, or what would decide it; two where A has a reason, and B."""
    reason: str
    """The same in words."""
    value_a: float | None = None
    value_b: float | None = None
    num_repeats_a: int = 0
    """Repeats that count."""
    num_repeats_b: int = 0
    scope: str = ""
    """On which machines the ratio rests."""
    notes: tuple[str, ...] = ()


class GroupComparison(JudgedRatio):
    """The geometric mean of the ratios of many cells."""

    num_cells: int


class UnpairedCell(Document):
    """A cell that the other side has not."""

    label: str
    cell_id: str


class CompareDocument(Document):
    """A comparison of two sides, cell by cell."""

    compare_version: Literal[1] = 1
    metric: MetricDescription
    a: Side
    b: Side
    inferred: dict[str, tuple[str, str]] = {}
    """The fields that the sides differ in besides those that their conditions name, with the value of A and of B."""
    is_between_machines: bool
    """The hardware differs: the ratios are of machines."""
    environments_known: bool
    """Whether both sides have a repeat that ended ok, so that `differences` says what differs."""
    differences: tuple[EnvironmentDifference, ...]
    noise: tuple[NoiseDescription, ...]
    is_within_runs: bool
    """Whether both sides are of the same runs: verdicts are about these runs, and have no floor but a given one."""
    cells: tuple[CellComparison, ...]
    together: tuple[GroupComparison, ...]
    only_in_a: tuple[UnpairedCell, ...]
    only_in_b: tuple[UnpairedCell, ...]
    warnings: tuple[str, ...]
    counts: dict[str, int]
    """Cells by verdict."""
    exit_code: ExitCode
    conclusion: str
    """The exit code in a sentence."""
