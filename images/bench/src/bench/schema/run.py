"""Run: what one execution of a matrix set out to do."""

import json
from typing import Literal

from pydantic import AwareDatetime

from bench.schema.cell import Cell
from bench.schema.document import (
    SCHEMA_VERSION,
    CellId,
    Count,
    Document,
    Name,
    Number,
    PositiveSeconds,
    Version,
    hash_text,
)


class PlannedCell(Document):
    """A cell with what the executor needs to know about it."""

    cell: Cell
    repeats: Count
    timeout_seconds: PositiveSeconds
    """How long one attempt may take, import included."""


class LeftOutCell(Document):
    """A cell of the matrix that cannot run where the run takes place."""

    cell: Cell
    reason: str


class Cluster(Document):
    """The cluster of a run, as its user names it."""

    context: str
    """Of the kubeconfig, or `in-cluster`."""
    namespace: str
    profile: str
    queue: str | None = None
    """Kueue's LocalQueue that the Jobs were handed to."""


class MissingRepeat(Document):
    """A planned repeat that has no terminal record."""

    cell_id: CellId
    repeat: Count


class Ending(Document):
    """How far a run was when its report was published."""

    published_at: AwareDatetime
    num_repeats: dict[str, Number]
    """Planned repeats by the status of their newest record; `missing`: without one."""
    missing: tuple[MissingRepeat, ...]
    """Those without a record: the run's deadline passed before they were measured. Empty: the run is complete."""


class Run(Document):
    """What one execution of a matrix set out to do. Progress is its planned repeats minus the result keys present."""

    schema_version: Version = SCHEMA_VERSION
    run_id: Name
    matrix: Name
    created_at: AwareDatetime
    executor: Literal["local", "kubernetes"]
    cluster: Cluster | None = None
    """Where the Jobs of the run are; null for one on a single machine."""
    hostname: str
    user: str
    tool_version: str
    git_revision: str | None
    cells: tuple[PlannedCell, ...]
    left_out: tuple[LeftOutCell, ...]
    ending: Ending | None = None
    """Only in `latest/run.json`: a run's own document is written before anything is measured."""

    @property
    def plan_id(self) -> str:
        """8 hex digits, equal for equal plans: same cells, each with as many repeats. Time limits may differ."""
        return hash_text(json.dumps(sorted((planned.cell.cell_id, planned.repeats) for planned in self.cells)))

    @property
    def num_repeats(self) -> int:
        """Planned repeats of all cells."""
        return sum(planned.repeats for planned in self.cells)
