"""The command `schema`."""

import json

import typer

from bench.schema import export_json_schema


def schema() -> None:
    """Print the JSON Schema of all documents in the store."""
    typer.echo(json.dumps(export_json_schema(), indent=2))
