"""The command `forecast`."""

from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

from runner.commands.forecast_options import (
    AtLeastOption,
    DateOption,
    LevelOption,
    MaxFactorOption,
    NameOption,
    PlotOption,
    QuantityOption,
    SeriesOption,
    SinceOption,
    TableOption,
    UnitOption,
    ValueOption,
    WhereOption,
)
from runner.commands.options import CONSOLE, JsonOption, YearOption
from runner.terminal_text import echo, format_message

if TYPE_CHECKING:  # altair takes a second to import: only what draws does it
    from altair import LayerChart

    from bench.schema import Document
    from collector.forecast.series import Series


def forecast(
    year: YearOption = None,
    table: TableOption = None,
    series: SeriesOption = None,
    quantity: QuantityOption = None,
    value: ValueOption = None,
    date: DateOption = None,
    name: NameOption = None,
    unit: UnitOption = None,
    where: WhereOption = None,
    at_least: AtLeastOption = None,
    since: SinceOption = None,
    level: LevelOption = 95.0,
    max_factor: MaxFactorOption = 100.0,
    plot: PlotOption = None,
    as_json: JsonOption = False,
) -> None:
    """Forecast a series, such as GPU memory: candidates, their backtest, the winner, growth, calibrated intervals."""
    from collector.forecast.document import make_forecast_document
    from collector.forecast.fit import fit_forecast
    from collector.forecast.loading import load_series
    from collector.forecast.tables import ValueRequest
    from collector.forecast.words import describe_forecast
    from collector.report.plots.forecast import plot_forecast
    from collector.report.plots.picture_files import check_plot_path
    from runner.reporting.report_files import choose_year

    if plot:
        check_plot_path(plot)
    selection: dict[str, Any] = {"where": tuple(where or ()), "at_least": at_least, "since": since}
    request = ValueRequest(quantity=quantity, value=value, date=date, name=name, unit=unit, **selection)
    loaded = load_series(table, request, series)
    _warn_of_future(loaded)
    fitted = fit_forecast(loaded, year=choose_year(year), level=level / 100, max_factor=max_factor)
    chart = plot_forecast(fitted) if plot else None
    if as_json:
        show_document(make_forecast_document(fitted), chart, plot)
    else:
        show_answer(describe_forecast(fitted), chart, plot)


def _warn_of_future(series: "Series") -> None:
    """Warn of rows that are dated after this year, where the clock may be right."""
    from collector.forecast.words import describe_future
    from runner.reporting.report_files import FIRST_YEAR

    year = datetime.now(UTC).year
    if year >= FIRST_YEAR and (future := describe_future(series, year)):
        echo(format_message(f"warning: {future}"), err=True)


def show_answer(lines: list[str], chart: "LayerChart | None", plot: Path | None) -> None:
    """Print the lines, and write the chart to `plot`."""
    from collector.report.plots.picture_files import save_plot

    for line in lines:
        CONSOLE.print(line)
    if chart is not None and plot is not None:
        save_plot(chart, plot)
        CONSOLE.print(str(plot), soft_wrap=True)


def show_document(document: "Document", chart: "LayerChart | None", plot: Path | None) -> None:
    """Print the document, and write the chart to `plot`."""
    from collector.report.plots.picture_files import save_plot

    echo(document.to_json())
    if chart is not None and plot is not None:
        save_plot(chart, plot)
