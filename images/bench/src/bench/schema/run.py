"""Run: what one execution of a matrix set out to do."""

import json
from collections import Counter
from typing import Annotated, Literal, Self

from pydantic import Field, model_validator

from bench.schema.cell import Cell
from bench.schema.document import (
    SCHEMA_VERSION,
    CellId,
    Count,
    Document,
    Integer,
    Name,
    Number,
    PlanDocument,
    PositiveSeconds,
    StoredDocument,
    Time,
    Version,
    hash_text,
)

# Readers hold a row for every planned repeat.
MAX_REPEATS = 10_000


class PlannedCell(PlanDocument):
    """A cell with what the executor needs to know about it."""

    cell: Cell
    repeats: Annotated[int, Field(ge=1, le=MAX_REPEATS)]
    timeout_seconds: PositiveSeconds
    """How long one attempt may take, import included."""


class LeftOutCell(PlanDocument):
    """A cell of the matrix that cannot run where the run takes place."""

    cell: Cell
    reason: str


class Cluster(Document):
    """The cluster of a run, as its user names it."""

    context: str
    """The context of the kubeconfig, or `in-cluster`."""
    namespace: str
    profile: str
    queue: str | None = None
    """Kueue's LocalQueue that the Jobs were handed to."""
    authorities: tuple[Annotated[str, Field(pattern=r"^[0-9a-f]{64}$")], ...] = ()
    """SHA-256 of each certificate that the API server's own is checked by, in hex, sorted. Empty: not recorded."""

    @property
    def has_runner(self) -> bool:
        """Whether the runner is one of its pods, which reaches no other cluster."""
        return self.context == "in-cluster"

    def is_apart_from(self, other: "Cluster") -> bool:
        """Return whether the API servers share no authority, as those of two clusters; False where it is not known."""
        return bool(self.authorities and other.authorities) and not set(self.authorities) & set(other.authorities)


class MissingRepeat(Document):
    """A planned repeat that has no terminal record."""

    cell_id: CellId
    repeat: Count


class Ending(Document):
    """How far a run was when its report was published."""

    published_at: Time
    num_repeats: dict[str, Number]
    """Planned repeats by the status of their newest record; `missing`: without one, `unreadable`: with one that the
    store does not give."""
    missing: tuple[MissingRepeat, ...]
    """Those without a record that can be read, as where the run's deadline passed before they were measured. Empty: the
    run is complete."""


class Run(StoredDocument):
    """What one execution of a matrix set out to do. Progress is its planned repeats minus the result keys present."""

    schema_version: Version = SCHEMA_VERSION
    run_id: Name
    matrix: Name
    created_at: Time
    executor: Literal["local", "kubernetes"]
    cluster: Cluster | None = None
    """Where the Jobs of the run are; null for one on a single machine."""
    hostname: str
    user: str
    tool_version: str
    git_revision: str | None
    cells: tuple[PlannedCell, ...]
    left_out: tuple[LeftOutCell, ...]
    order_seed: Integer | None = None
    """What the order of the cells in each round of repeats was drawn from; null: their order in the matrix, always."""
    ending: Ending | None = None
    """Only in `latest/run.json`: a run's own document is written before anything is measured."""

    @model_validator(mode="after")
    def _check_cells(self) -> Self:
        # Each result would count once for every time that its cell stands here.
        for cell_id, count in Counter(planned.cell.cell_id for planned in self.cells).items():
            if count > 1:
                raise ValueError(f"cells: '{cell_id}' is planned {count} times; keep one, with all its repeats")
        return self

    @property
    def plan_id(self) -> str:
        """8 hex digits, equal for equal plans: same cells, each with as many repeats. Time limits may differ."""
        return hash_text(json.dumps(sorted((planned.cell.cell_id, planned.repeats) for planned in self.cells)))

    @property
    def num_repeats(self) -> int:
        """Planned repeats of all cells."""
        return sum(planned.repeats for planned in self.cells)
