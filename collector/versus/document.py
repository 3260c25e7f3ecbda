"""The document that `benchmatrix compare --json` prints. All of its figures are in base units; `benchmatrix schema
compare` prints its JSON Schema.
"""

from typing import Any, Literal

from bench.schema import Document
from collector.versus.noise import Source
from collector.versus.selections import MetricName

CellVerdict = Literal["worse", "better", "same", "undecided", "fails", "not comparable"]
ExitCode = Literal[0, 1, 2]


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
    conditions: tuple[str, ...]
    run_ids: tuple[str, ...]
    num_planned: int
    num_ok: int
    num_missing: int
    """Planned repeats without a result: the run is still going on, or was cut off."""
    num_unreadable: int = 0
    """Planned repeats whose result the store does not give."""


class InferredField(Document):
    """A field of a cell that no condition names, in which the sides differ: each has one value."""

    field: str
    a: str
    b: str


class EnvironmentDifference(Document):
    """A fact of the environments that is not the same on both sides."""

    fact: str
    a: tuple[str, ...]
    """The values of the repeats of A that ended ok; empty: not recorded."""
    b: tuple[str, ...]
    is_hardware: bool
    is_of_one_framework: bool = False
    """Whether it is a setting or a package that only the framework of one side has."""


class NoiseDescription(Document):
    """By how much identical runs differ, and how that is known."""

    device: str
    is_same_machine: bool
    is_same_run: bool
    is_shared: bool = False
    """Whether it is that of cells that shared their device with other tenants."""
    source: Source
    floor: float
    """The relative difference that 95 % of pairs of identical runs stay below: 0.03 is 3 %. Of two sides of the same
    runs (`is_same_run`) it decides nothing, unless it was given."""
    run_ids: tuple[str, ...]
    """The identical runs that it was measured from."""
    num_cells: int


class Family(Document):
    """Ratios whose intervals hold together: the chance that any of them is wrongly called different is at most 5 %."""

    num_cells: int
    num_groups: int
    """Geometric means of cells, those of `together`."""


class CellComparison(Document):
    """What is said of one pair of cells."""

    label: str
    """What both cells share."""
    name_a: str = "A"
    """What A's cell is where the two differ: `PyTorch eager`; `A` where they are equal."""
    name_b: str = "B"
    cell_id_a: str
    cell_id_b: str
    verdict: CellVerdict
    reason: str
    """Why it is not comparable or fails, or what would decide it."""
    ratio: float | None = None
    """B over A; None where it is not comparable."""
    ratio_low: float | None = None
    """The 95 % interval of this ratio alone by its repeats, which decides whether it is the same within a floor; None
    where repeats have none, as with memory."""
    ratio_high: float | None = None
    joint_low: float | None = None
    """The 95 % interval that holds together with those of the family, and of two runs allows for what identical runs
    differ by: `worse` and `better` are ratios where it excludes 1, beyond a floor. None without a test."""
    joint_high: float | None = None
    p_value: float | None = None
    """Two-sided, of a true ratio of 1; of two runs, repeats and runs are both taken to vary."""
    p_adjusted: float | None = None
    """After Bonferroni's adjustment over its family: below 0.05 where the joint interval excludes 1."""
    floor: float | None = None
    """The floor of this pair, as a relative difference; None where no floor decides."""
    value_a: float | None = None
    value_b: float | None = None
    num_repeats_a: int = 0
    """Repeats that count."""
    num_repeats_b: int = 0
    scope: str = ""
    """On which machines the ratio rests."""
    notes: tuple[str, ...] = ()


class GroupComparison(Document):
    """The geometric mean of the ratios of many cells."""

    label: str
    num_cells: int
    verdict: CellVerdict
    ratio: float
    ratio_low: float
    ratio_high: float
    joint_low: float
    joint_high: float
    p_value: float
    p_adjusted: float
    floor: float | None


class UnpairedCell(Document):
    """A cell that the other side has not."""

    label: str
    cell_id: str
    nearest: str
    """In which fields the most similar cell of the other side differs; empty if none is similar."""


class AmbiguousCells(Document):
    """Cells of a side that fit the same cell of the other: none of them is compared."""

    side: Literal["A", "B"]
    label: str
    cell_ids: tuple[str, ...]
    differ_in: dict[str, tuple[str, ...]]


class CompareDocument(Document):
    """A comparison of two sides, cell by cell."""

    compare_version: Literal[1] = 1
    metric: MetricDescription
    a: Side
    b: Side
    inferred: tuple[InferredField, ...] = ()
    """The fields that the sides differ in besides those that their conditions name."""
    is_between_machines: bool
    """The hardware differs: the ratios are of machines."""
    environments_known: bool
    """Whether both sides have a repeat that ended ok, so that `differences` says what differs."""
    differences: tuple[EnvironmentDifference, ...]
    noise: tuple[NoiseDescription, ...]
    is_within_runs: bool
    """Whether both sides are of the same runs: verdicts are about these runs, and have no floor but a given one."""
    families: tuple[Family, ...]
    """The cells and `together`, in this order, by which of them were judged together; empty: no p-values."""
    cells: tuple[CellComparison, ...]
    together: tuple[GroupComparison, ...]
    only_in_a: tuple[UnpairedCell, ...]
    only_in_b: tuple[UnpairedCell, ...]
    ambiguous: tuple[AmbiguousCells, ...]
    warnings: tuple[str, ...]
    counts: dict[str, int]
    """Cells by verdict."""
    exit_code: ExitCode
    conclusion: str
    """The exit code in a sentence."""


def export_compare_schema() -> dict[str, Any]:
    """Return the JSON Schema of CompareDocument."""
    schema = CompareDocument.model_json_schema()
    return {"$schema": "https://json-schema.org/draft/2020-12/schema", **schema}
