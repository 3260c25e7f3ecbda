"""Read a table of dated values, CSV or Parquet, the user's own or a published one, checked value by value."""

import csv
import io
import math
import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import date
from difflib import get_close_matches

import pandas as pd
import pyarrow as pa

from bench.errors import UserError
from collector.forecast.publications import Publication, Quantity, recognize_publication
from collector.forecast.series import COLUMNS, DatedValues
from collector.forecast.source_files import read_source
from collector.foreign_parquet import ParquetLimits, read_foreign_parquet

FIRST_YEAR, LAST_YEAR = 1900, 2100
"""Of dated values: published tables of models begin in 1950."""
MAX_VALUE = 1e100
"""Largest value of a table, and 1 by the smallest: the square of a sum of squares is a number still."""
_PARQUET_MAGIC = b"PAR1"
MAX_VALUES = 2_000_000
"""Rows times columns: Epoch AI's largest table has 250,000 (November 2026). Each is a text of some 100 bytes here."""
LIMITS = ParquetLimits(max_rows=MAX_VALUES, max_bytes=64 * 2**20)
MAX_REASON_CHARACTERS = 300
_OTHER_SEPARATORS = (";", "\t", "|")
_DATE = re.compile(r"([0-9]{4})(?:-([0-9]{2})(?:-([0-9]{2})(?:[T ].*)?)?)?")


@dataclass(frozen=True, kw_only=True)
class ValueRequest:
    """Which values of a table are wanted."""

    quantity: str | None = None
    """The word of a quantity of a published table; None: its first."""
    value: str | None = None
    """The column of the values; None: the quantity's, in an own table `value`."""
    date: str | None = None
    name: str | None = None
    unit: str | None = None
    """The unit of `value`; None: the quantity's, in an own table the column's name."""
    where: tuple[str, ...] = ()
    """`COLUMN=VALUE`: only rows with this value; `COLUMN`: only rows with any value in it."""
    at_least: float | None = None
    """Leave out rows with a smaller value."""
    since: int | None = None
    """Leave out rows dated before this year."""


@dataclass(frozen=True, kw_only=True)
class _Columns:
    """Where the values are."""

    name: str | None
    date: str
    value: str
    quantity: Quantity


Rows = Iterator[tuple[str, dict[str, str]]]
"""The place of each row in words, and its fields as text."""


def load_values(source: str, request: ValueRequest) -> DatedValues:
    """Read the values of a table from a path or URL.

    A row without a date or without a value is left out and counted. Raises UserError, with file, line and column, where
    the table cannot be read or a value is not what its column holds.
    """
    if request.at_least is not None and not math.isfinite(request.at_least):
        raise UserError(f"--at-least {request.at_least:g}: expected a number, as in 16 or 2.5e9.")
    content = read_source(source)
    columns, rows = _open_table(content, source)
    publication = recognize_publication(columns)
    chosen = _choose_columns(columns, publication, request, source)
    _check_conditions(columns, request.where, source)
    left_out: Counter[str] = Counter()
    kept = [row for row in _read_rows(rows, chosen, request, left_out)]
    frame = pd.DataFrame(kept, columns=COLUMNS).sort_values("date", kind="stable", ignore_index=True)
    return DatedValues(
        rows=frame,
        quantity=chosen.quantity.words,
        unit=chosen.quantity.unit,
        source=source,
        attribution=publication.attribution if publication else "",
        remarks=tuple(
            f"{count:,} of {sum(left_out.values()) + len(kept):,} rows left out: {reason}"
            for reason, count in left_out.items()
        ),
    )


def _open_table(content: bytes, source: str) -> tuple[list[str], Rows]:
    if content.startswith(_PARQUET_MAGIC):
        return _open_parquet(content, source)
    if source.partition("?")[0].lower().endswith(".parquet"):
        raise UserError(
            f"{source}: is no Parquet file, which would begin with PAR1; write it again, or name a CSV file .csv."
        )
    try:
        text = content.decode("utf-8-sig")
        reader = csv.DictReader(io.StringIO(text, newline=""), strict=True)
        columns = [str(name) for name in reader.fieldnames or []]
    except (UnicodeDecodeError, csv.Error) as error:
        raise UserError(f"{source}: is neither Parquet nor CSV in UTF-8 ({error}); save the table as one.") from error
    if len(columns) == 1 and (found := [mark for mark in _OTHER_SEPARATORS if mark in columns[0]]):
        raise UserError(f"{source}, line 1: columns are separated by {found[0]!r}; expected commas: save it with them.")
    _check_unique(columns, f"{source}, line 1")
    return columns, _list_csv_rows(reader, source)


def _list_csv_rows(reader: "csv.DictReader[str]", source: str) -> Rows:
    try:
        for fields in reader:
            place = f"{source}, line {reader.line_num}"
            if None in fields or None in fields.values():
                raise UserError(
                    f"{place}: more or fewer fields than the first line has columns; quote a text that holds commas."
                )
            yield place, fields
    except csv.Error as error:
        raise UserError(f"{source}, line {reader.line_num}: is not CSV ({error}).") from error


def _open_parquet(content: bytes, source: str) -> tuple[list[str], Rows]:
    try:
        table = read_foreign_parquet(content, LIMITS)
        table.validate(full=True)  # texts that are no UTF-8 fail in no other place before they are looked at
        _check_flat(table, source)
        # Without what pandas wrote into the file: it names columns that become an index, or another type, or none.
        frame = table.replace_schema_metadata(None).to_pandas(integer_object_nulls=True)
    except (OSError, pa.ArrowException, ValueError, OverflowError) as error:
        reason = " ".join(str(error).split())[:MAX_REASON_CHARACTERS]
        raise UserError(f"{source}: begins like a Parquet file and cannot be read as one ({reason}).") from error
    _check_unique([str(name) for name in frame.columns], source)
    texts = frame.astype(object).where(frame.notna(), "").map(str)
    rows = (
        (f"{source}, row {number}", {str(name): text for name, text in row.items()})
        for number, row in enumerate(texts.to_dict("records"), start=1)
    )
    return [str(name) for name in frame.columns], rows


def _check_flat(table: pa.Table, source: str) -> None:
    """Raise UserError where a table has more values than its texts may take memory, or a column that is no value."""
    if table.num_rows * table.num_columns > MAX_VALUES:
        raise UserError(f"{source}: has more than {MAX_VALUES:,} values; expected a table with one row per release.")
    for field in table.schema:
        if pa.types.is_nested(field.type):
            raise UserError(f"{source}: the column {field.name!r} holds lists or structs; leave it out.")


def _check_unique(columns: list[str], place: str) -> None:
    repeated = [name for name, count in Counter(columns).items() if count > 1]
    if repeated:
        raise UserError(f"{place}: has several columns {repeated[0]!r}; rename or remove all but one.")


def _choose_columns(
    columns: list[str], publication: Publication | None, request: ValueRequest, source: str
) -> _Columns:
    if publication is None and request.quantity is not None:
        raise UserError(f"--quantity {request.quantity}: {source} is no published table; name the column by --value.")
    name = request.name or (publication.name if publication else "name")
    if request.name is not None or publication:
        _check_column(columns, name, "--name", source)
    day = request.date or (publication.date if publication else "date")
    _check_column(columns, day, "--date", source)
    quantity = _choose_quantity(columns, publication, request)
    value = next((each for each in quantity.columns if each in columns), quantity.columns[0])
    _check_column(columns, value, "--value", source)
    return _Columns(name=name if name in columns else None, date=day, value=value, quantity=quantity)


def _choose_quantity(columns: list[str], publication: Publication | None, request: ValueRequest) -> Quantity:
    if request.value is not None or publication is None:
        column = request.value or "value"
        return Quantity(columns=(column,), words=column, unit=request.unit or column)
    known = publication.quantities
    word = request.quantity or next(iter(known))
    if word not in known:
        raise UserError(f"--quantity {word}: unknown in this table; it has {', '.join(known)}")
    return known[word]


def _check_column(columns: list[str], column: str, option: str, source: str) -> None:
    if column in columns:
        return
    near = get_close_matches(column, columns, n=1)
    instead = f"did you mean {near[0]!r}?" if near else f"it has {', '.join(columns) or 'none'}."
    raise UserError(f"{source}: has no column {column!r}; name another by {option}: {instead}")


def _check_conditions(columns: list[str], where: tuple[str, ...], source: str) -> None:
    for condition in where:
        _check_column(columns, condition.partition("=")[0], "--where", source)


def _read_rows(
    rows: Rows, columns: _Columns, request: ValueRequest, left_out: Counter[str]
) -> Iterator[tuple[str, int, float, float]]:
    for place, fields in rows:
        if not all(_meets(fields, condition) for condition in request.where):
            left_out["not selected by --where"] += 1
        elif not fields[columns.value].strip():
            left_out[f"no value in {columns.value!r}"] += 1
        elif not fields[columns.date].strip():
            left_out[f"no date in {columns.date!r}"] += 1
        else:
            value = parse_value(fields[columns.value], f"{place}, column {columns.value}") * columns.quantity.scale
            year, day = parse_date(fields[columns.date], f"{place}, column {columns.date}")
            if request.since is not None and year < request.since:
                left_out[f"before {request.since}"] += 1
            elif request.at_least is not None and value < request.at_least:
                left_out[f"below {request.at_least:g} {columns.quantity.unit}"] += 1
            else:
                name = fields[columns.name] if columns.name else ""
                yield name, year, day, _check_positive(value, f"{place}, column {columns.value}")


def _meets(fields: dict[str, str], condition: str) -> bool:
    column, equals, wanted = condition.partition("=")
    found = fields[column].strip()
    return found == wanted.strip() if equals else bool(found)


def parse_value(text: str, place: str) -> float:
    """Return a finite number. Raises UserError that names the place."""
    try:
        value = float(text)
    except ValueError:
        value = math.nan
    if not math.isfinite(value):
        raise UserError(f"{place}: {text!r} is not a number; expected one, as in 16 or 2.5e9, or an empty field.")
    if value and not 1 / MAX_VALUE <= abs(value) <= MAX_VALUE:
        raise UserError(f"{place}: {text!r} is beyond {1 / MAX_VALUE:g} to {MAX_VALUE:g}; give it in another unit.")
    return value


def _check_positive(value: float, place: str) -> float:
    if value <= 0:
        raise UserError(
            f"{place}: {value:g} is not above zero, and growth by factors needs that; leave such rows out: --at-least."
        )
    return value


def parse_date(text: str, place: str) -> tuple[int, float]:
    """Return the calendar year and the decimal year of a day, or of the middle of a month or year.

    Raises UserError that names the place where the text is none of `2018`, `2018-09`, `2018-09-13`.
    """
    match = _DATE.fullmatch(text.strip())
    try:
        if match is None:
            raise ValueError
        year = int(match[1])
        if not FIRST_YEAR <= year <= LAST_YEAR:
            raise ValueError
        if match[2] is None:
            return year, year + 0.5
        if match[3] is None:
            return year, year + (date(year, int(match[2]), 1).month - 0.5) / 12
        day = date(year, int(match[2]), int(match[3]))
    except ValueError:
        raise UserError(
            f"{place}: {text!r} is not a date from {FIRST_YEAR} to {LAST_YEAR}; expected 2018, 2018-09 or 2018-09-13."
        ) from None
    first = date(year, 1, 1)
    return year, year + ((day - first).days + 0.5) / (date(year + 1, 1, 1) - first).days
