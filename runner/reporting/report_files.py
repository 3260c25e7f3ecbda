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


def choose_output(output: Path | None, run: Run) -> Path:
    """Return the folder for a run's files: the one named, or the default."""
    return output or Path("reports") / run.run_id


def write_report(
    collection: "Collection",
    directory: Path,
    forecast: "Forecast",
    *,
    include_invalid: bool = False,
    moderated: bool = False,
    history: "ChangeHistory | None" = None,
    prices: Path | None = None,
) -> Path:
    """Write `report.html` into the directory and return its path.

    `history`: what was seen over the matrix's nights. `prices`: a price table; None for the shipped one.
    """
    from collector.report.html import render_report
    from runner.price_tables.loading import load_prices

    path = directory / "report.html"
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
    return datetime.now(UTC).year + FORECAST_YEARS_AHEAD if year is None else year
