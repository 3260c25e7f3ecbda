"""The command line: words in, the work of the runner's modules out; what reads a store is in `runner.reporting`.

Exit codes: 0 all well, 1 a repeat did not end well or is missing, 2 a fault of the user, 130 interrupted.
"""

import json
import shlex
import shutil
import sys
from pathlib import Path
from typing import Annotated, get_args

import typer

from bench.errors import UserError
from bench.schema import Framework, Run, export_json_schema
from bench.store import Store
from runner import __version__
from runner.command_line import (
    CONSOLE,
    EXIT_INTERRUPTED,
    EXIT_USER_ERROR,
    OutputOption,
    PythonOption,
    StoreOption,
)
from runner.local_run import LocalRun, end_like_interrupt, parse_interpreters
from runner.matrix import list_builtin_matrices, load_matrix
from runner.probe_command import probe
from runner.reporting import claims, collect, finish_run, forecast, report, status

app = typer.Typer(
    help="Deep-learning benchmarks that anyone can repeat: a matrix of cells in, a report out.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    add_completion=False,
)

MatrixArgument = Annotated[
    str, typer.Argument(help=f"A built-in matrix ({', '.join(list_builtin_matrices())}) or the path of a YAML file.")
]


@app.command()
def run(
    matrix: MatrixArgument,
    on: Annotated[str, typer.Option("--on", help="Where the cells run; so far only `local`: this machine.")] = "local",
    store: StoreOption = "file://results",
    run_id: Annotated[str | None, typer.Option(help="Name a new run, or go on with the run of this name.")] = None,
    new: Annotated[
        bool, typer.Option("--new", help="Start a new run even if one of this matrix is unfinished.")
    ] = False,
    retry_failed: Annotated[bool, typer.Option("--retry-failed", help="Measure again what did not end well.")] = False,
    python: PythonOption = None,
    output: OutputOption = None,
    report: Annotated[bool, typer.Option(help="Collect and report at the end.")] = True,
) -> None:
    """Measure MATRIX, or what is missing of its unfinished run, then collect and report."""
    if on != "local":
        raise UserError(f"--on {on}: this version runs cells on this machine only; leave --on out or give `local`")
    local_run = LocalRun(
        matrix=matrix,
        store=Store.open(store),
        run_id=run_id,
        start_new=new,
        retry_failed=retry_failed,
        interpreters=parse_interpreters(python or [], get_args(Framework)),
    )
    chosen: Run | None = None
    try:
        with end_like_interrupt():
            chosen = local_run.choose_run()
            local_run.measure(chosen, CONSOLE, resume_command=_format_resume_command(chosen))
            finish_run(local_run.store, chosen, output, with_report=report)
    except KeyboardInterrupt:
        how = f"; what is finished is kept. To go on:\n  {_format_resume_command(chosen)}" if chosen else ""
        CONSOLE.print(f"interrupted{how}", soft_wrap=True)
        raise typer.Exit(EXIT_INTERRUPTED) from None


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


def _format_resume_command(run: Run) -> str:
    """Return this process's command with the run's id in it."""
    words = [word for word in [*_name_program(), *sys.argv[1:]] if word != "--new"]
    return shlex.join(words if run.run_id in words else [*words, "--run-id", run.run_id])


def _name_program() -> list[str]:
    """Return the words that started this program, as short as they work here."""
    program = sys.argv[0]
    if Path(program).suffix == ".py":  # `python -m runner.cli`
        return sys.orig_argv[: len(sys.orig_argv) - len(sys.argv) + 1]
    return [Path(program).name if shutil.which(Path(program).name) == program else program]


if __name__ == "__main__":
    main()
