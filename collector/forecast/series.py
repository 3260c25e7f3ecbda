"""Read a CSV table of dated values, checked value by value, and make the series that is forecast of it."""

import math
import re
from dataclasses import dataclass, replace
from difflib import get_close_matches
from functools import cached_property
from pathlib import Path
from typing import Literal, NamedTuple, get_args

import numpy as np
import pandas as pd

from bench.errors import UserError
from collector.files import read_csv

SeriesKind = Literal["frontier", "median", "all"]

MIN_DATES = 8
"""Fewest different dates to fit on: three coefficients of the polynomial, and what is needed for its spread."""
FIRST_YEAR, LAST_YEAR = 1900, 2100
"""Of dated values: published tables of models begin in 1950."""
MAX_VALUE = 1e100
"""Largest value of a table, and 1 by the smallest: the square of a sum of squares is a number still."""
SHIPPED_TABLE = Path(__file__).parent / "gpus.csv"
COLUMNS = ["name", "year", "date", "value"]
_DATE = re.compile(r"([0-9]{4}(?:-[0-9]{2})?)|([0-9]{4}-[0-9]{2}-[0-9]{2})(?:[T ].*)?")


class Quantity(NamedTuple):
    """A column of a published table with a value for each release."""

    column: str
    words: str
    unit: str
    scale: float = 1.0
    """What a published value is multiplied by to be in `unit`."""


class Publication(NamedTuple):
    """A published table, recognised by its columns of names and dates and one of its values."""

    name: str
    date: str
    quantities: dict[str, Quantity]
    """By the word for `--quantity`; the first is the default."""
    attribution: str = ""


# Epoch AI asks to be named in this form: https://epoch.ai/data/notable-ai-models-documentation, section Citation, and
# https://epoch.ai/data/machine-learning-hardware (both read in November 2026). The prices are published beside the code
# of arXiv 2405.21015, as `data/Hardware prices.csv`; the licence is that of Epoch's site.
PUBLICATIONS = (
    Publication("name", "release", {"memory": Quantity("memory_gb", "memory of one GPU", "GB")}),
    Publication(
        "Hardware name",
        "Release date",
        {
            "memory": Quantity("Memory (bytes)", "memory of one accelerator", "GB", 1e-9),
            "release-price": Quantity("Release price (USD)", "price of one accelerator", "USD"),
            "fp32-rate": Quantity(
                "FP32 (single precision) performance (FLOP/s)", "FP32 rate of one accelerator", "FLOP/s"
            ),
            "tensor-rate": Quantity(
                "Tensor-FP16/BF16 performance (FLOP/s)", "16-bit tensor rate of one accelerator", "FLOP/s"
            ),
        },
        "Epoch AI, 'Data on Machine Learning Hardware', https://epoch.ai/data/machine-learning-hardware, CC BY",
    ),
    Publication(
        "Model",
        "Publication date",
        {
            "training-compute": Quantity("Training compute (FLOP)", "training compute of one model", "FLOP"),
            "parameters": Quantity("Parameters", "parameters of one model", "parameters"),
        },
        "Epoch AI, 'Parameter, Compute and Data Trends in Machine Learning', "
        "https://epoch.ai/data/notable-ai-models, CC BY",
    ),
    Publication(
        "Hardware model",
        "Price date",
        {
            "price-per-hour": Quantity("Price per chip-hour (on-demand)", "price of one chip on demand", "USD an hour"),
            "purchase-price": Quantity("Price (hardware purchase)", "price of one chip", "USD"),
        },
        "Epoch AI, 'The rising costs of training frontier AI models, hardware prices', "
        "https://github.com/epoch-research/training-cost-trends, CC BY",
    ),
)


@dataclass(frozen=True, kw_only=True)
class Request:
    """Which values of a table are wanted."""

    quantity: str | None = None
    """The word of a quantity of a published table; None: its first."""
    value: str | None = None
    """The column of the values; None: the quantity's, in an own table `value`."""
    date: str | None = None
    unit: str | None = None
    """The unit of `value`; None: the name of its column."""
    where: tuple[str, ...] = ()
    """`COLUMN=VALUE`: only rows with this value; `COLUMN`: only rows with any value in it."""
    at_least: float | None = None
    since: int | None = None
    """Leave out rows with a smaller value, and rows dated before this year."""


@dataclass(frozen=True, kw_only=True)
class Series:
    """What a forecast is fitted on: observations, selected from the releases of a table as `kind` says.

    Raises UserError where fewer than MIN_DATES different dates are left.
    """

    kind: SeriesKind
    releases: pd.DataFrame
    """name, year (calendar), date (decimal year), value (in `unit`, above zero), in the order of the dates."""
    quantity: str
    """In words, such as `memory of one GPU`."""
    unit: str
    source: str
    attribution: str = ""
    """Whom to name wherever the values are used; empty where the table names nobody."""
    remarks: tuple[str, ...] = ()
    """What was left out of the table, and why."""

    def __post_init__(self) -> None:
        if (num_dates := self.observations["date"].nunique()) < MIN_DATES:
            what = "dates" if self.kind == "all" else "years"
            message = f"{what} with a value: {num_dates}, and a forecast needs {MIN_DATES} or more."
            raise UserError(f"{self.source}: {message}")

    @cached_property
    def observations(self) -> pd.DataFrame:
        """What is forecast, and what a backtest holds forecasts against; the columns of `releases`."""
        if self.kind == "all":
            return self.releases[COLUMNS]
        find = find_largest_of_years if self.kind == "frontier" else find_medians_of_years
        return find(self.releases)

    @property
    def first_year(self) -> int:
        return int(self.observations["year"].min())

    @property
    def last_year(self) -> int:
        return int(self.observations["year"].max())

    @property
    def subject(self) -> str:
        suffix = {"frontier": ", the largest of the year", "median": ", the median of the year", "all": ""}
        return self.quantity + suffix[self.kind]


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


def load_series(source: Path | None = None, kind: str | None = None, request: Request = Request()) -> Series:  # noqa: B008
    """Return the series of a CSV file; of the table of GPUs that comes with the tool where `source` is None.

    `kind` None: "frontier" of a table of GPUs, "all" of another; "all" of a table of GPUs means those for data centers.
    Raises UserError, with file, line and column, where the table cannot be read or a value is not what it holds.
    """
    if kind not in (None, *get_args(SeriesKind)):
        raise UserError(f"--series {kind}: unknown; it takes {', '.join(get_args(SeriesKind))}")
    if request.at_least is not None and not math.isfinite(request.at_least):
        raise UserError(f"--at-least {request.at_least:g}: expected a number, as in 16 or 2.5e9.")
    path = source or SHIPPED_TABLE
    (_, columns), *lines = read_csv(path)
    table = pd.DataFrame([texts for _, texts in lines], [line for line, _ in lines], columns, dtype="str")
    publication = next((each for each in PUBLICATIONS if _has_columns(columns, each)), None)
    is_of_gpus = publication is PUBLICATIONS[0]
    chosen: SeriesKind = kind or ("frontier" if is_of_gpus else "all")  # type: ignore[assignment]  # checked above
    name, day, quantity = _choose_columns(columns, publication, request, path)
    where = request.where
    if is_of_gpus and chosen == "all" and request == Request():
        where, quantity = ("segment=datacenter",), quantity._replace(words="memory of one datacenter GPU")
    for condition in where:
        _check_column(columns, condition.partition("=")[0], "--where", path)
    rows, left_out = _select_rows(table, name, day, quantity, replace(request, where=where), path)
    is_asked = source is not None or request.where
    return Series(
        kind=chosen,
        releases=rows,
        quantity=quantity.words,
        unit=quantity.unit,
        source=str(path),
        attribution=publication.attribution if publication else "",
        remarks=tuple(
            f"{count:,} of {len(table):,} rows left out: {reason}"
            for reason, count in left_out.items()
            if count and is_asked
        ),
    )


def _has_columns(columns: list[str], publication: Publication) -> bool:
    quantities = {quantity.column for quantity in publication.quantities.values()}
    return {publication.name, publication.date} <= set(columns) and not quantities.isdisjoint(columns)


def _choose_columns(
    columns: list[str], publication: Publication | None, request: Request, path: Path
) -> tuple[str | None, str, Quantity]:
    if publication is None and request.quantity is not None:
        raise UserError(f"--quantity {request.quantity}: {path} is no published table; name the column by --value.")
    name = publication.name if publication else "name"
    day = request.date or (publication.date if publication else "date")
    _check_column(columns, day, "--date", path)
    if request.value is not None or publication is None:
        column = request.value or "value"
        quantity = Quantity(column, column, request.unit or column)
    else:
        known = publication.quantities
        word = request.quantity or next(iter(known))
        if word not in known:
            raise UserError(f"--quantity {word}: unknown in this table; it has {', '.join(known)}")
        quantity = known[word]
    _check_column(columns, quantity.column, "--value", path)
    return name if name in columns else None, day, quantity


def _check_column(columns: list[str], column: str, option: str, path: Path) -> None:
    if column not in columns:
        near = get_close_matches(column, columns, n=1)
        instead = f"did you mean {near[0]!r}?" if near else f"it has {', '.join(columns) or 'none'}."
        raise UserError(f"{path}: has no column {column!r}; name another by {option}: {instead}")


def _select_rows(
    table: pd.DataFrame, name: str | None, day: str, quantity: Quantity, request: Request, path: Path
) -> tuple[pd.DataFrame, dict[str, int]]:
    """Return the rows that are wanted, columns COLUMNS, and how many were left out for which reason."""
    texts = pd.DataFrame({"name": table[name] if name else "", "date": table[day], "value": table[quantity.column]})
    left_out: dict[str, int] = {}

    def keep(rows: pd.DataFrame, is_kept: "pd.Series[bool]", reason: str) -> pd.DataFrame:
        left_out[reason] = int((~is_kept).sum())
        return rows[is_kept]

    is_selected = pd.Series(True, table.index)
    for condition in request.where:
        column, equals, wanted = condition.partition("=")
        is_selected &= (table[column] == wanted.strip()) if equals else (table[column] != "")
    rows = keep(texts, is_selected, "not selected by --where")
    rows = keep(rows, rows["value"] != "", f"no value in {quantity.column!r}")
    rows = keep(rows, rows["date"] != "", f"no date in {day!r}")
    where = f"column {quantity.column}"
    values = [_parse_value(text, f"{path}, line {line}, {where}") for line, text in rows["value"].items()]
    dates = [parse_date(text, f"{path}, line {line}, column {day}") for line, text in rows["date"].items()]
    found = pd.DataFrame(dates, rows.index, ["year", "date"]).astype({"year": "int64", "date": "float64"})
    rows = found.assign(name=rows["name"], value=np.array(values, dtype=float) * quantity.scale)
    if request.since is not None:
        rows = keep(rows, rows["year"] >= request.since, f"before {request.since}")
    if request.at_least is not None:
        rows = keep(rows, rows["value"] >= request.at_least, f"below {request.at_least:g} {quantity.unit}")
    for line, value in rows.loc[rows["value"] <= 0, "value"].items():
        raise UserError(
            f"{path}, line {line}, {where}: {value:g} is not above zero, and growth by factors needs "
            "that; leave such rows out: --at-least."
        )
    return rows.sort_values(["date", "value"], ignore_index=True)[COLUMNS], left_out


def _parse_value(text: str, place: str) -> float:
    try:
        value = float(text)
    except ValueError:
        value = math.nan
    if not math.isfinite(value):
        raise UserError(f"{place}: {text!r} is not a number; expected one, as in 16 or 2.5e9, or an empty field.")
    if value and not 1 / MAX_VALUE <= abs(value) <= MAX_VALUE:
        raise UserError(f"{place}: {text!r} is beyond {1 / MAX_VALUE:g} to {MAX_VALUE:g}; give it in another unit.")
    return value


def parse_date(text: str, place: str) -> tuple[int, float]:
    """Return the calendar year and the decimal year of a day, or of the middle of a month or year.

    Raises UserError that names the place where the text is none of `2018`, `2018-09`, `2018-09-13`.
    """
    match = _DATE.fullmatch(text.strip())
    try:
        period = pd.Period(match[1] or match[2] if match else "")
        if not FIRST_YEAR <= period.year <= LAST_YEAR:
            raise ValueError
    except ValueError:
        raise UserError(
            f"{place}: {text!r} is not a date from {FIRST_YEAR} to {LAST_YEAR}; expected 2018, 2018-09 or 2018-09-13."
        ) from None
    day = (period.day_of_year - 0.5) / (365 + period.is_leap_year)
    shares = {"Y-DEC": 0.5, "M": (period.month - 0.5) / 12, "D": day}
    return period.year, period.year + shares[period.freqstr]
