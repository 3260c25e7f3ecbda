"""The command line: the commands and what they exit with.

Exit codes: 0 all well, 1 a repeat did not end well or is missing, or a check of `doctor` failed, 2 a fault of the user,
70 a fault of the tool, 75 store or API server are away, 130 interrupted.
"""

import json
import sys
import traceback

import typer

from bench.errors import TransientError, UserError
from bench.schema import export_json_schema
from runner import __version__
from runner.commands.cluster import cancel, clean, doctor, setup
from runner.commands.images import app as image_app
from runner.commands.options import EXIT_FAULT, EXIT_TEMPORARY_FAILURE, EXIT_USER_ERROR
from runner.commands.probe import probe
from runner.commands.render import render
from runner.commands.reporting import claims, collect, forecast, report, status
from runner.commands.run import run

app = typer.Typer(
    help="Deep-learning benchmarks that anyone can repeat: a matrix of cells in, a report out.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    add_completion=False,
)

app.command()(run)
app.command()(probe)


app.add_typer(image_app, name="images")
for command in (render, setup, doctor, status, cancel, clean, collect, report, claims, forecast):
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
    """Run the command line. A fault of the user is one message on stderr; one of the tool keeps its traceback."""
    try:
        app()
    except UserError as error:
        typer.echo(f"error: {error}", err=True)
        sys.exit(EXIT_TEMPORARY_FAILURE if isinstance(error, TransientError) else EXIT_USER_ERROR)
    except Exception:  # noqa: BLE001  (Python's own exit code would be 1, which says that the run has ended)
        traceback.print_exc()
        sys.exit(EXIT_FAULT)


if __name__ == "__main__":
    main()
