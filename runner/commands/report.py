"""The command `report`."""

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from bench import __version__
from bench.errors import UserError
from runner.commands.next_steps import say, say_next
from runner.commands.options import (
    CONSOLE,
    DEFAULT_STORE,
    PricesOption,
    ReportOutputOption,
    StoredRunArgument,
    StoreOption,
)

if TYPE_CHECKING:
    from bench.store import Store
    from runner.reporting.site_files import Analyze


def _read_folder(text: str) -> Path:
    if not text:  # as of a variable of the shell that is not set: it would be the current folder
        raise UserError("--site: expected a folder; name one, or . for the current one")
    return Path(text)


SiteOption = Annotated[
    Path | None,
    typer.Option(
        "--site",
        parser=_read_folder,
        metavar="FOLDER",
        help="Write a folder of static pages instead, for a bucket or GitHub Pages: the reports of all runs and nights "
        "of the store, and a list of them. What has not changed is left.",
    ),
]


TextOption = Annotated[
    bool, typer.Option("--text", help="Print the grid of the run and its doubts instead, as at the end of a run.")
]


def report(
    run_id: StoredRunArgument = None,
    store: StoreOption = DEFAULT_STORE,
    output: ReportOutputOption = None,
    prices: PricesOption = None,
    site: SiteOption = None,
    text: TextOption = False,
) -> None:
    """Write a run's report: one HTML file that opens offline. With --site, a folder of pages of all runs."""
    from collector.last_run import compare_with_last
    from collector.report.page import write_page
    from collector.report.terminal import print_summary
    from runner.reporting.report_files import choose_report_path, make_analyzer
    from runner.reporting.site_files import name_contents
    from runner.reporting.stored_runs import load_collection, load_history, open_existing_store, print_skipped

    opened = open_existing_store(store)
    if site is not None and (run_id or output):
        raise UserError("report: --site writes the pages of all runs; leave RUN_ID and --output out")
    runs = "all runs" if site is not None else run_id or "the newest run"
    say(f"reading {runs} from {store}, then drawing the figures")
    analyze = make_analyzer(prices=prices)
    if site is not None:
        files = name_contents(file for file in (prices,) if file is not None)
        settings = f"{__version__} {prices} {files}"
        _write_site(opened, site, analyze, settings)
        return
    collection = load_collection(opened, run_id)
    path = None if text else choose_report_path(output, collection.run)
    since = compare_with_last(opened, collection)
    analysis = replace(analyze(collection, load_history(opened, collection)), since=since)
    if path is None:
        print_summary(CONSOLE, analysis)
        return
    write_page(analysis, path)
    CONSOLE.print(str(path), soft_wrap=True)
    print_skipped(collection, CONSOLE)
    say_next(f"open {path} in a browser", f"benchmatrix compare RUN_A {collection.run.run_id}")


def _write_site(store: "Store", folder: Path, analyze: "Analyze", settings: str) -> None:
    from runner.reporting.site_files import write_site

    path = write_site(store, folder, analyze, lambda line: CONSOLE.print(line, soft_wrap=True), settings=settings)
    CONSOLE.print(str(path), soft_wrap=True)
    say_next(f"open {path} in a browser")
