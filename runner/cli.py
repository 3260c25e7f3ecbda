"""The command line: words in, the work of runner and collector out. The one place where the two meet.

Exit codes: 0 all well, 1 a repeat did not end well or is missing, 2 a fault of the user, 130 interrupted.
"""

import json
import shlex
import shutil
import sys
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, get_args

import typer
from rich.console import Console

from bench.errors import UserError
from bench.schema import Framework, Run, export_json_schema
from bench.store import Store
from runner import __version__
from runner.command_line import EXIT_INTERRUPTED, EXIT_NOT_OK, EXIT_USER_ERROR, PythonOption
from runner.local_run import LocalRun, end_like_interrupt, parse_interpreters
from runner.matrix import list_builtin_matrices, load_matrix
from runner.plan import find_newest_run
from runner.probe_command import probe
from runner.terminal_table import print_table

if TYPE_CHECKING:  # the collector takes a second to import: only the commands that need them do
    from collector.collection import Collection
    from collector.forecast import Forecast

FORECAST_YEARS_AHEAD = 4

app = typer.Typer(
    help="Deep-learning benchmarks that anyone can repeat: a matrix of cells in, a report out.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    add_completion=False,
)
console = Console(markup=False, emoji=False, highlight=False)

MatrixArgument = Annotated[
    str, typer.Argument(help=f"A built-in matrix ({', '.join(list_builtin_matrices())}) or the path of a YAML file.")
]
RunArgument = Annotated[str, typer.Argument(help="Id of a run; left out: the newest one in the store.")]
StoreOption = Annotated[str, typer.Option("--store", help="Where results are: file://DIRECTORY or s3://BUCKET/PREFIX.")]
OutputOption = Annotated[Path | None, typer.Option("--output", help="Folder for the files; default reports/RUN_ID.")]
YearOption = Annotated[int | None, typer.Option("--year", help="Forecast to this year; default: four years from now.")]
InvalidOption = Annotated[
    bool, typer.Option("--include-invalid", help="Compare cells too of which no repeat is valid.")
]
TableOption = Annotated[
    Path | None, typer.Option("--table", help="Your own table of GPUs (CSV, see docs/forecast.md).")
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
            local_run.measure(chosen, console, resume_command=_format_resume_command(chosen))
            _finish(local_run.store, chosen, output, with_report=report)
    except KeyboardInterrupt:
        how = f"; what is finished is kept. To go on:\n  {_format_resume_command(chosen)}" if chosen else ""
        console.print(f"interrupted{how}", soft_wrap=True)
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


@app.command()
def status(run_id: RunArgument = "", store: StoreOption = "file://results") -> None:
    """Print how far a run is: its repeats by state."""
    collection = _load(_open_existing(store), run_id)
    counts = Counter(collection.results["status"])
    states = ", ".join(f"{number} {state}" for state, number in counts.most_common())
    console.print(f"{collection.run.run_id}: {len(collection.results)} repeats: {states}")
    _print_skipped(collection)


@app.command()
def collect(
    run_id: RunArgument = "",
    store: StoreOption = "file://results",
    output: OutputOption = None,
    include_invalid: InvalidOption = False,
) -> None:
    """Merge a run's results into Parquet and CSV tables."""
    from collector.export import write_collection

    collection = _load(_open_existing(store), run_id)
    directory = output or _default_output(collection.run)
    with _explain_unwritable(directory):
        paths = write_collection(collection, directory, include_invalid=include_invalid)
    for path in paths:
        console.print(str(path), soft_wrap=True)
    _print_skipped(collection)


@app.command()
def report(
    run_id: RunArgument = "",
    store: StoreOption = "file://results",
    output: OutputOption = None,
    year: YearOption = None,
    table: TableOption = None,
    include_invalid: InvalidOption = False,
) -> None:
    """Write a run's report: one HTML file that opens offline."""
    collection = _load(_open_existing(store), run_id)
    directory = output or _default_output(collection.run)
    path = _write_report(collection, directory, _fit_forecast(year, table), include_invalid=include_invalid)
    console.print(str(path), soft_wrap=True)
    _print_skipped(collection)


@app.command()
def claims(
    run_ids: Annotated[list[str], typer.Argument(help="Ids of runs; GPU and CPU may be in different ones.")],
    output: Annotated[Path, typer.Option("--output", help="The page: a Markdown file.")],
    store: StoreOption = "file://results",
    include_invalid: InvalidOption = False,
) -> None:
    """Write what runs say about each of the study's claims."""
    from collector.claims import write_claims_page
    from collector.load import load_runs

    collections = load_runs(_open_existing(store), run_ids)
    with _explain_unwritable(output):
        write_claims_page(collections, output, include_invalid=include_invalid)
    console.print(str(output), soft_wrap=True)
    for collection in collections:
        _print_skipped(collection)


@app.command()
def forecast(
    year: YearOption = None,
    table: TableOption = None,
    series: Annotated[
        str, typer.Option(help="frontier: the largest GPU of each year; all: every datacenter GPU.")
    ] = "frontier",
    plot: Annotated[Path | None, typer.Option(help="Write the plot to this HTML, PNG or SVG file.")] = None,
) -> None:
    """Forecast GPU memory: the study's polynomials beside a log-linear fit, with prediction intervals."""
    from collector.forecast import describe_forecast
    from collector.plots.forecast import check_plot_path, save_forecast_plot

    if plot:
        check_plot_path(plot)
    fitted = _fit_forecast(year, table, series)
    for line in describe_forecast(fitted):
        console.print(line)
    if plot:
        with _explain_unwritable(plot):
            save_forecast_plot(fitted, plot)
        console.print(str(plot), soft_wrap=True)


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


def _finish(store: Store, run: Run, output: Path | None, *, with_report: bool) -> None:
    """Collect and report a run, print its table, and exit with 1 where a repeat did not end well."""
    from collector.export import write_collection
    from collector.presentation import summarize_for_terminal

    collection = _load(store, run.run_id)
    table = summarize_for_terminal(collection)
    print_table(console, list(table.columns), table.to_numpy().tolist())
    _print_skipped(collection)
    if with_report:
        directory = output or _default_output(run)
        with _explain_unwritable(directory):
            write_collection(collection, directory)
        path = _write_report(collection, directory, _fit_forecast(None, None))
        console.print(f"report: {path}", soft_wrap=True)
    bad = collection.results[collection.results["status"] != "ok"]
    if len(bad):
        counts = ", ".join(f"{number} {state}" for state, number in Counter(bad["status"]).most_common())
        console.print(f"{len(bad)} of {len(collection.results)} repeats did not end well: {counts}", style="red")
        raise typer.Exit(EXIT_NOT_OK)


def _open_existing(url: str) -> Store:
    """Open a store to read from; UserError where it is a directory that is not there: reading makes none."""
    scheme, _, path = url.partition("://")
    if scheme == "file" and path and not Path(path).expanduser().is_dir():
        place = Path(path).expanduser().absolute()
        raise UserError(f"store {url}: there is no directory {place}; name the right one with --store")
    return Store.open(url)


def _load(store: Store, run_id: str) -> "Collection":
    from collector.load import load_run

    return load_run(store, run_id or find_newest_run(store).run_id)


def _write_report(
    collection: "Collection", directory: Path, forecast: "Forecast", *, include_invalid: bool = False
) -> Path:
    from collector.report import render_report

    path = directory / "report.html"
    with _explain_unwritable(directory):
        render_report(collection, forecast=forecast, path=path, include_invalid=include_invalid)
    return path


def _fit_forecast(year: int | None, table: Path | None, series: str = "frontier") -> "Forecast":
    from collector.forecast import Series, fit_forecast
    from collector.gpu_table import load_gpu_table

    known: tuple[Series, ...] = get_args(Series)
    chosen = next((name for name in known if name == series), None)
    if chosen is None:
        raise UserError(f"--series {series}: unknown; it takes {' or '.join(known)}")
    return fit_forecast(
        load_gpu_table(table), year=year or datetime.now(UTC).year + FORECAST_YEARS_AHEAD, series=chosen
    )


@contextmanager
def _explain_unwritable(path: Path) -> Iterator[None]:
    """Have a full disk or a folder of somebody else end in one message; the results are in the store all the same."""
    try:
        yield
    except OSError as error:
        raise UserError(f"{path}: cannot be written ({error.strerror or error}); name another place") from error


def _default_output(run: Run) -> Path:
    return Path("reports") / run.run_id


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


def _print_skipped(collection: "Collection") -> None:
    if collection.skipped:
        console.print(f"{len(collection.skipped)} documents in the store did not count:", style="yellow")
    for document in collection.skipped:
        console.print(f"  {document.key}: {document.reason}", soft_wrap=True)


if __name__ == "__main__":
    main()
