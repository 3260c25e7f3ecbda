"""The command `schema`."""

import json
from collections.abc import Callable
from typing import Annotated, Any, Literal

import typer

from bench.schema import export_json_schema

Kind = Literal["stored", "answers", "batches", "compare", "cost", "forecast", "gap"]


def schema(
    kind: Annotated[
        Kind,
        typer.Argument(
            metavar="KIND",
            help="`stored`, or the command whose `--json` it is of: answers, batches, compare, cost, forecast, gap.",
        ),
    ] = "stored",
) -> None:
    """Print the JSON Schema of all documents in the store, or of what a command prints with `--json`."""
    typer.echo(json.dumps(_find_export(kind)(), indent=2))


def _find_export(kind: Kind) -> Callable[[], dict[str, Any]]:
    """Return the function that makes a schema; only its part of the collector is imported."""
    if kind == "answers":
        from collector.answers.document import export_answers_schema as export
    elif kind == "batches":
        from collector.batches.document import export_batches_schema as export
    elif kind == "compare":
        from collector.versus.document import export_compare_schema as export
    elif kind == "cost":
        from collector.costs.document import export_cost_schema as export
    elif kind == "forecast":
        from collector.forecast.document import export_forecast_schema as export
    elif kind == "gap":
        from collector.forecast.gap_document import export_gap_schema as export
    else:
        export = export_json_schema
    return export
