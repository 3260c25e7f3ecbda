"""The command line: words in, the work of the runner's modules out; what reads a store is in `runner.reporting`.

Exit codes: 0 all well, 1 a repeat did not end well or is missing, 2 a fault of the user, 130 interrupted.
"""

import json
import sys
from typing import Annotated

import typer

from bench.errors import UserError
from bench.schema import export_json_schema
from runner import __version__
from runner.command_line import EXIT_USER_ERROR, MatrixArgument
from runner.matrix import load_matrix
from runner.probe_command import probe
from runner.reporting import claims, collect, forecast, report, status
from runner.run_command import run

app = typer.Typer(
    help="Deep-learning benchmarks that anyone can repeat: a matrix of cells in, a report out.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    add_completion=False,
)

app.command()(run)
app.command()(probe)


@app.command()
def render(
    matrix: MatrixArgument,
    as_json: Annotated[
        bool, typer.Option("--json", help="Every field of every cell: one JSON document per line.")
    ] = False,
) -> None:
    """Print the cells of MATRIX; measure nothing."""
    loaded = load_matrix(matrix)
    if as_json:
        for planned in loaded.cells:
            typer.echo(planned.model_dump_json())
        return
    for planned in loaded.cells:
        typer.echo(f"{planned.cell.cell_id}  repeats={planned.repeats} timeout_seconds={planned.timeout_seconds:g}")
    repeats = sum(planned.repeats for planned in loaded.cells)
    typer.echo(f"{loaded.source}: {len(loaded.cells)} cells, {repeats} repeats", err=True)


for command in (status, collect, report, claims, forecast):
    app.command()(command)


@app.command()
def schema() -> None:
    """Print the JSON Schema of Cell, Result and Run."""
    typer.echo(json.dumps(export_json_schema(), indent=2))


@app.command()
def version() -> None:
    """Print the version of the tool."""
    typer.echo(__version__)


def main() -> None:
    """Run the command line. A fault of the user is one message on stderr and exit code 2."""
    try:
        app()
    except UserError as error:
        typer.echo(f"error: {error}", err=True)
        sys.exit(EXIT_USER_ERROR)


if __name__ == "__main__":
    main()
