"""The command `forecast`."""

from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated

import typer

from runner.commands.options import CONSOLE
from runner.terminal import echo, format_message

YEARS_AHEAD = 4

BYTES_OF_16_BITS_IN_GB = 2e-9

WhereOption = Annotated[
    list[str] | None,
    typer.Option(
        "--where",
        metavar="COLUMN[=VALUE]",
        help="Only rows with this value, or with any value, in this column; several must all hold.",
    ),
]
TableOption = Annotated[
    Path | None,
    typer.Option(
        metavar="FILE",
        help="CSV with dates and values: yours, Epoch AI's files as published, or a table of GPUs; default: the "
        "table of GPUs that comes with the tool. See docs/forecast.md.",
    ),
]
SeriesOption = Annotated[
    str | None,
    typer.Option(
        metavar="SERIES",
        help="frontier: the largest value of each year; median: the median of each year; all: every release. "
        "Default: frontier of a table of GPUs, all of another.",
    ),
]
QuantityOption = Annotated[
    str | None,
    typer.Option(metavar="WORD", help="Of a published table: memory, training-compute, parameters, price-per-hour."),
]
ValueOption = Annotated[str | None, typer.Option(metavar="COLUMN", help="The column of the values; default: value.")]
DemandOption = Annotated[
    Path | None,
    typer.Option(
        metavar="FILE",
        help="CSV of what models need, such as Epoch AI's models: also forecast it, and how many devices one model "
        "needs.",
    ),
]
DemandFactorOption = Annotated[
    float,
    typer.Option(
        metavar="NUMBER",
        help="What the demand's values are multiplied by to be in the series' unit; default: GB of one parameter in 16 "
        "bits.",
    ),
]
PlotOption = Annotated[Path | None, typer.Option(metavar="FILE", help="Write the plot to this SVG, PNG or PDF file.")]


def forecast(
    year: Annotated[
        int | None, typer.Option(metavar="YEAR", min=1, help="Forecast up to this year; default: four years from now.")
    ] = None,
    table: TableOption = None,
    series: SeriesOption = None,
    quantity: QuantityOption = None,
    value: ValueOption = None,
    date: Annotated[str | None, typer.Option(metavar="COLUMN", help="The column of the dates; default: date.")] = None,
    unit: Annotated[
        str | None, typer.Option(metavar="UNIT", help="The unit of --value; default: the name of its column.")
    ] = None,
    where: WhereOption = None,
    since: Annotated[int | None, typer.Option(metavar="YEAR", help="Leave out what is dated before this year.")] = None,
    demand: DemandOption = None,
    plot: PlotOption = None,
    at_least: Annotated[
        float | None, typer.Option(metavar="AMOUNT", help="Leave out rows with a smaller value, in the series' unit.")
    ] = None,
    demand_series: Annotated[str, typer.Option(metavar="SERIES", help="frontier or median.")] = "frontier",
    demand_where: Annotated[
        list[str] | None, typer.Option(metavar="COLUMN[=VALUE]", help="Only these rows of the demand.")
    ] = None,
    demand_since: Annotated[
        int | None, typer.Option(metavar="YEAR", help="Leave out demand that is dated before this year.")
    ] = None,
    demand_factor: DemandFactorOption = BYTES_OF_16_BITS_IN_GB,
    level: Annotated[float, typer.Option(metavar="PERCENT", help="Level of the intervals.")] = 95.0,
) -> None:
    """Forecast a series, such as GPU memory: candidates, their backtest, the winner, growth, calibrated intervals."""
    from collector.forecast.fit import describe_forecast, describe_future, describe_gap, fit_forecast, measure_gap
    from collector.forecast.series import Request, load_series
    from collector.report.charts import check_figure_path, save_figure, show_forecast

    if plot:
        check_figure_path(plot, "--plot")
    fields = {"quantity": quantity, "value": value, "date": date, "unit": unit, "at_least": at_least, "since": since}
    request = Request(**fields, where=tuple(where or ()))  # type: ignore[arg-type]  # of the fields' types
    this_year = datetime.now(UTC).year
    loaded, until = load_series(table, series, request), year or this_year + YEARS_AHEAD
    if future := describe_future(loaded, this_year):
        echo(format_message(f"warning: {future}"), err=True)
    fitted = fit_forecast(loaded, year=until, level=level / 100)
    lines = describe_forecast(fitted)
    if demand is not None:
        request = Request(quantity="parameters", where=tuple(demand_where or ()), since=demand_since)
        needed = load_series(demand, demand_series, request)
        of_demand = fit_forecast(needed, year=until, level=level / 100)
        lines += describe_gap(measure_gap(fitted, of_demand, factor=demand_factor))
    for line in lines:
        CONSOLE.print(line, soft_wrap=True)
    if plot:
        save_figure(show_forecast(fitted), plot, columns=2, has_title=False)
        CONSOLE.print(str(plot), soft_wrap=True)
