"""RawRemoval: which raw results of a run were removed on purpose, after the data set had their rows."""

from collections import Counter
from typing import Annotated, Self

from pydantic import Field, model_validator

from bench.schema.document import (
    SCHEMA_VERSION,
    Bytes,
    CellId,
    Count,
    Document,
    Name,
    Seconds,
    StoredDocument,
    Time,
    Version,
)
from bench.schema.failure import Status
from bench.schema.measurement import Verdict


class RemovedResult(Document):
    """A raw result that was removed, with what later commands need to know of it without its rows."""

    cell_id: CellId
    repeat: Count
    attempt: Name
    status: Status
    attempt_seconds: Seconds
    """From the start of the attempt to its end."""
    verdict: Verdict | None = None
    """None: it had none, or was removed by a version that did not record it."""
    is_contaminated: bool | None = None
    """Whether others disturbed the measurement, also where the verdict is a graver one. None: not recorded."""
    num_bytes: Bytes
    version: str
    """Tells it from another object of the same key; see `bench.store.StoredObject`."""


class RawRemoval(StoredDocument):
    """Which raw results of a run were removed on purpose. Their repeats are measured; their rows are in the data set.

    It is written before the first of them is deleted: what it names and what is still there was not deleted yet.
    """

    schema_version: Version = SCHEMA_VERSION
    run_id: Name
    at: Time
    tool_version: str
    policy: str
    """What asked for it, such as `--raw-older-than 90d`."""
    results: Annotated[tuple[RemovedResult, ...], Field(min_length=1)]

    @model_validator(mode="after")
    def _check_results(self) -> Self:
        names = Counter((removed.cell_id, removed.repeat, removed.attempt) for removed in self.results)
        for name, count in names.items():
            if count > 1:
                raise ValueError(f"results: {name} is named {count} times")
        return self
