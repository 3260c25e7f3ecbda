"""Which releases a series is made of."""

import pandas as pd
import pytest

from bench.errors import UserError
from collector.forecast.gpu_table import load_gpu_table, make_gpu_series
from collector.forecast.series import find_records
from memory_tables import make_doubling_table, make_releases

EIGHT_YEARS = [(2000.5 + year, 2.0**year) for year in range(8)]


def test_frontier_is_the_largest_gpu_of_each_year_whatever_its_segment() -> None:
    table = make_doubling_table()
    extra = {"name": "Big", "year": 2010, "date": 2010.9, "memory_gb": 7.0, "segment": "workstation"}
    tied = {"name": "Twin", "year": 2008, "date": 2008.9, "memory_gb": 1.0, "segment": "consumer"}
    series = make_gpu_series(pd.concat([table, pd.DataFrame([extra, tied])]))
    observations = series.observations.set_index("year")
    assert observations.at[2010, "name"] == "Big"
    assert observations.at[2010, "value"] == 7.0
    assert observations.at[2010, "date"] == 2010.5
    assert observations.at[2008, "name"] == "GPU 2008, Twin"
    assert len(observations) == 13
    assert len(series.releases) == 15


def test_series_all_takes_each_datacenter_gpu_at_its_month() -> None:
    table = load_gpu_table()
    observations = make_gpu_series(table, "all").observations
    assert len(observations) == (table["segment"] == "datacenter").sum()
    assert "GeForce RTX 4090" not in observations["name"].tolist()
    assert observations.set_index("name").at["Tesla T4", "date"] == pytest.approx(2018 + 8.5 / 12)


def test_median_of_two_values_is_their_geometric_mean() -> None:
    series = make_releases([*EIGHT_YEARS, (2000.7, 4.0), (2007.1, 1.0), (2007.2, 1000.0)], "median")
    values = series.observations.set_index("year")["value"]
    assert values[2000] == pytest.approx(2.0)  # of 1 and 4
    assert values[2007] == pytest.approx(128.0)  # of 1, 128 and 1,000
    assert series.observations["date"].tolist() == [2000.5 + year for year in range(8)]


def test_record_highs_leave_out_what_only_equals_a_record_and_the_smaller_of_one_day() -> None:
    rows = pd.DataFrame(
        {
            "name": list("abcdef"),
            "year": 2000,
            "date": [2000.1, 2000.2, 2000.3, 2000.4, 2000.4, 2000.5],
            "value": [2.0, 1.0, 2.0, 3.0, 5.0, 4.0],
        }
    )
    assert find_records(rows)["name"].tolist() == ["a", "e"]


def test_series_with_too_few_dates_is_refused_by_name() -> None:
    assert len(make_releases(EIGHT_YEARS, "frontier").observations) == 8
    with pytest.raises(UserError, match=r"releases\.csv: years with a value: 7, and a forecast needs 8 or more"):
        make_releases(EIGHT_YEARS[1:], "frontier")
    with pytest.raises(UserError, match="dates of record highs: 1"):
        make_releases([(date, 1.0) for date, _ in EIGHT_YEARS], "records")
    with pytest.raises(UserError, match=r"GPU table: dates with a value: 0"):
        make_gpu_series(make_doubling_table().assign(segment="consumer"), "all")
