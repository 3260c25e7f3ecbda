"""The sentences about a forecast."""

import math

import pytest

from collector.forecast.amounts import format_amount
from collector.forecast.fit import fit_forecast
from collector.forecast.gpu_table import make_gpu_series
from collector.forecast.growth import Growth, Rate
from collector.forecast.series import DatedValues, make_series
from collector.forecast.words import describe_forecast, describe_future, describe_growth
from memory_tables import make_bending_series, make_doubling_table, make_noisy_table, make_yearly


def test_every_candidate_has_a_sentence_and_the_winner_is_named_first() -> None:
    forecast = fit_forecast(make_gpu_series(make_noisy_table()), year=2025)
    subject, winner, *rest = describe_forecast(forecast)
    assert subject == "Memory of one GPU, the largest of the year, in 2025, from 16 observations, 2008 to 2023:"
    assert winner.startswith(f"The winner of the backtest is {forecast.ranking.winner}: ")
    assert "2 years ahead, from the ends of 7 years, worth 4.9 independent cases because their years overlap" in winner
    names = [line.partition(":")[0] for line in rest[: len(forecast.asked)]]
    assert names == forecast.asked["candidate"].tolist()


def test_only_a_calibrated_interval_is_called_95_percent() -> None:
    lines = describe_forecast(fit_forecast(make_gpu_series(make_noisy_table()), year=2025))
    calibrated = next(line for line in lines if line.startswith("log-linear:"))
    assert "95 % prediction interval" in calibrated
    assert "calibrated on the backtest" in calibrated
    short = fit_forecast(make_yearly(2010, [1, 2.1, 4.2, 7.9, 16.4, 31, 66, 127]), year=2020)
    own = next(line for line in describe_forecast(short) if line.startswith("log-linear:"))
    assert "by the fit's own assumptions, not calibrated: do not take it for 95 %" in own
    assert "Backtest: the data span too few years for one." in own


def test_without_a_backtest_nobody_wins_and_that_is_said() -> None:
    short = fit_forecast(make_yearly(2010, [1, 2.1, 4.2, 7.9, 16.4, 31, 66, 127]), year=2020)
    assert describe_forecast(short)[1].startswith("No candidate wins: the data span too few years for a backtest")


def test_refusals_stand_in_the_place_of_numbers() -> None:
    lines = describe_forecast(fit_forecast(make_bending_series(), year=2026))
    refused = next(line for line in lines if line.startswith("polynomial 2:"))
    assert refused.startswith("polynomial 2: no forecast; polynomial 2 would give -95 GB for 2026")


def test_rivals_of_the_winner_are_named_as_not_told_apart() -> None:
    forecast = fit_forecast(make_gpu_series(make_noisy_table()), year=2025)
    assert len(forecast.ranking.rivals) > 0
    assert f"do not tell it apart from {', '.join(forecast.ranking.rivals)}" in describe_forecast(forecast)[1]


def test_source_and_what_was_left_out_are_in_every_output() -> None:
    rows = make_gpu_series(make_doubling_table()).releases
    values = DatedValues(
        rows=rows, quantity="memory", unit="GB", source="x.csv", attribution="Somebody, CC BY", remarks=("3 rows",)
    )
    lines = describe_forecast(fit_forecast(make_series(values, "frontier"), year=2022))
    assert lines[-2:] == ["Data: Somebody, CC BY.", "x.csv: 3 rows."]


def test_growth_is_said_with_both_intervals() -> None:
    growth = Growth(
        level=0.9,
        num_observations=1200,
        rate=Rate(log2=1.0, lower_log2=0.5, upper_log2=2.0),
        by_year=Rate(log2=1.0, lower_log2=-0.5, upper_log2=2.5),
    )
    (line,) = describe_growth(growth)
    assert line == (
        "Growth (log-linear, 1,200 observations): a factor of 2.00 a year (90 % confidence interval 1.41 to 4.00), "
        "doubling in 1.00 years (0.50 to 2.00). The interval takes all errors for independent; if those of one year go "
        "together, it is 0.71 to 5.66 a year, doubling 0.40 to none at all."
    )


def test_values_that_shrink_have_no_doubling() -> None:
    shrinking = Rate(log2=-1.0, lower_log2=-2.0, upper_log2=-0.5)
    assert shrinking.doubling_years == (math.inf, math.inf, math.inf)
    (line,) = describe_growth(Growth(level=0.95, num_observations=9, rate=shrinking, by_year=None))
    assert "a factor of 0.50 a year (95 % confidence interval 0.25 to 0.71), no doubling (no growth)." in line


@pytest.mark.parametrize(
    ("value", "expected"),
    [(1234.5, "1,230 GB"), (0.456, "0.456 GB"), (80.0, "80 GB"), (-96.04, "-96 GB"), (4.68e25, "4.68e+25 GB")],
)
def test_amounts_are_written_with_three_significant_digits(value: float, expected: str) -> None:
    assert format_amount(value, "GB") == expected


def test_rows_that_are_dated_after_this_year_are_counted() -> None:
    series = make_yearly(2016, [2.0**year for year in range(8)])
    assert describe_future(series, 2023) == ""
    assert describe_future(series, 2022) == (
        "1 of 8 rows is dated after this year and counts as what was observed (the latest in 2023): leave out what is "
        "a plan, or a wrong date"
    )
    assert describe_future(series, 2020).startswith("3 of 8 rows are dated after this year and count as")
