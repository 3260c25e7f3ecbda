"""Candidates, backtest, intervals, ranking, growth and gap: beside closed forms, by hand and by simulation."""

import math
from typing import Any

import numpy as np
import pandas as pd
import pytest
import vl_convert
from scipy import stats

from bench.errors import UserError
from collector.forecast.fit import (
    Forecast,
    calibrate,
    count_independent,
    describe_forecast,
    describe_future,
    describe_gap,
    fit_forecast,
    format_amount,
    measure_gap,
    measure_growth,
    rank_candidates,
    replay_origins,
)
from collector.forecast.series import Series, load_series
from collector.report.charts import plot_forecast


def make_yearly(first_year: int, values: list[float], **fields: Any) -> Series:
    """Return a series of one release a year, at its middle."""
    rows = [(f"GPU {first_year + n}", first_year + n, first_year + n + 0.5, value) for n, value in enumerate(values)]
    frame = pd.DataFrame(rows, columns=["name", "year", "date", "value"])
    return Series(kind="frontier", releases=frame, quantity="memory of one GPU", unit="GB", source="own.csv", **fields)


DOUBLING = make_yearly(2008, [2 ** (year / 2) for year in range(13)])
BENDING = make_yearly(2004, [101.0 - (year - 2012) ** 2 for year in range(2004, 2021)])
"""37 GB in 2004 and 2020, 1 GB in 2022, and below zero from 2023 on."""


def make_noisy(**fields: Any) -> Series:
    rng = np.random.default_rng(7)
    return make_yearly(2008, [2 ** (1 + year / 2.5 + rng.normal(0, 0.5)) for year in range(16)], **fields)


def make_cases(errors: list[float], *, horizon: int = 1, name: str = "log-linear") -> pd.DataFrame:
    rows = [(name, 2010 + n, horizon, 2010 + n + horizon, error) for n, error in enumerate(errors)]
    return pd.DataFrame(rows, columns=["candidate", "origin", "horizon", "year", "error_log2"])


def ask(series: Series, year: int, **options: Any) -> dict[str, Any]:
    """Return the row of each candidate in the year asked for."""
    return {row["candidate"]: row for row in fit_forecast(series, year=year, **options).asked.to_dict("records")}


def test_backtest_of_exact_doubling_has_no_error_and_never_sees_what_came_later() -> None:
    backtest = replay_origins(DOUBLING, 3)
    log_linear = backtest[backtest["candidate"] == "log-linear"]
    assert log_linear["horizon"].value_counts().to_dict() == {1: 5, 2: 4, 3: 3}  # eight years are known by 2015
    assert log_linear["error_log2"].tolist() == pytest.approx([0.0] * 12, abs=1e-9)
    last = backtest[(backtest["candidate"] == "last value") & (backtest["horizon"] == 2)]
    assert last["error_log2"].tolist() == pytest.approx([-1.0] * 4)
    changed = replay_origins(make_yearly(2008, [*DOUBLING.observations["value"][:-1], 1e6]), 3)
    assert changed["predicted"].tolist() == backtest["predicted"].tolist()  # the last year is no origin
    furthest = replay_origins(make_yearly(2000, [2.0**n for n in range(20)]), 19).groupby("origin")["horizon"].max()
    assert (furthest[2007], furthest[2009], furthest[2012]) == (7, 9, 7)  # no further than the data reach back
    assert replay_origins(make_yearly(2010, [1, 2, 3, 4, 6, 8, 11, 16]), 3).empty


def test_errors_that_share_years_count_less() -> None:
    assert count_independent([2010, 2013, 2016], 3) == pytest.approx(3.0)
    # Two origins one year apart, two years ahead, share one year: correlation 1/2, of squares 1/4: 4 / (2 + 2 / 4).
    assert count_independent([2010, 2011], 2) == pytest.approx(1.6)
    # Eight origins four ahead: 64 / (8 + 2 (7 * 9/16 + 6 * 4/16 + 5 * 1/16)).
    assert count_independent(range(8), 4) == pytest.approx(64 / 19.5)


def test_an_interval_is_calibrated_on_each_origin_once_and_only_where_that_is_honest() -> None:
    cases = make_cases([3.0, 3.0, 3.0, 1.0, 2.0]).assign(origin=[2010, 2010, 2010, 2011, 2012])
    calibration = calibrate(cases, 1)
    assert calibration is not None
    assert calibration.num_origins == 3
    assert calibration.spread_log2 == pytest.approx(np.sqrt((9 + 1 + 4) / 3))
    assert calibration.find_half_width(0.9) == pytest.approx(stats.t.ppf(0.95, 3) * np.sqrt(14 / 3))
    assert calibrate(make_cases([1.0, math.nan, 1.0, 1.0]), 1) is None
    assert calibrate(make_cases([0.5, 0.4], horizon=2), 2) is None  # worth 1.6
    assert calibrate(make_cases([]), 1) is None


def test_the_winner_has_the_least_error_of_those_that_always_answer_and_chance_makes_rivals() -> None:
    errors = {
        "polynomial": [0.0, 0.0, math.nan, 0.0, 0.0, 0.0, 0.0, 0.0],
        "log-linear": [0.1, -0.2, 0.15, -0.1, 0.2, -0.15, 0.1, 0.05],
        "last value": [0.2, -0.1, -0.2, 0.15, 0.1, 0.2, -0.05, 0.1],
    }
    cases = pd.concat([make_cases(each, name=name) for name, each in errors.items()])
    ranking = rank_candidates(cases, 1)
    assert (ranking.winner, ranking.rivals, ranking.num_independent) == ("log-linear", ("last value",), 8.0)
    assert ranking.scores["refused"].tolist() == [1, 0, 0]
    assert ranking.scores["rms_error_log2"].iloc[1] == pytest.approx(np.sqrt(np.mean(np.square(errors["log-linear"]))))
    worse = cases.assign(error_log2=cases["error_log2"].where(cases["candidate"] != "last value", 2.0))
    assert rank_candidates(worse, 1).rivals == ()
    shorter = pd.concat([make_cases([0.1] * 5, horizon=2), make_cases([0.1] * 2, horizon=3)])
    assert rank_candidates(shorter, 3).horizon == 2
    assert (rank_candidates(shorter, 1).winner, rank_candidates(shorter, 1).horizon) == (None, None)


def test_interval_is_the_factor_that_the_backtest_calibrates_and_never_shrinks() -> None:
    cases, row = fit_forecast(make_noisy(), year=2025).backtest, ask(make_noisy(), 2025)["log-linear"]
    calibration = calibrate(cases[(cases["candidate"] == "log-linear") & (cases["horizon"] == 2)], 2)
    assert calibration is not None
    factor = 2 ** calibration.find_half_width(0.95)
    assert [row["lower"], row["upper"]] == pytest.approx([row["value"] / factor, row["value"] * factor])
    rows = fit_forecast(make_noisy(), year=2030, max_factor=1e300).predictions.dropna(subset="upper")
    for _, widths in (rows["upper"] / rows["lower"]).groupby(rows["candidate"]):
        assert widths.to_numpy() == pytest.approx(widths.cummax().to_numpy())
    assert ask(make_noisy(), 2024, level=0.8)["log-linear"]["upper"] < ask(make_noisy(), 2024)["log-linear"]["upper"]


@pytest.mark.parametrize(
    ("series", "year", "name", "words"),
    [
        (BENDING, 2026, "polynomial", "would give -95 GB for 2026, and memory of one GPU is never zero or less"),
        # Up to 2011 a parabola that falls below zero in 2014; what came out was 5 GB and then rose again.
        (
            make_yearly(2004, [*(30.0 - (year - 2006) ** 2 for year in range(2004, 2012)), 5.0, 6.0, 8.0, 12.0]),
            2018,
            "polynomial",
            "cases, so nothing bounds its error",
        ),
        (make_yearly(2010, [1, 2.1, 4.2, 7.9, 16.4, 31, 66, 127]), 2020, "log-linear", "too few cases"),
        (make_noisy(), 2027, "last value", "that says anything: its bounds are a factor of "),
    ],
)
def test_what_is_no_forecast_is_refused_in_words_and_without_a_number(
    series: Series, year: int, name: str, words: str
) -> None:
    row = ask(series, year, max_factor=20.0)[name]
    assert words in row["refusal"]
    assert all(math.isnan(row[column]) for column in ("value", "lower", "upper"))


@pytest.mark.parametrize(
    ("year", "options", "words"),
    [
        (2020, {}, "--year 2020: lies before or inside the data, which end in 2020; give a year from 2021 to 2045"),
        (2046, {}, "lies more than 25 years past the data"),
        (2022, {"level": 1.0}, "--level 100: expected a percentage"),
    ],
)
def test_a_year_or_an_interval_that_is_none_is_refused(year: int, options: dict[str, float], words: str) -> None:
    with pytest.raises(UserError, match=words):
        fit_forecast(DOUBLING, year=year, **options)


def test_growth_agrees_with_the_closed_form_and_what_may_not_grow_never_doubles() -> None:
    table = make_noisy().observations
    line = stats.linregress(table["date"], np.log2(table["value"]))
    reach = stats.t.ppf(0.95, len(table) - 2) * line.stderr
    growth = measure_growth(table, 0.9)
    assert growth.rate == pytest.approx((line.slope, line.slope - reach, line.slope + reach))
    assert growth.by_year is None  # one observation a year: nothing goes together
    for value in (3.0, 5.0, 7.0, 1e9 / 3):  # the slope of equal values is a rounding error of either sign
        assert measure_growth(table.assign(value=value), 0.95).rate.doubling_years == (math.inf,) * 3
    assert measure_growth(table.assign(value=1 / table["value"]), 0.95).rate.doubling_years == (math.inf,) * 3


def test_interval_by_year_is_that_of_the_sandwich_estimator_for_clusters() -> None:
    rng = np.random.default_rng(3)
    years = np.repeat(np.arange(2000, 2020), 3)
    dates = years + rng.random(60)
    errors = rng.normal(0, 1, 20).repeat(3) + rng.normal(0, 0.5, 60)
    table = pd.DataFrame({"year": years, "date": dates, "value": np.exp2(0.5 * (dates - 2000) + errors)})
    by_year = measure_growth(table, 0.95).by_year
    assert by_year is not None
    # statsmodels 0.14, OLS(...).fit(cov_type="cluster", cov_kwds={"groups": years}, use_t=True).conf_int(0.05)
    assert by_year[1:] == pytest.approx((0.463769099595724, 0.614832804070743), rel=1e-9)


def test_gap_is_demand_times_its_factor_over_supply_with_the_interval_of_the_ratio() -> None:
    def forecast(doubling_years: float, noise: float = 0.0) -> Forecast:
        errors = np.random.default_rng(5).normal(0, noise, 20)
        return fit_forecast(make_yearly(2000, [2 ** (n / doubling_years + errors[n]) for n in range(20)]), year=2022)

    gap = measure_gap(forecast(2.0), forecast(1.0), factor=0.5)
    assert gap.value == pytest.approx(2.0**10)  # 22 years after 2000: 0.5 x 2^22 over 2^11
    # The same noise on both sides: each is off, and their ratio never is.
    same = measure_gap(forecast(2.0, 0.4), forecast(1.0, 0.4), factor=1.0)
    assert same.calibration is not None
    assert same.calibration.spread_log2 == pytest.approx(0.0, abs=1e-9)
    assert describe_gap(same)[-1].startswith("2022: demand over supply is forecast to be 2,050: so many devices")
    short = fit_forecast(make_yearly(2010, [2.0**year for year in range(10)]), year=2022)
    refused = measure_gap(short, forecast(1.0, 0.3), factor=1.0)
    assert describe_gap(refused)[-1].endswith("no forecast, as one of the two has none.")
    with pytest.raises(UserError, match="--demand-factor 0: expected a number above 0"):
        measure_gap(short, short, factor=0.0)


def test_the_shipped_table_in_words_and_drawn() -> None:
    forecast = fit_forecast(load_series(), year=2030)
    lines = describe_forecast(forecast)
    assert lines[0] == "Memory of one GPU, the largest of the year, in 2030, from 19 observations, 2008 to 2026:"
    assert lines[1].startswith(
        "The winner of the backtest is log-linear: 1,040 GB (95 % prediction interval 263 to 4,140 GB"
    )
    assert "from the ends of 8 years, worth 3.3 independent cases" in lines[1]
    assert "a factor of 1.30 a year (95 % confidence interval 1.27 to 1.34), doubling in 2.62 years" in lines[-1]
    chart = plot_forecast(forecast).properties(width=300)
    assert vl_convert.vegalite_to_png(chart.to_json()).startswith(b"\x89PNG")
    spec = chart.to_dict()
    drawn = spec["datasets"][spec["layer"][0]["data"]["name"]]
    assert {row["candidate"] for row in drawn} == {"log-linear"}


def test_amounts_have_three_significant_digits_and_rows_of_the_future_are_counted() -> None:
    amounts = [format_amount(value, "GB") for value in (1234.5, 0.456, 80.0, -96.04, 4.68e25)]
    assert amounts == ["1,230 GB", "0.456 GB", "80 GB", "-96 GB", "4.68e+25 GB"]
    series = make_yearly(2016, [2.0**year for year in range(8)])
    assert describe_future(series, 2023) == ""
    assert describe_future(series, 2022).startswith("1 of 8 rows is dated after this year and counts as what was obs")
