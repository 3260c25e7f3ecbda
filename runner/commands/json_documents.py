"""The JSON documents of commands whose figures have no model."""

from typing import Annotated, Any, Literal

from pydantic import BeforeValidator

from bench.schema import Decision, Document, Suspicion


class NotCountedDocument(Document):
    """A document in the store that does not count."""

    key: str
    """Its key; letters that no text can have are written as `\\udc80`."""
    reason: str


class StatusDocument(Document):
    """How far a run is."""

    status_version: Literal[1] = 1
    run_id: str
    matrix: str
    num_repeats: dict[str, int]
    """Planned repeats by the status of their newest record; `missing` have none, `unreadable` have one that the store
    does not give."""
    is_running: bool | None = None
    """Whether the run goes on, by the lock of this machine; null: it runs on another one or on a cluster, and the store
    does not say."""
    num_by_verdict: dict[str, int] = {}
    """Planned repeats that ended ok, by their verdict."""
    num_skipped_documents: int
    """Documents in the store that do not count."""
    skipped_documents: tuple[NotCountedDocument, ...] = ()
    """The first ten of them; skipped.csv of `benchmatrix report --format csv` has all."""
    node_faults: tuple[str, ...]
    cluster: tuple[str, ...] | None
    """What the cluster says of the run, in lines for people; null: it was not asked (--on)."""


class AuditedRowDocument(Document):
    """A row of a table with its verdicts. Rates are in FLOP/s; null where a figure is unknown."""

    row: int
    name: str
    stated: dict[str, Any]
    """The row as the table has it."""
    verdict: str
    by_arithmetic: str
    by_measurement: str
    samples_per_second: float | None
    flops_per_second: float | None
    most_flops_per_second: float | None
    device: str
    peak_flops_per_second_of_one: float | None
    bound_flops_per_second: float | None
    peak_source: str | None
    share_of_bound: float | None
    arithmetic: tuple[str, ...]
    reasons: tuple[str, ...]


class AuditDocument(Document):
    """What `benchmatrix audit` says of a table."""

    title: str
    source: str
    provenance: str | None
    remark: str | None
    rows: tuple[AuditedRowDocument, ...]


class WatchedChange(Document):
    """A change over nights, and what became of it."""

    state: Literal["pending", "confirmed", "dismissed", "undecided"]
    suspicion: Suspicion
    decision: Decision | None
    channels: Annotated[tuple[str, ...], BeforeValidator(lambda found: tuple(sorted(found)))]
    """Where it was told."""


class WatchDocument(Document):
    """What `benchmatrix watch` knows of the newest night."""

    matrix: str
    night: str
    num_nights: int
    num_cells: int
    num_uncounted: int
    """Planned cells that are not looked at: nothing of them counts."""
    num_too_new: int
    """Cells with too few nights to say anything."""
    changes: tuple[WatchedChange, ...]
    warnings: tuple[str, ...]
