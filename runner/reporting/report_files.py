"""Say what goes into the files of a run's report and where they are: the analysis, the tables."""

import os
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from bench.schema import Run

if TYPE_CHECKING:  # the collector takes a second to import: only the commands that need it do
    from collections.abc import Callable

    from collector.analysis import Analysis
    from collector.nights.records import ChangeHistory
    from collector.results.collection import Collection

REPORT_NAME = "report.html"


def choose_output(output: Path | None, run: Run) -> Path:
    """Return the folder for a run's files: the one named, or the default."""
    return output or Path("reports") / run.run_id


def choose_report_path(output: Path | None, run: Run) -> Path:
    """Return the path of a run's report: a name that ends in `.html` is the file, any other is its folder.

    A folder that is there already stays a folder, whatever its name. UserError where a file stands in the place of one:
    the report takes a while to be made.
    """
    from collector.files import check_folder

    chosen = choose_output(output, run)
    is_file = chosen.suffix.lower() in (".html", ".htm") and not os.path.isdir(chosen)
    path = chosen if is_file else chosen / REPORT_NAME
    check_folder(path)
    return path


def make_analyzer(
    *,
    prices: Path | None = None,
) -> "Callable[[Collection, ChangeHistory], Analysis]":
    """Return what analyses a run for a report, with what was seen over its matrix's nights.

    `prices`: a price table; None for the shipped one. UserError if it cannot be read.
    """
    from collector.analysis import analyze_run
    from runner.price_tables.loading import load_prices

    loaded = load_prices(prices)
    return lambda collection, history: analyze_run(
        collection,
        history=history,
        prices=loaded,
    )


def write_tables(
    collection: "Collection",
    directory: Path,
    table_format: Literal["latex", "markdown"],
) -> Path:
    """Write the tables of a run's report for a paper or a page, `tables.tex` or `tables.md`, and return the path."""
    from collector.analysis import analyze_run
    from collector.files import replace_text
    from collector.report.paper import write_latex, write_markdown
    from collector.report.tables import list_tables
    from runner.price_tables.loading import load_prices

    analysis = analyze_run(collection, prices=load_prices(None))
    write, name = {"latex": (write_latex, "tables.tex"), "markdown": (write_markdown, "tables.md")}[table_format]
    replace_text(directory / name, write(list_tables(analysis)))
    return directory / name
