"""The command line: its commands and how errors become exit codes."""

import sys
import traceback

import typer

from bench.errors import TransientError, UserError
from runner.commands.access import access
from runner.commands.answers import answers
from runner.commands.audit import audit
from runner.commands.batches import batches
from runner.commands.cancel import cancel
from runner.commands.claims import claims
from runner.commands.clean import clean
from runner.commands.collect import collect
from runner.commands.compare import compare
from runner.commands.cost import cost
from runner.commands.doctor import doctor
from runner.commands.exit_codes import EXIT_INTERNAL_ERROR, EXIT_TEMPORARY_FAILURE, EXIT_USER_ERROR
from runner.commands.forecast import forecast
from runner.commands.gap import gap
from runner.commands.images import app as images
from runner.commands.plot import plot
from runner.commands.probe import probe
from runner.commands.render import render
from runner.commands.report import report
from runner.commands.run import run
from runner.commands.schema import schema
from runner.commands.setup import setup
from runner.commands.status import status
from runner.commands.version import version
from runner.commands.watch import watch

app = typer.Typer(
    help="Deep-learning benchmarks that anyone can repeat: a matrix of cells in, a report out.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    add_completion=False,
)
for command in (
    run, probe, render, setup, doctor, status, cancel, clean, collect, report, answers, plot, compare, cost, claims,
    audit, access, watch, forecast, gap, batches, schema, version,
):  # fmt: skip
    app.command()(command)
app.add_typer(images, name="images")


def main() -> None:
    """Run the command line. An error of the user is one message on stderr; one of the tool keeps its traceback."""
    try:
        app()
    except UserError as error:
        typer.echo(f"error: {error}", err=True)
        sys.exit(EXIT_TEMPORARY_FAILURE if isinstance(error, TransientError) else EXIT_USER_ERROR)
    except Exception:  # noqa: BLE001  (Python's own exit code would be 1, which says that the run has ended)
        traceback.print_exc()
        sys.exit(EXIT_INTERNAL_ERROR)


if __name__ == "__main__":
    main()
