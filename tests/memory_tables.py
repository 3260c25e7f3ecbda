"""Tables of GPUs and series: lines of a file, and series whose values follow a known law."""

import numpy as np
import pandas as pd

from collector.forecast.gpu_table import make_gpu_series
from collector.forecast.series import DatedValues, Series, SeriesKind, make_series

HEADER = "name,vendor,release,memory_gb,segment,source"
GOOD_ROW = "Tesla T4,NVIDIA,2018-09,16,datacenter,datasheet"


def read_row(table: pd.DataFrame, label: str) -> pd.Series:
    """Return the one row of a table with this label; `loc` alone may mean several."""
    row = table.loc[label]
    assert isinstance(row, pd.Series)
    return row


def make_table(years: list[int], memory_gb: list[float]) -> pd.DataFrame:
    """Return one datacenter GPU a year, released at its middle."""
    return pd.DataFrame(
        {
            "name": [f"GPU {year}" for year in years],
            "year": years,
            "date": [year + 0.5 for year in years],
            "memory_gb": memory_gb,
            "segment": "datacenter",
        }
    )


def make_yearly(first_year: int, memory_gb: list[float]) -> Series:
    """Return the series of a table with one GPU a year."""
    return make_gpu_series(make_table(list(range(first_year, first_year + len(memory_gb))), memory_gb))


def make_doubling_table() -> pd.DataFrame:
    """Return exactly 1 GB in 2008, doubling every two years, to 64 GB in 2020."""
    years = list(range(2008, 2021))
    return make_table(years, [2 ** ((year - 2008) / 2) for year in years])


def make_bending_series() -> Series:
    """Return exactly 101 - (year - 2012)^2: 37 GB in 2004 and 2020, 1 GB in 2022, and below zero from 2023 on."""
    return make_yearly(2004, [101.0 - (year - 2012) ** 2 for year in range(2004, 2021)])


def make_noisy_table() -> pd.DataFrame:
    rng = np.random.default_rng(7)
    years = list(range(2008, 2024))
    return make_table(years, [2 ** (1 + (year - 2008) / 2.5 + rng.normal(0, 0.5)) for year in years])


def make_releases(rows: list[tuple[float, float]], kind: SeriesKind, *, unit: str = "GB") -> Series:
    """Return a series of releases, each a decimal year and a value."""
    frame = pd.DataFrame(
        {
            "name": [f"release {number}" for number in range(1, len(rows) + 1)],
            "year": [int(date) for date, _ in rows],
            "date": [date for date, _ in rows],
            "value": [value for _, value in rows],
        }
    )
    return make_series(DatedValues(rows=frame, quantity="memory", unit=unit, source="releases.csv"), kind)
