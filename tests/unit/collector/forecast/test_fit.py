"""What a forecast is fitted on, what it says, and what it refuses."""

import math
from pathlib import Path

import pandas as pd
import pytest

from bench.errors import UserError
from collector.forecast.fit import describe_forecast, fit_forecast, format_gb, tabulate_forecast
from collector.forecast.gpu_table import load_gpu_table
from memory_tables import GOOD_ROW, HEADER, make_bending_table, make_doubling_table, make_table, read_row


def test_frontier_is_the_largest_gpu_of_each_year_whatever_its_segment() -> None:
    table = make_doubling_table()
    extra = {"name": "Big", "year": 2010, "date": 2010.9, "memory_gb": 7.0, "segment": "workstation"}
    tied = {"name": "Twin", "year": 2008, "date": 2008.9, "memory_gb": 1.0, "segment": "consumer"}
    observations = fit_forecast(pd.concat([table, pd.DataFrame([extra, tied])]), year=2021).observations.set_index(
        "year"
    )
    assert observations.at[2010, "name"] == "Big"
    assert observations.at[2010, "memory_gb"] == 7.0
    assert observations.at[2010, "date"] == 2010.5
    assert observations.at[2008, "name"] == "GPU 2008, Twin"
    assert len(observations) == 13


def test_series_all_takes_each_datacenter_gpu_at_its_month() -> None:
    table = load_gpu_table()
    observations = fit_forecast(table, year=2030, series="all").observations
    assert len(observations) == (table["segment"] == "datacenter").sum()
    assert "GeForce RTX 4090" not in observations["name"].tolist()
    assert observations.set_index("name").at["Tesla T4", "date"] == pytest.approx(2018 + 8.5 / 12)


def test_exact_doubling_is_found_and_continued() -> None:
    forecast = fit_forecast(make_doubling_table(), year=2024)
    log_linear = read_row(tabulate_forecast(forecast).set_index("candidate"), "log-linear")
    assert forecast.doubling.years == pytest.approx(2.0)
    assert log_linear["memory_gb"] == pytest.approx(256.0)
    assert (
        describe_forecast(forecast)[-1] == "Doubling time (log-linear): 2.0 years, 95 % confidence interval 2.0 to 2.0."
    )


def test_memory_that_shrinks_has_no_doubling_time() -> None:
    table = make_doubling_table()
    forecast = fit_forecast(table.assign(memory_gb=1 / table["memory_gb"]), year=2021)
    assert forecast.doubling.years == math.inf
    assert describe_forecast(forecast)[-1] == "Doubling time (log-linear): memory does not grow in these data."


def test_growth_that_may_be_none_has_a_doubling_time_without_an_upper_bound() -> None:
    table = make_table(list(range(2008, 2018)), [4.0, 9.0, 3.0, 8.0, 5.0, 9.0, 4.0, 9.0, 5.0, 8.0])
    forecast = fit_forecast(table, year=2020)
    assert math.isfinite(forecast.doubling.years)
    assert forecast.doubling.upper_years == math.inf
    assert describe_forecast(forecast)[-1].endswith("to no doubling at all.")


def test_forecast_of_zero_or_less_is_refused_in_words_and_without_a_number() -> None:
    forecast = fit_forecast(make_bending_table(), year=2026)
    asked = tabulate_forecast(forecast).set_index("candidate")
    for degree in (2, 3, 4):
        row = read_row(asked, f"polynomial {degree}")
        expected = f"polynomial {degree} would give -95 GB for 2026, and no GPU has zero or less memory"
        assert row["refusal"] == expected
        assert row[["memory_gb", "lower_gb", "upper_gb"]].isna().all()
    assert read_row(asked, "log-linear")["refusal"] is None
    assert read_row(asked, "log-linear")["lower_gb"] > 0
    assert describe_forecast(forecast)[1].startswith("polynomial 2: no forecast; polynomial 2 would give -95 GB")
    assert "Fewer than two candidates give a forecast: there is nothing to compare." in describe_forecast(forecast)


def test_years_before_the_bend_are_not_refused() -> None:
    predictions = fit_forecast(make_bending_table(), year=2026).predictions.set_index(["candidate", "year"])
    assert predictions.at[("polynomial 2", 2021), "memory_gb"] == pytest.approx(20.0)
    assert predictions.at[("polynomial 2", 2021), "refusal"] is None
    assert predictions.at[("polynomial 2", 2023), "refusal"] is not None


def test_lower_bound_of_zero_or_less_is_said_in_words() -> None:
    years = list(range(2008, 2020))
    forecast = fit_forecast(make_table(years, [6.0, 1.0, 7.0, 2.0, 6.0, 1.0, 7.0, 2.0, 6.0, 1.0, 7.0, 2.0]), year=2020)
    row = read_row(tabulate_forecast(forecast).set_index("candidate"), "polynomial 2")
    assert row["memory_gb"] > 0
    assert math.isnan(row["lower_gb"])
    assert row["refusal"] is None
    assert "95 % prediction interval from zero or less, which no GPU has, to" in describe_forecast(forecast)[1]


@pytest.mark.parametrize(
    ("year", "words"),
    [(1999, "before or inside"), (2012, "before or inside"), (2020, "before or inside"), (2046, "25 years past")],
)
def test_year_before_inside_or_far_past_the_data_is_refused(year: int, words: str) -> None:
    with pytest.raises(UserError, match=f"--year {year}: .*{words}.* give a year from 2021 to 2045"):
        fit_forecast(make_doubling_table(), year=year)


@pytest.mark.parametrize("year", [2021, 2045])
def test_first_and_last_year_allowed_are_answered(year: int) -> None:
    assert fit_forecast(make_doubling_table(), year=year).predictions["year"].max() == year


def test_table_with_too_few_dates_is_refused_by_name(tmp_path: Path) -> None:
    path = tmp_path / "own.csv"
    path.write_text("\n".join([HEADER, GOOD_ROW, GOOD_ROW, GOOD_ROW]))
    with pytest.raises(UserError, match=r"own\.csv: years with a release: 1, and a forecast needs at least 8"):
        fit_forecast(load_gpu_table(path), year=2030)
    consumer = make_doubling_table().assign(segment="consumer")
    with pytest.raises(UserError, match="months with a release of a datacenter GPU: 0"):
        fit_forecast(consumer, year=2030, series="all")


@pytest.mark.parametrize(
    ("memory_gb", "expected"), [(1234.5, "1,230 GB"), (0.456, "0.456 GB"), (80.0, "80 GB"), (-96.04, "-96 GB")]
)
def test_memory_is_written_with_three_significant_digits(memory_gb: float, expected: str) -> None:
    assert format_gb(memory_gb) == expected
