"""The document that `benchmatrix compare --json` prints. All of its figures are in base units; `benchmatrix schema
compare` prints its JSON Schema.
"""

from typing import Any, Literal

from bench.schema import Document
from collector.versus.selections import MetricName

CellVerdict = Literal["worse", "better", "same", "undecided", "fails", "not comparable"]
ExitCode = Literal[0, 1, 2]
Source = Literal["measured", "default", "given"]
ADVISES_REPEATS = "repeats a side would decide it"
"""How the reason ends that proposes a number of repeats."""


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
    reason: str
    """Why it is not comparable or fails, or what would decide it."""
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
    nearest: str
    """In which fields the most similar cell of the other side differs; empty if none is similar."""


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


def export_compare_schema() -> dict[str, Any]:
    """Return the JSON Schema of CompareDocument."""
    schema = CompareDocument.model_json_schema()
    return {"$schema": "https://json-schema.org/draft/2020-12/schema", **schema}
