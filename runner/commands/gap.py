"""The command `gap`."""

from functools import partial
from typing import Annotated

import typer

from runner.commands.forecast import show_answer, show_document
from runner.commands.forecast_options import LevelOption, MaxFactorOption, PlotOption
from runner.commands.options import JsonOption, YearOption

BYTES_OF_16_BITS_IN_GB = 2e-9

DemandOption = Annotated[
    str,
    typer.Option("--demand", metavar="FILE|URL", help="CSV or Parquet of what models need, such as Epoch AI's models."),
]
SupplyOption = Annotated[
    str | None,
    typer.Option(
        "--supply", metavar="FILE|URL", help="CSV or Parquet of what devices have; default: the tool's table of GPUs."
    ),
]
DemandQuantityOption = Annotated[
    str | None, typer.Option(metavar="WORD", help="Of a published table; default: parameters where it has them.")
]
SupplyQuantityOption = Annotated[str | None, typer.Option(metavar="WORD", help="Of a published table.")]
FactorOption = Annotated[
    float,
    typer.Option(
        "--demand-factor",
        metavar="NUMBER",
        help="What the demand's values are multiplied by to be in the supply's unit; default: GB of one parameter in "
        "16 bits.",
    ),
]
DemandSeriesOption = Annotated[
    str, typer.Option(metavar="SERIES", help="frontier: the largest of each year; median: the median of each year.")
]
DemandWhereOption = Annotated[
    list[str] | None,
    typer.Option("--demand-where", metavar="COLUMN[=VALUE]", help="Only these rows of the demand."),
]
DemandSinceOption = Annotated[
    int | None, typer.Option(metavar="YEAR", help="Leave out demand that is dated before this year.")
]


def gap(
    demand: DemandOption,
    supply: SupplyOption = None,
    year: YearOption = None,
    demand_quantity: DemandQuantityOption = None,
    supply_quantity: SupplyQuantityOption = None,
    demand_factor: FactorOption = BYTES_OF_16_BITS_IN_GB,
    demand_series: DemandSeriesOption = "frontier",
    demand_where: DemandWhereOption = None,
    demand_since: DemandSinceOption = None,
    level: LevelOption = 95.0,
    max_factor: MaxFactorOption = 100.0,
    plot: PlotOption = None,
    as_json: JsonOption = False,
) -> None:
    """Forecast what devices have, what models need, and how many devices one model needs, up to a year."""
    from collector.forecast.fit import fit_forecast
    from collector.forecast.gap import measure_gap
    from collector.forecast.gap_document import make_gap_document
    from collector.forecast.gap_words import describe_gap
    from collector.forecast.loading import load_series
    from collector.forecast.tables import ValueRequest
    from collector.report.plots.gap import plot_gap
    from collector.report.plots.picture_files import check_plot_path
    from runner.reporting.report_files import choose_year

    if plot:
        check_plot_path(plot)
    supplied = load_series(supply, ValueRequest(quantity=supply_quantity), "frontier")
    request = ValueRequest(quantity=demand_quantity, where=tuple(demand_where or ()), since=demand_since)
    needed = load_series(demand, request, demand_series)
    fit = partial(fit_forecast, year=choose_year(year), level=level / 100, max_factor=max_factor)
    measured = measure_gap(fit(supplied), fit(needed), factor=demand_factor)
    chart = plot_gap(measured) if plot else None
    if as_json:
        show_document(make_gap_document(measured), chart, plot)
    else:
        show_answer(describe_gap(measured), chart, plot)
