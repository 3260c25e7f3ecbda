"""Write the report of a run, and fit the forecast that it contains."""

from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

from bench.schema import Run

if TYPE_CHECKING:  # the collector takes a second to import: only the commands that need it do
    from collector.forecast.fit import Forecast
    from collector.nights.records import ChangeHistory
    from collector.results.collection import Collection

FORECAST_YEARS_AHEAD = 4
REPORT_NAME = "report.html"


def choose_output(output: Path | None, run: Run) -> Path:
    """Return the folder for a run's files: the one named, or the default."""
    return output or Path("reports") / run.run_id


def choose_report_path(output: Path | None, run: Run) -> Path:
    """Return the path of a run's report: a name that ends in `.html` is the file, any other is its folder.

    A folder that is there already stays a folder, whatever its name.
    """
    chosen = choose_output(output, run)
    is_file = chosen.suffix.lower() in (".html", ".htm") and not chosen.is_dir()
    return chosen if is_file else chosen / REPORT_NAME


def write_report(
    collection: "Collection",
    path: Path,
    forecast: "Forecast",
    *,
    include_invalid: bool = False,
    moderated: bool = False,
    history: "ChangeHistory | None" = None,
    prices: Path | None = None,
) -> Path:
    """Write the report to `path` and return it.

    `history`: what was seen over the matrix's nights. `prices`: a price table; None for the shipped one.
    """
    from collector.report.html import render_report
    from runner.price_tables.loading import load_prices

    render_report(
        collection,
        forecast=forecast,
        path=path,
        include_invalid=include_invalid,
        moderated=moderated,
        history=history,
        prices=load_prices(prices),
    )
    return path


def fit_forecast(year: int | None = None, table: Path | None = None) -> "Forecast":
    """Return the forecast of the memory of the largest GPU of a year.

    `year`: None for FORECAST_YEARS_AHEAD from now. `table`: None for the table of GPUs that comes with the tool.
    Raise UserError if the table cannot be read.
    """
    from collector.forecast.fit import fit_forecast as fit_series
    from collector.forecast.gpu_table import load_gpu_table, make_gpu_series

    return fit_series(make_gpu_series(load_gpu_table(table)), year=choose_year(year))


def choose_year(year: int | None) -> int:
    """Return the year asked for, or FORECAST_YEARS_AHEAD from now."""
    return year or datetime.now(UTC).year + FORECAST_YEARS_AHEAD
