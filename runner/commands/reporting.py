"""The commands that read a store: run ids in, tables, reports, the page of claims and the forecast out.

The one module of the runner that knows the collector.
"""

from collections import Counter
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, get_args

import typer
from rich.console import Console

from bench.errors import UserError
from bench.schema import Run
from bench.store import LATEST_RUN_KEY, Store
from runner.commands.options import CONSOLE, EXIT_NOT_OK, NamespaceOption, OutputOption, StoreOption
from runner.kubernetes.syntax import check_dns_label, check_option
from runner.matrix.plan import find_newest_run
from runner.publication import RepeatState, describe_ending, publish_report
from runner.terminal_table import print_table

if TYPE_CHECKING:  # the collector takes a second to import: only the commands that need it do
    from collector.forecast.fit import Forecast
    from collector.results.collection import Collection

FORECAST_YEARS_AHEAD = 4
STATUS_PATIENCE_SECONDS = 5.0
"""How long `status` waits for an API server that does not answer."""

RunArgument = Annotated[str, typer.Argument(help="Id of a run; left out: the newest one in the store.")]
YearOption = Annotated[int | None, typer.Option("--year", help="Forecast to this year; default: four years from now.")]
InvalidOption = Annotated[
    bool, typer.Option("--include-invalid", help="Compare cells too of which no repeat is valid.")
]
TableOption = Annotated[
    Path | None, typer.Option("--table", help="Your own table of GPUs (CSV, see docs/forecast.md).")
]


def status(
    run_id: RunArgument = "",
    store: StoreOption = "file://results",
    on: Annotated[
        str | None, typer.Option("--on", help="Ask the cluster of this context too: what runs, what waits and why.")
    ] = None,
    namespace: NamespaceOption = None,
) -> None:
    """Print how far a run is: its repeats by state."""
    collection = _load(_open_existing(store), run_id)
    counts = Counter(collection.results["status"])
    states = ", ".join(f"{number} {state}" for state, number in counts.most_common())
    CONSOLE.print(f"{collection.run.run_id}: {len(collection.results)} repeats: {states}")
    _print_skipped(collection)
    if on is not None:
        _print_cluster_state(collection.run, on, namespace, num_missing=counts["missing"])


def collect(
    run_id: RunArgument = "",
    store: StoreOption = "file://results",
    output: OutputOption = None,
    include_invalid: InvalidOption = False,
) -> None:
    """Merge a run's results into Parquet and CSV tables."""
    from collector.results.export import write_collection

    collection = _load(_open_existing(store), run_id)
    directory = output or _default_output(collection.run)
    paths = write_collection(collection, directory, include_invalid=include_invalid)
    for path in paths:
        CONSOLE.print(str(path), soft_wrap=True)
    _print_skipped(collection)


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
    CONSOLE.print(str(path), soft_wrap=True)
    _print_skipped(collection)


def claims(
    run_ids: Annotated[list[str], typer.Argument(help="Ids of runs; GPU and CPU may be in different ones.")],
    output: Annotated[Path, typer.Option("--output", help="The page: a Markdown file.")],
    store: StoreOption = "file://results",
    include_invalid: InvalidOption = False,
) -> None:
    """Write what runs say about each of the study's claims."""
    from collector.claims.page import write_claims_page
    from collector.results.load import load_runs

    collections = load_runs(_open_existing(store), run_ids)
    write_claims_page(collections, output, include_invalid=include_invalid)
    CONSOLE.print(str(output), soft_wrap=True)
    for collection in collections:
        _print_skipped(collection)


def forecast(
    year: YearOption = None,
    table: TableOption = None,
    series: Annotated[
        str, typer.Option(help="frontier: the largest GPU of each year; all: every datacenter GPU.")
    ] = "frontier",
    plot: Annotated[Path | None, typer.Option(help="Write the plot to this HTML, PNG or SVG file.")] = None,
) -> None:
    """Forecast GPU memory: the study's polynomials beside a log-linear fit, with prediction intervals."""
    from collector.forecast.fit import describe_forecast
    from collector.report.plots.forecast import check_plot_path, save_forecast_plot

    if plot:
        check_plot_path(plot)
    fitted = _fit_forecast(year, table, series)
    for line in describe_forecast(fitted):
        CONSOLE.print(line)
    if plot:
        save_forecast_plot(fitted, plot)
        CONSOLE.print(str(plot), soft_wrap=True)


def finish_run(
    store: Store,
    run: Run,
    output: Path | None,
    *,
    with_report: bool,
    is_published: bool = False,
    console: Console = CONSOLE,
) -> None:
    """Collect and report a run, print its table, and exit with 1 where a repeat did not end well.

    `is_published`: the report is put into the store as well.
    """
    from collector.results.export import write_collection
    from collector.tables.presentation import summarize_for_terminal

    collection = _load(store, run.run_id)
    table = summarize_for_terminal(collection)
    print_table(console, list(table.columns), table.to_numpy().tolist())
    _print_skipped(collection, console)
    if with_report:
        directory = output or _default_output(run)
        write_collection(collection, directory)
        path = _write_report(collection, directory, _fit_forecast(None, None))
        console.print(f"report: {path}", soft_wrap=True)
        if is_published:
            _publish(store, collection, path, console)
    bad = collection.results[collection.results["status"] != "ok"]
    if len(bad):
        counts = ", ".join(f"{number} {state}" for state, number in Counter(bad["status"]).most_common())
        console.print(f"{len(bad)} of {len(collection.results)} repeats did not end well: {counts}", style="red")
        raise typer.Exit(EXIT_NOT_OK)


def _publish(store: Store, collection: "Collection", path: Path, console: Console) -> None:
    rows = collection.results[list(RepeatState._fields)].to_numpy().tolist()
    ending = describe_ending(RepeatState(*row) for row in rows)
    keys = publish_report(store, collection.run, path.read_bytes(), ending)
    console.print(f"published: {', '.join(f'{store.url}/{key}' for key in keys)}", soft_wrap=True)
    if LATEST_RUN_KEY not in keys:
        console.print("latest/ is of a newer run and was left", soft_wrap=True)


def _open_existing(url: str) -> Store:
    """Open a store to read from; UserError where it is a directory that is not there: reading makes none."""
    scheme, _, path = url.partition("://")
    if scheme == "file" and path and not Path(path).expanduser().is_dir():
        place = Path(path).expanduser().absolute()
        raise UserError(f"store {url}: there is no directory {place}; name the right one with --store")
    return Store.open(url)


def _load(store: Store, run_id: str) -> "Collection":
    from collector.results.load import load_run

    return load_run(store, run_id or find_newest_run(store).run_id)


def _write_report(
    collection: "Collection", directory: Path, forecast: "Forecast", *, include_invalid: bool = False
) -> Path:
    from collector.report.html import render_report

    path = directory / "report.html"
    render_report(collection, forecast=forecast, path=path, include_invalid=include_invalid)
    return path


def _fit_forecast(year: int | None, table: Path | None, series: str = "frontier") -> "Forecast":
    from collector.forecast.fit import Series, fit_forecast
    from collector.forecast.gpu_table import load_gpu_table

    known: tuple[Series, ...] = get_args(Series)
    chosen = next((name for name in known if name == series), None)
    if chosen is None:
        raise UserError(f"--series {series}: unknown; it takes {' or '.join(known)}")
    return fit_forecast(
        load_gpu_table(table), year=year or datetime.now(UTC).year + FORECAST_YEARS_AHEAD, series=chosen
    )


def _print_cluster_state(run: Run, on: str, namespace: str | None, *, num_missing: int) -> None:
    from runner.kubernetes.connection import Connection
    from runner.kubernetes.login import find_context
    from runner.kubernetes.run_status import inspect_run

    if run.cluster is None:
        raise UserError(f"--on {on}: run {run.run_id} ran on the machine {run.hostname}, not on a cluster")
    connection = Connection(context=find_context(on), patience_seconds=STATUS_PATIENCE_SECONDS)
    namespace = check_option("--namespace", namespace or run.cluster.namespace, check_dns_label)
    state = inspect_run(connection, namespace, run.run_id)
    for line in state.describe(num_missing):
        CONSOLE.print(line, soft_wrap=True)


def _default_output(run: Run) -> Path:
    return Path("reports") / run.run_id


def _print_skipped(collection: "Collection", console: Console = CONSOLE) -> None:
    if collection.skipped:
        console.print(f"{len(collection.skipped)} documents in the store did not count:", style="yellow")
    for document in collection.skipped:
        console.print(f"  {document.key}: {document.reason}", soft_wrap=True)
