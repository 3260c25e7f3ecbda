"""The command `schema`."""

import json
from typing import Annotated

import typer

from bench.errors import UserError
from runner.terminal_text import echo

KINDS = (
    "stored", "access", "audit", "batches", "cancel", "claims", "clean", "collect", "compare", "cost",
    "doctor", "forecast", "images", "plot", "probe", "render", "report", "run", "status", "watch",
)  # fmt: skip


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
    from runner.commands.json_documents import list_schemas

    if kind not in KINDS:
        raise UserError(f"KIND {kind}: expected one of {', '.join(KINDS)}")
    echo(json.dumps(list_schemas()[kind](), indent=2))
