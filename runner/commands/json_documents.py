"""Define the JSON documents of commands that read something, and list the schemas of all kinds."""

from collections.abc import Callable
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, TypeAdapter

from bench.schema import Decision, Document, Suspicion
from runner.commands.change_documents import (
    ImagesDocument,
    JobsDocument,
    RawResultsDocument,
    ShippedDocument,
)

DRAFT = "https://json-schema.org/draft/2020-12/schema"


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
    seconds_left: float | None = None
    """About how long the remaining repeats take; null: the run does not go on here, or none has ended yet."""
    num_by_verdict: dict[str, int] = {}
    """Planned repeats that ended ok, by their verdict."""
    num_skipped_documents: int
    """Documents in the store that do not count."""
    skipped_documents: tuple[NotCountedDocument, ...] = ()
    """The first ten of them; skipped.csv of `benchmatrix collect` has all."""
    node_faults: tuple[str, ...]
    cluster: tuple[str, ...] | None
    """What the cluster says of the run, in lines for people; null: it was not asked (--on)."""


class DoctorFinding(Document):
    """What was found of one precondition."""

    check: str
    state: Literal["ok", "warning", "failed"]
    """`warning`: it could not be checked, or a run may go well without it."""
    message: str
    hint: str
    """How to fix it; empty if the check passed."""
    details: tuple[str, ...]


class DoctorDocument(Document):
    """What `benchmatrix doctor` found."""

    context: str
    namespace: str
    profile: str
    findings: tuple[DoctorFinding, ...]


class FilesDocument(Document):
    """The files that a command wrote about a run."""

    files_version: Literal[1] = 1
    run_id: str
    files: tuple[str, ...]
    """Paths, relative to the working directory where they were asked for so."""


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


class AccessChoice(BaseModel):
    """What came of one alternative under one policy. Further keys are figures: center, low and high."""

    model_config = ConfigDict(extra="allow")

    alternative: str
    policy: str
    is_over_budget: bool
    num_jobs: int
    num_unended: int
    by_group: dict[str, dict[str, dict[str, float | None]]]


class AccessDocument(Document):
    """What `benchmatrix access` answers: times in hours, money in `currency`."""

    question: str
    answer: str
    reasons: tuple[str, ...]
    currency: str
    weeks: int
    seed: int
    choices: tuple[AccessChoice, ...]
    left_out: tuple[dict[Literal["choice", "reason"], str], ...]
    assumptions: tuple[dict[Literal["standing", "text"], str], ...]
    warnings: tuple[str, ...]
    scenario: dict[str, Any]


class FindingDocument(Document):
    """Says what follows from the figures of a claim and is part of no verdict."""

    name: str
    reason: str


class ClaimDocument(Document):
    """Says of a claim what follows from its own figures, and what the runs show of it."""

    statement: str
    provenance: str
    """Who reports it."""
    verdict: str
    """One of the verdicts of docs/verdicts.md."""
    reason: str
    findings: tuple[FindingDocument, ...]
    arithmetic: tuple[str, ...]
    measured: tuple[str, ...]


class ClaimsDocument(Document):
    """What runs show about each of the study's claims."""

    claims_version: Literal[1] = 1
    run_ids: tuple[str, ...]
    claims: tuple[ClaimDocument, ...]


class WatchedChange(Document):
    """A change over nights, and what became of it."""

    state: Literal["pending", "confirmed", "dismissed", "undecided"]
    suspicion: Suspicion
    decision: Decision | None
    channels: tuple[str, ...]
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


def list_schemas() -> dict[str, Callable[[], dict[str, Any]]]:
    """Return what makes the schema of each kind; a kind is `stored`, or the command that prints it."""
    return {
        "stored": _export_stored,
        "access": lambda: _export_either(AccessDocument | ShippedDocument),
        "audit": lambda: _export_either(AuditDocument | ShippedDocument),
        "batches": _export_batches,
        "cancel": lambda: _export(JobsDocument),
        "claims": lambda: _export(ClaimsDocument),
        "clean": lambda: _export_either(JobsDocument | RawResultsDocument),
        "collect": lambda: _export(FilesDocument),
        "compare": _export_compare,
        "cost": _export_cost,
        "doctor": lambda: _export(DoctorDocument),
        "forecast": _export_forecast,
        "images": lambda: _export(ImagesDocument),
        "plot": lambda: _export(FilesDocument),
        "probe": _export_probe,
        "render": _export_render,
        "report": lambda: _export(FilesDocument),
        "run": _export_run,
        "status": lambda: _export(StatusDocument),
        "watch": lambda: _export(WatchDocument),
    }


def _export(model: type[BaseModel]) -> dict[str, Any]:
    return {"$schema": DRAFT, **model.model_json_schema()}


def _export_either(models: Any) -> dict[str, Any]:
    """Return the schema of a union of models."""
    return {"$schema": DRAFT, **TypeAdapter(models).json_schema()}


def _export_stored() -> dict[str, Any]:
    from bench.schema import export_json_schema

    return export_json_schema()


def _export_batches() -> dict[str, Any]:
    from collector.batches.document import export_batches_schema

    return export_batches_schema()


def _export_forecast() -> dict[str, Any]:
    from collector.forecast.words import ForecastDocument

    return _export(ForecastDocument)


def _export_compare() -> dict[str, Any]:
    from collector.versus.document import export_compare_schema

    return export_compare_schema()


def _export_cost() -> dict[str, Any]:
    from collector.costs.document import export_cost_schema

    return export_cost_schema()


def _export_probe() -> dict[str, Any]:
    from runner.probe.search import ProbeReport

    return _export(ProbeReport)


def _export_render() -> dict[str, Any]:
    from bench.schema import PlannedCell

    return _export(PlannedCell)


def _export_run() -> dict[str, Any]:
    from runner.run_events import RunEvent

    return _export(RunEvent)
