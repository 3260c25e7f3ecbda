"""The command `schema`."""

import json
from typing import Annotated

import typer

from bench.errors import UserError
from runner.terminal import echo

KINDS = ("stored", "audit", "compare", "cost", "doctor", "probe", "render", "run", "status", "watch")


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
    from runner.commands.json_documents import export_schema

    if kind not in KINDS:
        raise UserError(f"KIND {kind}: expected one of {', '.join(KINDS)}")
    echo(json.dumps(export_schema(kind), indent=2))
