"""Make series of dated values in a unit: all releases, the largest of each year, or the record highs."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

import numpy as np
import pandas as pd

from bench.errors import UserError

SeriesKind = Literal["frontier", "median", "all", "records"]

MIN_DATES = 8
"""Fewest different dates to fit on: five coefficients of the polynomial of degree 4, and three for the spread."""
_DATES_OF_KIND: dict[SeriesKind, str] = {
    "frontier": "years with a value",
    "median": "years with a value",
    "all": "dates with a value",
    "records": "dates of record highs",
}
COLUMNS = ["name", "year", "date", "value"]


@dataclass(frozen=True, kw_only=True)
class DatedValues:
    """What was read of a table: one row per release.

    rows: name, year (calendar), date (decimal year), value (in `unit`, above zero), in the order of the dates.
    """

    rows: pd.DataFrame
    quantity: str
    """In words, such as `memory of one GPU`."""
    unit: str
    source: str
    """The file or URL."""
    attribution: str = ""
    """Whom to name wherever the values are used; empty where the file names nobody."""
    remarks: tuple[str, ...] = ()
    """What was left out of the table, and why."""


@dataclass(frozen=True, kw_only=True)
class Series:
    """What a forecast is fitted on: `observations`, selected from the releases of `values` as `kind` says."""

    kind: SeriesKind
    values: DatedValues
    observations: pd.DataFrame
    """name, year, date, value: what is forecast, and what a backtest holds forecasts against."""

    @property
    def releases(self) -> pd.DataFrame:
        """Every release, the observations' and the others."""
        return self.values.rows

    @property
    def first_year(self) -> int:
        """The calendar year of the first observation."""
        return int(self.observations["year"].min())

    @property
    def last_year(self) -> int:
        """The calendar year of the last observation."""
        return int(self.observations["year"].max())

    @property
    def subject(self) -> str:
        """Return what the values are, in words."""
        quantity = self.values.quantity
        return {
            "frontier": f"{quantity}, the largest of the year",
            "median": f"{quantity}, the median of the year",
            "all": quantity,
            "records": f"{quantity}, record highs",
        }[self.kind]


def make_series(values: DatedValues, kind: SeriesKind) -> Series:
    """Select the observations of a series.

    "frontier": the largest value of each calendar year, dated to the middle of the year; a year without a release has
    no observation. "median": the median (in the logarithm) of each year, dated likewise. "all": each release.
    "records": each release whose value is above all earlier ones.
    Raises UserError where fewer than MIN_DATES different dates are left.
    """
    rows = values.rows.sort_values(["date", "value"], ignore_index=True)[COLUMNS]
    observations = _SELECTIONS[kind](rows)
    num_dates = observations["date"].nunique()
    if num_dates < MIN_DATES:
        raise UserError(
            f"{values.source}: {_DATES_OF_KIND[kind]}: {num_dates}, and a forecast needs {MIN_DATES} or more. Add rows."
        )
    return Series(kind=kind, values=values, observations=observations)


def find_largest_of_years(rows: pd.DataFrame) -> pd.DataFrame:
    """Return the largest value of each calendar year at its middle; names that share it are joined."""
    largest = rows[rows["value"] == rows.groupby("year")["value"].transform("max")]
    frontier = largest.groupby("year", as_index=False).agg(name=("name", ", ".join), value=("value", "first"))
    return frontier.assign(date=frontier["year"] + 0.5)[COLUMNS]


def find_medians_of_years(rows: pd.DataFrame) -> pd.DataFrame:
    """Return the median of each calendar year's values at its middle; between two middle ones their geometric mean."""
    logs = np.log2(rows["value"]).groupby(rows["year"])
    medians = pd.DataFrame({"value": np.exp2(logs.median()), "count": logs.size()}).reset_index()
    names = medians["count"].map("median of {}".format)
    return medians.assign(date=medians["year"] + 0.5, name=names)[COLUMNS]


def find_records(rows: pd.DataFrame) -> pd.DataFrame:
    """Return the rows, in the order of their dates, whose value is above those of all earlier rows.

    Of several on one date the largest counts: `rows` are sorted by date and value, and the smaller ones are dropped.
    """
    ordered = rows.sort_values(["date", "value"]).drop_duplicates("date", keep="last")
    before = ordered["value"].cummax().shift()
    return ordered[before.isna() | (ordered["value"] > before)].reset_index(drop=True)


_SELECTIONS: dict[SeriesKind, Callable[[pd.DataFrame], pd.DataFrame]] = {
    "frontier": find_largest_of_years,
    "median": find_medians_of_years,
    "all": lambda rows: rows,
    "records": find_records,
}
