"""Read the table of GPUs with their release months and memory: a CSV file, checked value by value."""

import csv
import io
import math
import re
from difflib import get_close_matches
from pathlib import Path
from typing import Any

import pandas as pd

from bench.errors import UserError
from bench.foreign_files import ForeignFileError, read_foreign_file
from collector.forecast.series import COLUMNS as SERIES_COLUMNS
from collector.forecast.series import DatedValues, Series, SeriesKind, make_series
from collector.forecast.source_files import MAX_BYTES

COLUMNS = ("name", "vendor", "release", "memory_gb", "segment", "source")
SEGMENTS = ("datacenter", "consumer", "workstation")
SHIPPED_TABLE = Path(__file__).parent / "gpus.csv"

MIN_MEMORY_GB, MAX_MEMORY_GB = 1e-6, 1e9
"""A kilobyte and an exabyte: no GPU has so little or so much, and what a forecast computes of them stays finite."""

FIRST_YEAR, LAST_YEAR = 1990, 2100
"""Graphics cards have had memory of their own since the nineties; a decimal year is read as a date of this time."""

_RELEASE = re.compile(r"([0-9]{4})-(0[1-9]|1[0-2])")


def load_gpu_table(path: Path | None = None) -> pd.DataFrame:
    """Read a GPU table, the shipped one where `path` is None; one row per GPU, in the order of the file.

    Columns: those of the file (`COLUMNS`; others are left out), `memory_gb` as a number of gigabytes as marketed, and
    two derived from `release`: `year` (calendar year) and `date` (decimal year at the middle of the month).
    `attrs["path"]` is the file.
    Raises UserError, with file, line and column, where the file cannot be read or a value is not what its column holds.
    """
    path = path or SHIPPED_TABLE
    try:
        text = read_foreign_file(path, max_bytes=MAX_BYTES).decode("utf-8-sig")
        rows = _read_rows(csv.DictReader(io.StringIO(text, newline=""), strict=True), path)
    except ForeignFileError as error:
        raise UserError(f"{path}: {error}; name a CSV file with a table of GPUs.") from None
    except (UnicodeDecodeError, csv.Error) as error:
        raise UserError(f"{path}: is not a CSV file in UTF-8 ({error}); save the table as one.") from error
    table = pd.DataFrame(rows, columns=[*COLUMNS, "year", "date"])
    table.attrs["path"] = str(path)
    return table


def make_gpu_series(table: pd.DataFrame, kind: SeriesKind = "frontier") -> Series:
    """Return the series of memory of a GPU in GB from a table of `load_gpu_table`.

    "frontier" and "records" look at every segment, "all" at datacenter GPUs only. Raises UserError for too few dates.
    """
    chosen = table[table["segment"] == "datacenter"] if kind == "all" else table
    values = DatedValues(
        rows=chosen.rename(columns={"memory_gb": "value"})[SERIES_COLUMNS].reset_index(drop=True),
        quantity="memory of one datacenter GPU" if kind == "all" else "memory of one GPU",
        unit="GB",
        source=table.attrs.get("path", "GPU table"),
    )
    return make_series(values, kind)


def _read_rows(reader: "csv.DictReader[str]", path: Path) -> list[dict[str, Any]]:
    _check_header(list(reader.fieldnames or []), path)
    return [_parse_row(fields, f"{path}, line {reader.line_num}") for fields in reader]


def holds_gpu_table(content: bytes) -> bool:
    """Return whether the first line of a CSV file has the columns of a table of GPUs, quoted or not."""
    try:
        reader = csv.reader(io.StringIO(content.decode("utf-8-sig"), newline=""), strict=True)
        return set(COLUMNS) <= set(next(reader, []))
    except (UnicodeDecodeError, csv.Error):
        return False


def _check_header(found: list[str], path: Path) -> None:
    repeated = [column for column in COLUMNS if found.count(column) > 1]
    if repeated:
        raise UserError(f"{path}, line 1: has several columns {repeated[0]!r}; rename or remove all but one.")
    for column in COLUMNS:
        if column in found:
            continue
        near = get_close_matches(column, found, n=1)
        instead = f"found {near[0]!r}: rename it" if near else f"found {', '.join(found) or 'nothing'}"
        raise UserError(
            f"{path}, line 1: column {column!r} is missing, {instead}. The first line is: {','.join(COLUMNS)}"
        )


def _parse_row(fields: dict[str, Any], place: str) -> dict[str, Any]:
    if None in fields or None in fields.values():
        raise UserError(
            f"{place}: more or fewer fields than the first line has columns; quote a text that holds commas."
        )
    if not fields["name"].strip():
        raise UserError(f"{place}, column name: is empty; expected the name of the GPU.")
    if fields["segment"] not in SEGMENTS:
        raise UserError(f"{place}, column segment: {fields['segment']!r} is not one of {', '.join(SEGMENTS)}.")
    year, date = _parse_release(fields["release"], place)
    memory_gb = _parse_memory(fields["memory_gb"], place)
    return {**{column: fields[column] for column in COLUMNS}, "memory_gb": memory_gb, "year": year, "date": date}


def _parse_release(text: str, place: str) -> tuple[int, float]:
    """Return the calendar year and the decimal year at the middle of the month."""
    match = _RELEASE.fullmatch(text.strip())
    if match is None:
        raise UserError(f"{place}, column release: {text!r} is not a month; expected year and month, as in 2018-09.")
    year, month = int(match[1]), int(match[2])
    if not FIRST_YEAR <= year <= LAST_YEAR:
        raise UserError(f"{place}, column release: {text!r} is not between {FIRST_YEAR} and {LAST_YEAR}.")
    return year, year + (month - 0.5) / 12


def _parse_memory(text: str, place: str) -> float:
    try:
        memory_gb = float(text)
    except ValueError:
        memory_gb = math.nan
    if not MIN_MEMORY_GB <= memory_gb <= MAX_MEMORY_GB:  # a NaN is neither
        raise UserError(
            f"{place}, column memory_gb: {text!r} is not an amount of memory; "
            f"expected gigabytes as a plain number from {MIN_MEMORY_GB:g} to {MAX_MEMORY_GB:g}, as in 16."
        )
    return memory_gb
