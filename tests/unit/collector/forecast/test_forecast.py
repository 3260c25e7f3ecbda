"""The GPU table, the fits on it, their refusals and the plot: numbers worked out by hand or by another method."""

import math
import os
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import vl_convert
from scipy import stats

from bench.errors import UserError
from collector.forecast.fit import describe_forecast, fit_forecast, format_gb, tabulate_forecast
from collector.forecast.gpu_table import load_gpu_table
from collector.forecast.trend import CANDIDATES, LOG_LINEAR, measure_doubling, predict_memory
from collector.report.plots.forecast import plot_forecast

HEADER = "name,vendor,release,memory_gb,segment,source"
GOOD_ROW = "Tesla T4,NVIDIA,2018-09,16,datacenter,datasheet"

# Epoch's name for each of our rows that its file holds with a memory or a date.
EPOCH_NAMES = {
    "GeForce GTX 280": "NVIDIA GeForce GTX 280",
    "GeForce GTX 580": "NVIDIA GeForce GTX 580",
    "Tesla K20": "NVIDIA Tesla K20c",
    "Tesla K20X": "NVIDIA Tesla K20X",
    "GeForce GTX TITAN": "NVIDIA GeForce GTX TITAN",
    "Quadro K6000": "NVIDIA Quadro K6000",
    "Tesla K40": "NVIDIA Tesla K40s",
    "Tesla K80 (one of two GPUs)": "NVIDIA Tesla K80",
    "GeForce GTX TITAN X": "NVIDIA GeForce GTX TITAN X",
    "Tesla M60 (one of two GPUs)": "NVIDIA TESLA M60",
    "Tesla M40": "NVIDIA M40",
    "Tesla P100": "NVIDIA P100",
    "GeForce GTX 1080": "NVIDIA GeForce GTX 1080",
    "Tesla P40": "NVIDIA P40",
    "Quadro P6000": "NVIDIA Quadro P6000",
    "GeForce GTX 1080 Ti": "NVIDIA GeForce GTX 1080 Ti",
    "Tesla V100": "NVIDIA Tesla V100 SXM2",
    "TITAN V": "NVIDIA Titan V",
    "Tesla V100 32 GB": "NVIDIA Tesla V100 SXM2 32 GB",
    "Quadro RTX 8000": "NVIDIA Quadro RTX 8000",
    "Tesla T4": "NVIDIA Tesla T4",
    "GeForce RTX 2080 Ti": "NVIDIA GeForce RTX 2080 Ti 11GB",
    "Tesla V100S": "NVIDIA Tesla V100S PCIe 32 GB",
    "A100 40 GB": "NVIDIA A100 SXM4 40 GB",
    "GeForce RTX 3090": "NVIDIA GeForce RTX 3090",
    "RTX A6000": "NVIDIA RTX A6000",
    "A40": "NVIDIA A40 PCIe",
    "A100 80 GB": "NVIDIA A100 SXM4 80 GB",
    "A10": "NVIDIA A10 PCIe",
    "Instinct MI250X": "AMD Radeon Instinct MI250X",
    "H100": "NVIDIA H100 SXM5 80GB",
    "GeForce RTX 4090": "NVIDIA GeForce RTX 4090",
    "L40": "NVIDIA L40",
    "Radeon RX 7900 XTX": "AMD Radeon RX 7900 XTX",
    "RTX 6000 Ada Generation": "NVIDIA RTX 6000 Ada Generation",
    "Data Center GPU Max 1100": "Intel Data Center GPU Max 1100",
    "Data Center GPU Max 1550": "Intel Data Center GPU Max 1550",
    "L4": "NVIDIA L4",
    "Instinct MI300X": "AMD Instinct MI300X",
    "H200": "NVIDIA H200 SXM",
    "Instinct MI325X": "AMD Instinct MI325X",
    "B200": "NVIDIA B200",
    "Instinct MI355X": "AMD Instinct MI355X",
    "B300": "NVIDIA GB300 (Blackwell Ultra)",
}
MEMORY_TOLERANCE = 0.03  # Epoch counts some megabytes in thousands: 1.024 for 1 GB, 1.536 for 1.5 GB
RELEASE_TOLERANCE_MONTHS = 2
EPOCH_DIFFERENCES = {
    "Tesla K80 (one of two GPUs)": "memory: Epoch counts the board with both GPUs",
    "Tesla M60 (one of two GPUs)": "memory: Epoch counts the board with both GPUs",
    "H200": "release: Epoch has the later NVL version's month",
}


def make_table(years: list[int], memory_gb: list[float]) -> pd.DataFrame:
    """One datacenter GPU a year, released at its middle."""
    return pd.DataFrame(
        {
            "name": [f"GPU {year}" for year in years],
            "year": years,
            "date": [year + 0.5 for year in years],
            "memory_gb": memory_gb,
            "segment": "datacenter",
        }
    )


def make_doubling_table() -> pd.DataFrame:
    """Exactly 1 GB in 2008, doubling every two years, to 64 GB in 2020."""
    years = list(range(2008, 2021))
    return make_table(years, [2 ** ((year - 2008) / 2) for year in years])


def make_bending_table() -> pd.DataFrame:
    """Exactly 101 - (year - 2012)^2: 37 GB in 2004 and 2020, 1 GB in 2022, and below zero from 2023 on."""
    years = list(range(2004, 2021))
    return make_table(years, [101.0 - (year - 2012) ** 2 for year in years])


def make_noisy_table() -> pd.DataFrame:
    rng = np.random.default_rng(7)
    years = list(range(2008, 2024))
    return make_table(years, [2 ** (1 + (year - 2008) / 2.5 + rng.normal(0, 0.5)) for year in years])


def predict_closed_form(
    table: pd.DataFrame, degree: int, date: float, response: np.ndarray
) -> tuple[float, float, float]:
    """Return prediction and 95 % bounds by the textbook: x0'b -+ t sqrt(s2 (1 + x0' (X'X)^-1 x0)), years from 2016."""
    design = np.vander(table["date"].to_numpy() - 2016, degree + 1)
    point = np.vander([date - 2016], degree + 1)[0]
    coefficients = np.polyfit(table["date"] - 2016, response, degree)
    freedom = len(table) - degree - 1
    variance = ((response - design @ coefficients) ** 2).sum() / freedom
    spread = math.sqrt(variance * (1 + point @ np.linalg.inv(design.T @ design) @ point))
    reach = stats.t.ppf(0.975, freedom) * spread
    centre = float(point @ coefficients)
    return centre, centre - reach, centre + reach


# The table


def test_shipped_table_covers_every_year_with_named_and_sourced_gpus():
    table = load_gpu_table()
    assert len(table) >= 40
    assert set(table["year"]) == set(range(2008, 2027))
    assert table["name"].is_unique
    assert table["source"].str.len().min() > 20


def test_release_becomes_the_decimal_year_at_the_middle_of_its_month():
    t4 = load_gpu_table().set_index("name").loc["Tesla T4"]
    assert t4["memory_gb"] == 16.0
    assert t4["year"] == 2018
    assert t4["date"] == pytest.approx(2018 + 8.5 / 12)


def test_own_table_may_hold_further_columns_and_a_byte_order_mark(tmp_path):
    path = tmp_path / "own.csv"
    path.write_text(f"{HEADER},price\n{GOOD_ROW},2299\n", encoding="utf-8-sig")
    assert load_gpu_table(path)["name"].tolist() == ["Tesla T4"]


@pytest.mark.parametrize(
    ("content", "words"),
    [
        ("", ["line 1", "'name' is missing", HEADER]),
        (f"{HEADER.replace('memory_gb', 'memory')}\n{GOOD_ROW}\n", ["line 1", "'memory_gb'", "found 'memory': rename"]),
        (f"{HEADER.replace(',', ';')}\n", ["line 1", "'name' is missing"]),
        (f"{HEADER}\n{GOOD_ROW}\nX,AMD,2019-01,16 GB,datacenter,s\n", ["line 3", "memory_gb", "'16 GB'", "as in 16"]),
        (f"{HEADER}\nX,AMD,2019-01,0,datacenter,s\n", ["line 2", "memory_gb", "'0'", "above zero"]),
        (f"{HEADER}\nX,AMD,2019-01,-8,datacenter,s\n", ["line 2", "memory_gb", "'-8'"]),
        (f"{HEADER}\nX,AMD,2019-01,nan,datacenter,s\n", ["line 2", "memory_gb", "'nan'"]),
        (f"{HEADER}\nX,AMD,2019-01,1e999,datacenter,s\n", ["line 2", "memory_gb", "'1e999'"]),
        (f"{HEADER}\nX,AMD,2019-01,,datacenter,s\n", ["line 2", "memory_gb", "''"]),
        (f"{HEADER}\nX,AMD,2019-13,8,datacenter,s\n", ["line 2", "release", "'2019-13'", "2018-09"]),
        (f"{HEADER}\nX,AMD,March 2019,8,datacenter,s\n", ["line 2", "release", "'March 2019'"]),
        (f"{HEADER}\nX,AMD,2019-01,8,server,s\n", ["line 2", "segment", "'server'", "workstation"]),
        (f"{HEADER}\n ,AMD,2019-01,8,datacenter,s\n", ["line 2", "name", "empty"]),
        (f"{HEADER}\nX,AMD,2019-01,8,datacenter\n", ["line 2", "more or fewer fields"]),
        (f"{HEADER}\nX,AMD,2019-01,8,datacenter,a, b\n", ["line 2", "more or fewer fields", "quote a text"]),
        (f'{HEADER}\nX,AMD,2019-01,8,datacenter,"never closed\n', ["not a CSV file"]),
    ],
)
def test_faulty_table_is_refused_with_file_line_and_column(tmp_path, content, words):
    path = tmp_path / "own.csv"
    path.write_text(content)
    with pytest.raises(UserError) as caught:
        load_gpu_table(path)
    assert [word for word in [str(path), *words] if word not in str(caught.value)] == []


def test_table_that_cannot_be_read_is_refused_by_name(tmp_path):
    binary = tmp_path / "binary.csv"
    binary.write_bytes(b"\xff\xfe\x00")
    for path, words in [(tmp_path / "none.csv", "No such file"), (tmp_path, "directory"), (binary, "UTF-8")]:
        with pytest.raises(UserError, match=words) as caught:
            load_gpu_table(path)
        assert str(path) in str(caught.value)


def find_epoch_file() -> Path:
    beside = Path(__file__).resolve().parents[5] / "shared" / "forecast-data"
    return Path(os.environ.get("BENCHMATRIX_FORECAST_DATA", beside)) / "epoch_ml_hardware_2026-01.csv"


def describe_difference(row: pd.Series, epoch: pd.Series) -> str | None:
    memory_gb = epoch["Memory (bytes)"] / 1e9
    if not math.isnan(memory_gb) and abs(row["memory_gb"] / memory_gb - 1) > MEMORY_TOLERANCE:
        return f"memory: {row['memory_gb']:g} GB here, {memory_gb:g} GB there"
    year, month = (int(part) for part in epoch["Release date"].split("-")[:2])
    if abs(row["date"] - (year + (month - 0.5) / 12)) * 12 > RELEASE_TOLERANCE_MONTHS + 0.5:
        return f"release: {row['release']} here, {epoch['Release date']} there"
    return None


@pytest.mark.skipif(not find_epoch_file().exists(), reason=f"no {find_epoch_file().name}: see docs/forecast.md")
def test_shipped_table_agrees_with_epoch_but_for_the_differences_explained():
    epoch = pd.read_csv(find_epoch_file()).set_index("Hardware name")
    table = load_gpu_table().set_index("name")
    differences = {
        ours: difference
        for ours, theirs in EPOCH_NAMES.items()
        if (difference := describe_difference(table.loc[ours], epoch.loc[theirs]))
    }
    assert set(differences) == set(EPOCH_DIFFERENCES), differences
    kinds = {name: text.split(":")[0] for name, text in EPOCH_DIFFERENCES.items()}
    assert {name: text.split(":")[0] for name, text in differences.items()} == kinds


# What is fitted on


def test_frontier_is_the_largest_gpu_of_each_year_whatever_its_segment():
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


def test_series_all_takes_each_datacenter_gpu_at_its_month():
    table = load_gpu_table()
    observations = fit_forecast(table, year=2030, series="all").observations
    assert len(observations) == (table["segment"] == "datacenter").sum()
    assert "GeForce RTX 4090" not in observations["name"].tolist()
    assert observations.set_index("name").at["Tesla T4", "date"] == pytest.approx(2018 + 8.5 / 12)


# The fits


@pytest.mark.parametrize("candidate", CANDIDATES, ids=lambda candidate: candidate.name)
def test_prediction_and_interval_agree_with_the_closed_form(candidate):
    table = make_noisy_table()
    response = np.log2(table["memory_gb"].to_numpy()) if candidate.in_log2 else table["memory_gb"].to_numpy()
    expected = predict_closed_form(table, candidate.degree, 2027.5, response)
    if candidate.in_log2:
        expected = tuple(2**value for value in expected)
    row = predict_memory(candidate, table, np.array([2027.5])).iloc[0]
    answer = (row["memory_gb"], row["lower_gb"], row["upper_gb"])
    assert answer == pytest.approx(expected, rel=1e-6)


def test_doubling_time_agrees_with_the_closed_form():
    table = make_noisy_table()
    line = stats.linregress(table["date"], np.log2(table["memory_gb"]))
    reach = stats.t.ppf(0.975, len(table) - 2) * line.stderr
    doubling = measure_doubling(table)
    assert doubling.years == pytest.approx(1 / line.slope)
    assert doubling.lower_years == pytest.approx(1 / (line.slope + reach))
    assert doubling.upper_years == pytest.approx(1 / (line.slope - reach))


def test_exact_doubling_is_found_and_continued():
    forecast = fit_forecast(make_doubling_table(), year=2024)
    log_linear = tabulate_forecast(forecast).set_index("candidate").loc["log-linear"]
    assert forecast.doubling.years == pytest.approx(2.0)
    assert log_linear["memory_gb"] == pytest.approx(256.0)
    assert (
        describe_forecast(forecast)[-1] == "Doubling time (log-linear): 2.0 years, 95 % confidence interval 2.0 to 2.0."
    )


def test_memory_that_shrinks_has_no_doubling_time():
    table = make_doubling_table()
    forecast = fit_forecast(table.assign(memory_gb=1 / table["memory_gb"]), year=2021)
    assert forecast.doubling.years == math.inf
    assert describe_forecast(forecast)[-1] == "Doubling time (log-linear): memory does not grow in these data."


def test_growth_that_may_be_none_has_a_doubling_time_without_an_upper_bound():
    table = make_table(list(range(2008, 2018)), [4.0, 9.0, 3.0, 8.0, 5.0, 9.0, 4.0, 9.0, 5.0, 8.0])
    forecast = fit_forecast(table, year=2020)
    assert math.isfinite(forecast.doubling.years)
    assert forecast.doubling.upper_years == math.inf
    assert describe_forecast(forecast)[-1].endswith("to no doubling at all.")


@pytest.mark.parametrize("candidate", [CANDIDATES[0], LOG_LINEAR], ids=lambda candidate: candidate.name)
def test_95_percent_intervals_hold_95_percent_of_new_observations(candidate):
    rng = np.random.default_rng(20260101)
    dates, ahead = np.arange(2010, 2025) + 0.5, np.array([2028.5])
    trials, held = 400, 0
    for _ in range(trials):
        signal = 3 + (np.append(dates, ahead) - 2010) / 2.5
        noisy = signal + rng.normal(0, 0.4, signal.size)
        memory_gb = 2**noisy if candidate.in_log2 else 100 + noisy
        observations = pd.DataFrame({"date": dates, "memory_gb": memory_gb[:-1]})
        row = predict_memory(candidate, observations, ahead).iloc[0]
        held += row["lower_gb"] <= memory_gb[-1] <= row["upper_gb"]
    # 380 expected; 4 standard deviations of a binomial count are 4 * sqrt(400 * 0.95 * 0.05) = 17.4
    assert held == pytest.approx(380, abs=17)


# What is refused


def test_forecast_of_zero_or_less_is_refused_in_words_and_without_a_number():
    forecast = fit_forecast(make_bending_table(), year=2026)
    asked = tabulate_forecast(forecast).set_index("candidate")
    for degree in (2, 3, 4):
        row = asked.loc[f"polynomial {degree}"]
        expected = f"polynomial {degree} would give -95 GB for 2026, and no GPU has zero or less memory"
        assert row["refusal"] == expected
        assert row[["memory_gb", "lower_gb", "upper_gb"]].isna().all()
    assert asked.at["log-linear", "refusal"] is None
    assert asked.at["log-linear", "lower_gb"] > 0
    assert describe_forecast(forecast)[1].startswith("polynomial 2: no forecast; polynomial 2 would give -95 GB")
    assert "Fewer than two candidates give a forecast: there is nothing to compare." in describe_forecast(forecast)


def test_years_before_the_bend_are_not_refused():
    predictions = fit_forecast(make_bending_table(), year=2026).predictions.set_index(["candidate", "year"])
    assert predictions.at[("polynomial 2", 2021), "memory_gb"] == pytest.approx(20.0)
    assert predictions.at[("polynomial 2", 2021), "refusal"] is None
    assert predictions.at[("polynomial 2", 2023), "refusal"] is not None


def test_lower_bound_of_zero_or_less_is_said_in_words():
    years = list(range(2008, 2020))
    forecast = fit_forecast(make_table(years, [6.0, 1.0, 7.0, 2.0, 6.0, 1.0, 7.0, 2.0, 6.0, 1.0, 7.0, 2.0]), year=2020)
    row = tabulate_forecast(forecast).set_index("candidate").loc["polynomial 2"]
    assert row["memory_gb"] > 0
    assert math.isnan(row["lower_gb"])
    assert row["refusal"] is None
    assert "95 % prediction interval from zero or less, which no GPU has, to" in describe_forecast(forecast)[1]


@pytest.mark.parametrize(
    ("year", "words"),
    [(1999, "before or inside"), (2012, "before or inside"), (2020, "before or inside"), (2046, "25 years past")],
)
def test_year_before_inside_or_far_past_the_data_is_refused(year, words):
    with pytest.raises(UserError, match=f"--year {year}: .*{words}.* give a year from 2021 to 2045"):
        fit_forecast(make_doubling_table(), year=year)


@pytest.mark.parametrize("year", [2021, 2045])
def test_first_and_last_year_allowed_are_answered(year):
    assert fit_forecast(make_doubling_table(), year=year).predictions["year"].max() == year


def test_table_with_too_few_dates_is_refused_by_name(tmp_path):
    path = tmp_path / "own.csv"
    path.write_text("\n".join([HEADER, GOOD_ROW, GOOD_ROW, GOOD_ROW]))
    with pytest.raises(UserError, match=r"own\.csv: years with a release: 1, and a forecast needs at least 8"):
        fit_forecast(load_gpu_table(path), year=2030)
    consumer = make_doubling_table().assign(segment="consumer")
    with pytest.raises(UserError, match="months with a release of a datacenter GPU: 0"):
        fit_forecast(consumer, year=2030, series="all")


# The backtest


def test_backtest_of_exact_doubling_has_three_cases_without_error():
    backtest = fit_forecast(make_doubling_table(), year=2022).backtest
    log_linear = backtest[backtest["candidate"] == "log-linear"]
    assert log_linear["origin"].tolist() == [2015, 2016, 2017]  # eight years are known at the end of 2015
    assert log_linear["year"].tolist() == [2018, 2019, 2020]
    assert log_linear["error_log2"].tolist() == pytest.approx([0.0] * 3, abs=1e-9)


def test_backtest_never_sees_what_came_after_its_origin():
    table = make_noisy_table()
    changed = table.assign(memory_gb=table["memory_gb"].where(table["year"] < 2021, table["memory_gb"] * 100))
    before, after = (
        backtest[backtest["origin"] <= 2020].reset_index(drop=True)
        for backtest in (fit_forecast(each, year=2030).backtest for each in (table, changed))
    )
    pd.testing.assert_series_equal(before["predicted_gb"], after["predicted_gb"])
    assert (before["error_log2"] - after["error_log2"])[before["year"] >= 2021].max() == pytest.approx(math.log2(100))


def test_backtest_counts_refusals_and_leaves_them_out_of_the_error():
    # 2004 to 2011 lie on the parabola 30 - (year - 2006)^2: in 2014, where 5 GB came out, it is at 30 - 64 = -34 GB.
    memory_gb = [30.0 - (year - 2006) ** 2 for year in range(2004, 2012)] + [5.0] * 4
    forecast = fit_forecast(make_table(list(range(2004, 2016)), memory_gb), year=2017)
    backtest = forecast.backtest
    first = backtest[(backtest["candidate"] == "polynomial 2") & (backtest["origin"] == 2011)].iloc[0]
    assert first["year"] == 2014
    assert first["refused"]
    assert not first["inside"]
    assert math.isnan(first["error_log2"])
    scores = tabulate_forecast(forecast).set_index("candidate").loc["polynomial 2"]
    rest = backtest[(backtest["candidate"] == "polynomial 2") & ~backtest["refused"]]
    assert (2, len(rest)) == (scores["cases"], scores["cases"] - scores["refused"])


def test_root_mean_square_error_of_the_summary_is_that_of_the_cases():
    forecast = fit_forecast(make_noisy_table(), year=2030)
    errors = forecast.backtest.set_index("candidate").loc["log-linear", "error_log2"].tolist()
    expected = math.sqrt(sum(error**2 for error in errors) / len(errors))
    assert tabulate_forecast(forecast).set_index("candidate").at["log-linear", "rms_error_log2"] == pytest.approx(
        expected
    )


def test_log_linear_beats_the_polynomials_on_the_shipped_table():
    scores = tabulate_forecast(fit_forecast(load_gpu_table(), year=2030)).set_index("candidate")
    assert scores["rms_error_log2"].idxmin() == "log-linear"
    assert scores.at["log-linear", "refused"] == 0
    assert scores.at["polynomial 4", "refused"] > 0


def test_short_table_says_that_it_was_not_backtested():
    forecast = fit_forecast(make_table(list(range(2010, 2018)), [1, 2, 3, 4, 6, 8, 11, 16]), year=2020)
    assert forecast.backtest.empty
    assert "Backtest 3 years ahead: the data span too few years for one." in describe_forecast(forecast)[4]


@pytest.mark.parametrize(
    ("memory_gb", "expected"), [(1234.5, "1,230 GB"), (0.456, "0.456 GB"), (80.0, "80 GB"), (-96.04, "-96 GB")]
)
def test_memory_is_written_with_three_significant_digits(memory_gb, expected):
    assert format_gb(memory_gb) == expected


# The plot


def test_plot_names_the_gpus_and_leaves_refused_years_out():
    forecast = fit_forecast(make_bending_table(), year=2026)
    spec = plot_forecast(forecast).to_dict()
    bands, lines, points = (spec["datasets"][layer["data"]["name"]] for layer in spec["layer"])
    drawn = {row["year"] for row in lines if row["candidate"] == "polynomial 2" and row["memory_gb"] is not None}
    assert drawn == set(range(2004, 2023))
    assert "GPU 2012" in [row["name"] for row in points]
    assert set(bands[0]) == {"candidate", "year", "date", "memory_gb", "lower_gb", "upper_gb"}
    assert spec["width"] == "container"


def test_band_that_reaches_zero_is_drawn_to_the_edge_of_the_plot():
    years = list(range(2008, 2020))
    forecast = fit_forecast(make_table(years, [6.0, 1.0, 7.0, 2.0] * 3), year=2020)
    spec = plot_forecast(forecast).to_dict()
    bands = spec["datasets"][spec["layer"][0]["data"]["name"]]
    floor_gb = spec["layer"][0]["encoding"]["y"]["scale"]["domain"][0]
    assert floor_gb == 0.5  # one power of 2 below the least memory, 1 GB
    assert floor_gb in [row["memory_gb"] for row in bands if row["candidate"] == "polynomial 2"]


def test_plot_of_the_shipped_table_renders():
    chart = plot_forecast(fit_forecast(load_gpu_table(), year=2030)).properties(width=300)
    assert vl_convert.vegalite_to_png(chart.to_json()).startswith(b"\x89PNG")
