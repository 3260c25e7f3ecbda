"""The command `schema`."""

import json
from typing import Annotated, Literal

import typer

from bench.schema import export_json_schema


def schema(
    kind: Annotated[
        Literal["stored", "compare", "cost"],
        typer.Argument(
            metavar="KIND", help="`stored`, or `compare` or `cost`: what `benchmatrix compare --json` or `cost` prints."
        ),
    ] = "stored",
) -> None:
    """Print the JSON Schema of all documents in the store, of a comparison or of costs."""
    if kind == "compare":
        from collector.versus.document import export_compare_schema

        document = export_compare_schema()
    elif kind == "cost":
        from collector.costs.document import export_cost_schema

        document = export_cost_schema()
    else:
        document = export_json_schema()
    typer.echo(json.dumps(document, indent=2))
