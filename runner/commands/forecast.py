"""The command `forecast`."""

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
from runner.commands.options import CONSOLE, YearOption
from runner.reporting.report_files import choose_year


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
) -> None:
    """Forecast a series, such as GPU memory: candidates, their backtest, the winner, growth, calibrated intervals."""
    from collector.forecast.fit import fit_forecast
    from collector.forecast.loading import load_series
    from collector.forecast.tables import ValueRequest
    from collector.forecast.words import describe_forecast
    from collector.report.plots.forecast import plot_forecast
    from collector.report.plots.picture_files import check_plot_path, save_plot

    if plot:
        check_plot_path(plot)
    request = ValueRequest(
        quantity=quantity,
        value=value,
        date=date,
        name=name,
        unit=unit,
        where=tuple(where or ()),
        at_least=at_least,
        since=since,
    )
    loaded = load_series(table, request, series)
    fitted = fit_forecast(loaded, year=choose_year(year), level=level / 100, max_factor=max_factor)
    for line in describe_forecast(fitted):
        CONSOLE.print(line)
    if plot:
        save_plot(plot_forecast(fitted), plot)
        CONSOLE.print(str(plot), soft_wrap=True)
