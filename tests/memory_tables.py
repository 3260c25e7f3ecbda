"""Tables of GPUs: lines of a file, and tables whose memory follows a known law."""

import numpy as np
import pandas as pd

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


def make_doubling_table() -> pd.DataFrame:
    """Return exactly 1 GB in 2008, doubling every two years, to 64 GB in 2020."""
    years = list(range(2008, 2021))
    return make_table(years, [2 ** ((year - 2008) / 2) for year in years])


def make_bending_table() -> pd.DataFrame:
    """Return exactly 101 - (year - 2012)^2: 37 GB in 2004 and 2020, 1 GB in 2022, and below zero from 2023 on."""
    years = list(range(2004, 2021))
    return make_table(years, [101.0 - (year - 2012) ** 2 for year in years])


def make_noisy_table() -> pd.DataFrame:
    rng = np.random.default_rng(7)
    years = list(range(2008, 2024))
    return make_table(years, [2 ** (1 + (year - 2008) / 2.5 + rng.normal(0, 0.5)) for year in years])
