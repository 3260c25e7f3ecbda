"""The command `schema`."""

import json
from pydoc import locate
from typing import Annotated, Any

import typer

from bench.errors import UserError
from runner.terminal import echo

MODELS = {
    "audit": "runner.commands.json_documents.AuditDocument",
    "compare": "collector.versus.question.CompareDocument",
    "cost": "collector.costs.document.CostDocument",
    "doctor": "runner.kubernetes.doctor.DoctorDocument",
    "probe": "runner.probe.ProbeReport",
    "render": "bench.schema.PlannedCell",
    "run": "runner.progress.RunEvent",
    "status": "runner.commands.json_documents.StatusDocument",
    "watch": "runner.commands.json_documents.WatchDocument",
}
"""What a command prints with --json."""
KINDS = ("stored", *MODELS)
STORED = (
    *("Cell", "Result", "Run", "Placement", "NodeFault", "RawRemoval", "Suspicion", "Decision", "Notice", "Alarm"),
    *("CommonWindow", "TenantRecord"),
)
DIALECT = "https://json-schema.org/draft/2020-12/schema"


def schema(
    kind: Annotated[
        str,
        typer.Argument(
            metavar="KIND",
            help=f"One of {', '.join(KINDS)}: the documents in the store, or what that command prints with --json.",
            autocompletion=lambda: list(KINDS),
        ),
    ] = "stored",
) -> None:
    """Print the JSON Schema of the documents in the store, or of what a command prints with --json.

    Of `render` and `run`, each line is such a document.
    """
    if kind not in KINDS:
        raise UserError(f"KIND {kind}: expected one of {', '.join(KINDS)}")
    echo(json.dumps(export_schema(kind), indent=2))


def export_schema(kind: str) -> dict[str, Any]:
    """Return the JSON Schema of `stored`, or of what a command prints with --json; of `render` and `run`, of a line."""
    if kind == "stored":
        from pydantic.json_schema import models_json_schema

        stored: list[Any] = [(locate(f"bench.schema.{name}"), "validation") for name in STORED]
        _, definitions = models_json_schema(stored, title="benchmatrix documents", ref_template="#/$defs/{model}")
        return {"$schema": DIALECT, **definitions}
    model: Any = locate(MODELS[kind])
    return {"$schema": DIALECT, **model.model_json_schema()}
