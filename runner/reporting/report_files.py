"""Say what goes into the files of a run's report and where they are: the analysis, the forecast, the tables."""

import os
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from bench.errors import UserError
from bench.schema import LATEST, Run

if TYPE_CHECKING:  # the collector takes a second to import: only the commands that need it do
    from collections.abc import Callable

    from collector.analysis import Analysis
    from collector.forecast.fit import Forecast
    from collector.nights.records import ChangeHistory
    from collector.results.collection import Collection

FORECAST_YEARS_AHEAD = 4
FIRST_YEAR = 2026
"""Of a clock that may be right: that in which this was written."""
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
    forecast: "Forecast | None" = None,
    *,
    is_forecast_asked: bool = False,
    include_invalid: bool = False,
    moderated: bool = False,
    prices: Path | None = None,
) -> "Callable[[Collection, ChangeHistory], Analysis]":
    """Return what analyses a run for a report, with what was seen over its matrix's nights.

    The forecast is of GPUs: it comes with runs that measured some or were to, and with all where `is_forecast_asked`.
    `prices`: a price table; None for the shipped one. UserError if it cannot be read.
    """
    from collector.analysis import analyze_run
    from runner.price_tables.loading import load_prices

    loaded = load_prices(prices)
    return lambda collection, history: analyze_run(
        collection,
        forecast=forecast if is_forecast_asked or has_gpu_cells(collection.run) else None,
        include_invalid=include_invalid,
        moderated=moderated,
        history=history,
        prices=loaded,
    )


def has_gpu_cells(run: Run) -> bool:
    """Return whether a run planned cells on GPUs, also if these were left out because there is none."""
    cells = [*(planned.cell for planned in run.cells), *(one.cell for one in run.left_out)]
    return any(cell.device == "gpu" for cell in cells)


def write_tables(
    collection: "Collection",
    directory: Path,
    table_format: Literal["latex", "markdown"],
    *,
    include_invalid: bool = False,
    moderated: bool = False,
) -> Path:
    """Write the tables of a run's report for a paper or a page, `tables.tex` or `tables.md`, and return the path."""
    from collector.analysis import analyze_run
    from collector.files import replace_text
    from collector.report.tables import list_tables
    from collector.report.typeset import write_latex, write_markdown
    from runner.price_tables.loading import load_prices

    analysis = analyze_run(collection, include_invalid=include_invalid, moderated=moderated, prices=load_prices(None))
    write, name = {"latex": (write_latex, "tables.tex"), "markdown": (write_markdown, "tables.md")}[table_format]
    replace_text(directory / name, write(list_tables(analysis)))
    return directory / name


def fit_forecast(year: int | None = None, table: Path | None = None) -> "Forecast":
    """Return the forecast of the memory of the largest GPU of a year.

    `year`: None for FORECAST_YEARS_AHEAD from now. `table`: None for the table of GPUs that comes with the tool.
    Raise UserError if the table cannot be read.
    """
    from collector.forecast.fit import fit_forecast as fit_series
    from collector.forecast.gpu_table import load_gpu_table, make_gpu_series

    return fit_series(make_gpu_series(load_gpu_table(table)), year=choose_year(year))


def choose_year(year: int | None) -> int:
    """Return the year asked for, or FORECAST_YEARS_AHEAD from now; UserError where the clock cannot be right."""
    if year is not None:
        return year
    now = datetime.now(UTC)
    if not FIRST_YEAR <= now.year < LATEST.year:
        raise UserError(
            f"this machine's clock says {now:%Y-%m-%d}, and a forecast begins today: set it, or give the year (--year)"
        )
    return now.year + FORECAST_YEARS_AHEAD
