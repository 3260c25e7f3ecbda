"""Tables of dated values: what is read of them, what is left out, what is refused, which series they make."""

import math
import os
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from bench.errors import UserError
from collector.forecast.fit import measure_growth
from collector.forecast.series import Request, Series, SeriesKind, load_series, parse_date

EPOCH = (
    "Hardware name,Manufacturer,Type,Notes,Release date,Memory (bytes)\n"
    'A,NVIDIA,GPU,"two\nlines",2020-01-01,16e9\n'
    "B,AMD,GPU,,2021-06-15,\n"
    "C,NVIDIA,GPU,,,32e9\n"
    "D,NVIDIA,GPU,,2022-12-31,64000000000.0\n"
    "E,NVIDIA,GPU,,2023-05-01,230000000\n"
)
MORE = "".join(f"more,NVIDIA,GPU,,20{year:02}-01-01,1e9\n" for year in range(5, 15))
EIGHT_YEARS = [(2000.5 + year, 2.0**year) for year in range(8)]
FOLDER = Path(
    os.environ.get("BENCHMATRIX_FORECAST_DATA", Path(__file__).resolve().parents[5] / "shared" / "forecast-data")
)
EPOCH_MODELS, EPOCH_HARDWARE = FOLDER / "epoch_ai_models_2025-06.csv", FOLDER / "epoch_ml_hardware_2026-01.csv"


def write(tmp_path: Path, text: str) -> Path:
    path = tmp_path / "own.csv"
    path.write_text(text, encoding="utf-8")
    return path


def make_releases(rows: list[tuple[float, float]], kind: SeriesKind) -> Series:
    frame = pd.DataFrame(
        [("x", int(date), date, value) for date, value in rows], columns=["name", "year", "date", "value"]
    ).sort_values("date")
    return Series(kind=kind, releases=frame, quantity="memory", unit="GB", source="own.csv")


def test_own_table_needs_a_date_and_a_value_and_options_name_other_columns(tmp_path: Path) -> None:
    rows = "".join(f"{year - 1990},{year}\n" for year in range(2000, 2010))
    series = load_series(write(tmp_path, f"value,date\n{rows}3,2021\n2.5e3,2020-07\n1,2020-01-01\n"))
    assert series.releases["value"].tolist()[-3:] == [1.0, 2500.0, 3.0]
    assert series.releases["date"].tolist()[-3:] == pytest.approx([2020 + 0.5 / 366, 2020 + 6.5 / 12, 2021.5])
    assert (series.kind, series.quantity, series.unit, series.attribution) == ("all", "value", "value", "")
    request = Request(date="day", value="price", unit="USD an hour")
    named = load_series(write(tmp_path, f"price,day\n{rows}"), request=request)
    assert (named.quantity, named.unit) == ("price", "USD an hour")


def test_epochs_hardware_is_known_by_its_columns_and_named_in_the_result(tmp_path: Path) -> None:
    series = load_series(write(tmp_path, EPOCH + MORE))
    assert series.releases["name"].tolist()[-3:] == ["A", "D", "E"]
    assert series.releases["value"].tolist()[-3:] == pytest.approx([16.0, 64.0, 0.23])
    assert series.unit == "GB"
    assert "https://epoch.ai/data/machine-learning-hardware, CC BY" in series.attribution
    assert series.remarks == (
        "1 of 15 rows left out: no value in 'Memory (bytes)'",
        "1 of 15 rows left out: no date in 'Release date'",
    )


def test_rows_are_selected_by_column_value_least_amount_and_year(tmp_path: Path) -> None:
    wanted = Request(where=("Manufacturer=NVIDIA",), at_least=0.5, since=2006)
    series = load_series(write(tmp_path, EPOCH + MORE), request=wanted)
    assert (series.first_year, series.releases["name"].tolist()[-2:]) == (2006, ["A", "D"])
    reasons = {remark.partition("left out: ")[2] for remark in series.remarks}
    assert reasons == {
        "not selected by --where", "no date in 'Release date'", "below 0.5 GB", "before 2006",
    }  # fmt: skip


@pytest.mark.parametrize(
    ("text", "options", "words"),
    [
        ("date,value\n2020,x\n", {}, ["line 2, column value", "'x' is not a number", "2.5e9"]),
        ("date,value\n2020,nan\n", {}, ["line 2", "'nan'"]),
        ("date,value\n2020,1e306\n", {}, ["line 2, column value", "'1e306' is beyond 1e-100 to 1e+100"]),
        ("date,value\n2020,0\n", {}, ["line 2, column value", "0 is not above zero", "--at-least"]),
        ("date,value\n2020-13,1\n", {}, ["line 2, column date", "'2020-13' is not a date", "2018-09-13"]),
        ("date,value\n2020,1,2\n", {}, ["own.csv:2", "found 3 cells, expected 2"]),
        ("day,value\n2020,1\n", {}, ["no column 'date'", "--date", "day, value"]),
        ("date,value\n2020,1\n", {"value": "valu"}, ["no column 'valu'", "--value", "'value'"]),
        ("date,value\n2020,1\n", {"where": ("kind=x",)}, ["no column 'kind'", "--where"]),
        ("date,value\n2020,1\n", {"quantity": "memory"}, ["--quantity memory", "no published table"]),
        (EPOCH, {"quantity": "weight"}, ["--quantity weight", "memory, release-price"]),
        ("", {}, ["own.csv", "the table has no rows"]),
        ('date,value\n2020,"1\n', {}, ["is not a CSV file"]),
        ("date;value\n2020;1\n", {}, ["own.csv:1", "separated by ';'", "expected commas"]),
        ("date,value,value\n2020,1,2\n", {}, ["own.csv:1", "several columns 'value'"]),
        ("date,value\n2020,1\n", {"at_least": math.nan}, ["--at-least nan: expected a number"]),
    ],
)
def test_faulty_table_is_refused_with_file_line_and_column(
    tmp_path: Path, text: str, options: dict[str, Any], words: list[str]
) -> None:
    path = write(tmp_path, text)
    with pytest.raises(UserError) as caught:
        load_series(path, request=Request(**options))
    assert [word for word in words if word not in str(caught.value)] == []


def test_a_file_that_cannot_be_read_and_an_unknown_series_are_named(tmp_path: Path) -> None:
    with pytest.raises(UserError, match=r"none\.csv: there is no such file"):
        load_series(tmp_path / "none.csv")
    (tmp_path / "binary.csv").write_bytes(b"\xff\xfe\x00")
    with pytest.raises(UserError, match=r"binary\.csv: is not a CSV file in UTF-8"):
        load_series(tmp_path / "binary.csv")
    with pytest.raises(UserError, match="--series best: unknown; it takes frontier, median, all"):
        load_series(None, "best")
    with pytest.raises(UserError, match="here: .* is not a date"):
        parse_date("2020-02-30", "here")


def test_frontier_is_the_largest_and_median_the_geometric_middle_of_each_year() -> None:
    rows = [*EIGHT_YEARS, (2000.7, 4.0), (2007.1, 1.0), (2007.2, 1000.0)]
    largest = make_releases(rows, "frontier").observations.set_index("year")
    assert (largest.at[2000, "value"], largest.at[2000, "date"], len(largest)) == (4.0, 2000.5, 8)
    median = make_releases(rows, "median").observations.set_index("year")["value"]
    assert median[2000] == pytest.approx(2.0)  # of 1 and 4
    assert median[2007] == pytest.approx(128.0)  # of 1, 128 and 1,000
    with pytest.raises(UserError, match=r"own\.csv: years with a value: 7, and a forecast needs 8 or more"):
        make_releases(EIGHT_YEARS[1:], "frontier")


def test_the_shipped_table_has_sourced_gpus_of_every_year_and_all_means_those_of_data_centers() -> None:
    series, everyone = load_series(), load_series(kind="all", request=Request(at_least=1e-9))
    assert (series.subject, series.remarks) == ("memory of one GPU, the largest of the year", ())
    assert set(series.observations["year"]) == set(range(2008, 2027))
    assert everyone.releases["name"].is_unique
    centers = load_series(kind="all")
    assert 40 <= len(centers.observations) < len(everyone.observations)
    assert "GeForce RTX 4090" not in centers.observations["name"].tolist()
    assert centers.observations.set_index("name").at["Tesla T4", "date"] == pytest.approx(2018 + 8.5 / 12)
    assert pd.read_csv(Path(series.source))["source"].str.len().min() > 20


@pytest.mark.skipif(not EPOCH_MODELS.exists(), reason=f"no {EPOCH_MODELS.name}: see docs/forecast.md")
def test_growth_of_epochs_series_is_as_epoch_publishes_it() -> None:
    notable: dict[str, Any] = {"where": ("Notability criteria",), "since": 2010}
    compute = load_series(EPOCH_MODELS, request=Request(quantity="training-compute", **notable))
    growth = measure_growth(compute.observations, 0.9)
    assert len(compute.observations) == 428
    # Epoch publishes 4.25 to 5.16; least squares with errors of equal spread is wider by 0.4 % on the lower side.
    assert growth.rate.factors == pytest.approx((4.68, 4.25, 5.16), rel=0.004)
    parameters = load_series(EPOCH_MODELS, request=Request(quantity="parameters", **notable))
    assert measure_growth(parameters.observations, 0.95).rate.factors == pytest.approx((2.04, 1.88, 2.22), abs=0.005)
    memory = load_series(EPOCH_HARDWARE, request=Request(at_least=1.0))
    years = measure_growth(memory.observations, 0.95).rate.doubling_years
    assert years == pytest.approx((2.67, 2.38, 3.05), abs=0.005)
