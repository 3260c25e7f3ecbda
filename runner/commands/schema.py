"""The command `schema`."""

import json

import typer

from bench.schema import export_json_schema


def schema() -> None:
    """Print the JSON Schema of Cell, Result, Run and Placement."""
    typer.echo(json.dumps(export_json_schema(), indent=2))
