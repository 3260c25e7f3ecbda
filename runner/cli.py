"""The command line: words in, the work of the runner's modules out; what reads a store is in `runner.reporting`.

Exit codes: 0 all well, 1 a repeat did not end well or is missing, or a check of `doctor` failed, 2 a fault of the user,
70 a fault of the tool, 75 store or API server are away, 130 interrupted.
"""

import json
import sys
import traceback

import typer

from bench.errors import PassingError, UserError
from bench.schema import export_json_schema
from runner import __version__
from runner.cluster_commands import cancel, clean, doctor, setup
from runner.command_line import EXIT_FAULT, EXIT_PASSING, EXIT_USER_ERROR
from runner.image_commands import app as image_app
from runner.probe_command import probe
from runner.render_command import render
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
        sys.exit(EXIT_PASSING if isinstance(error, PassingError) else EXIT_USER_ERROR)
    except Exception:  # noqa: BLE001  (Python's own exit code would be 1, which says that the run has ended)
        traceback.print_exc()
        sys.exit(EXIT_FAULT)


if __name__ == "__main__":
    main()
