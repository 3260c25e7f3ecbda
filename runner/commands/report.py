"""The command `report`."""

from pathlib import Path
from typing import Annotated

import typer

from bench.errors import UserError
from runner import __version__
from runner.commands.options import (
    CONSOLE,
    DEFAULT_STORE,
    GpuTableOption,
    IncludeInvalidOption,
    ModeratedOption,
    PricesOption,
    ReportOutputOption,
    StoredRunArgument,
    StoreOption,
    YearOption,
)
from runner.reporting.report_files import choose_report_path, fit_forecast, make_analyzer, write_report
from runner.reporting.site_files import write_site
from runner.reporting.stored_runs import load_collection, load_history, open_existing_store, print_skipped

SiteOption = Annotated[
    Path | None,
    typer.Option(
        "--site",
        metavar="FOLDER",
        help="Write a folder of static pages instead, for a bucket or GitHub Pages: the reports of all runs and nights "
        "of the store, a list of them, and the details of each cell as a file. What has not changed is left.",
    ),
]


def report(
    run_id: StoredRunArgument = "",
    store: StoreOption = DEFAULT_STORE,
    output: ReportOutputOption = None,
    year: YearOption = None,
    table: GpuTableOption = None,
    include_invalid: IncludeInvalidOption = False,
    moderated: ModeratedOption = False,
    prices: PricesOption = None,
    site: SiteOption = None,
) -> None:
    """Write a run's report: one HTML file that opens offline. With --site, a folder of pages of all runs."""
    if site is not None and (run_id or output):
        raise UserError("report: --site writes the pages of all runs; leave RUN_ID and --output out")
    opened = open_existing_store(store)
    if site is not None:
        analyze = make_analyzer(
            fit_forecast(year, table), include_invalid=include_invalid, moderated=moderated, prices=prices
        )
        settings = f"{__version__} {year} {table} {include_invalid} {moderated} {prices}"
        path = write_site(opened, site, analyze, lambda line: CONSOLE.print(line, soft_wrap=True), settings=settings)
        CONSOLE.print(str(path), soft_wrap=True)
        return
    collection = load_collection(opened, run_id)
    path = write_report(
        collection,
        choose_report_path(output, collection.run),
        fit_forecast(year, table),
        include_invalid=include_invalid,
        moderated=moderated,
        history=load_history(opened, collection),
        prices=prices,
    )
    CONSOLE.print(str(path), soft_wrap=True)
    print_skipped(collection, CONSOLE)
