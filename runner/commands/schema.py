"""The command `schema`."""

import json
from typing import Annotated, Literal

import typer

from bench.schema import export_json_schema


def schema(
    kind: Annotated[
        Literal["stored", "compare"],
        typer.Argument(metavar="KIND", help="`stored`, or `compare`: what `benchmatrix compare --json` prints."),
    ] = "stored",
) -> None:
    """Print the JSON Schema of all documents in the store, or of a comparison."""
    if kind == "compare":
        from collector.versus.document import export_compare_schema

        document = export_compare_schema()
    else:
        document = export_json_schema()
    typer.echo(json.dumps(document, indent=2))
