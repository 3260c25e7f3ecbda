"""The command `forecast`."""

from pathlib import Path
from typing import Annotated

import typer

from runner.commands.options import CONSOLE, GpuTableOption, YearOption
from runner.reporting.report_files import DEFAULT_SERIES, fit_forecast

SeriesOption = Annotated[
    str,
    typer.Option(metavar="SERIES", help="frontier: the largest GPU of each year; all: every datacenter GPU."),
]
PlotOption = Annotated[
    Path | None, typer.Option("--plot", metavar="FILE", help="Write the plot to this HTML, PNG or SVG file.")
]


def forecast(
    year: YearOption = None,
    table: GpuTableOption = None,
    series: SeriesOption = DEFAULT_SERIES,
    plot: PlotOption = None,
) -> None:
    """Forecast GPU memory: the study's polynomials beside a log-linear fit, with prediction intervals."""
    from collector.forecast.fit import describe_forecast
    from collector.report.plots.forecast import check_plot_path, save_forecast_plot

    if plot:
        check_plot_path(plot)
    fitted = fit_forecast(year, table, series)
    for line in describe_forecast(fitted):
        CONSOLE.print(line)
    if plot:
        save_forecast_plot(fitted, plot)
        CONSOLE.print(str(plot), soft_wrap=True)
