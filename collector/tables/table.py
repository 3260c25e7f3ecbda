"""Tables for people: columns that know how to show the values of a data frame, whatever they are written to."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Literal

import pandas as pd

from collector.units import NOT_THERE, Unit

Align = Literal["left", "right"]

MAX_LISTED = 100
"""How many rows a page lists where there can be any number of them."""
ESSENTIAL = 100
"""The priority of a column that is never dropped."""
LEAST_ALIKE_ROWS = 3
"""Rows from which on a text that all of them have is said once: two rows are often alike by chance."""


@dataclass(frozen=True, kw_only=True)
class Column:
    """One column of a table: which values of a row it shows, and how."""

    title: str
    sources: tuple[str, ...]
    """The columns of the data frame that `format` gets the values of, in this order."""
    format: Callable[..., str]
    unit: Unit | None = None
    align: Align = "left"
    priority: int = ESSENTIAL
    """Where a table is too wide, the columns of the lowest priority are dropped first, and ESSENTIAL ones never."""
    is_optional: bool = False
    """Whether the column is dropped where no row has a value for it."""
    is_note: bool = False
    """Whether its texts are sentences, which terminals and logs show below the table."""
    is_whole: bool = False
    """Whether its texts stay on one line of the page where it is wide enough for tables not to scroll."""
    is_finding: bool = False
    """Whether the table is read for it: it stays a column also where all rows are alike."""

    @property
    def heading(self) -> str:
        """The title with the unit: `step time, ms`, `samples/s`."""
        return ", ".join(part for part in (self.title, self.unit.label if self.unit else "") if part)

    def has_value(self, rows: pd.DataFrame) -> bool:
        """Return whether any row has a value, an empty text being none."""
        values = rows[list(self.sources)]
        return bool((values.notna() & (values != "")).any(axis=None))


@dataclass(frozen=True, kw_only=True)
class Table:
    """Columns over the rows of a data frame. The first column names the row."""

    caption: str
    columns: tuple[Column, ...]
    rows: pd.DataFrame
    remark: str = ""
    """What a reader must know before reading the table."""
    alike: str = ""
    """What holds for all rows, for the caption: `timed steps 90 · verdict valid`."""

    @property
    def headings(self) -> list[str]:
        return [column.heading for column in self.columns]

    def drop_column(self, column: Column) -> "Table":
        return replace(self, columns=tuple(kept for kept in self.columns if kept is not column))

    def lift_alike(self) -> "Table":
        """Return the table without the columns whose texts are all the same: `alike` says them once.

        The first column, those that the table is read for, and those without any value stay.
        """
        if len(self.rows) < LEAST_ALIKE_ROWS:
            return self
        first, *others = self.columns
        found = {column.title: text for column in others if (text := find_common_text(column, self.rows))}
        kept = tuple(column for column in others if column.title not in found)
        if not found or not kept:
            return self
        units = {column.title: column.unit.label if column.unit else "" for column in others}
        said = (" ".join(filter(None, [title and f"{title}:", text, units[title]])) for title, text in found.items())
        return replace(self, columns=(first, *kept), alike=" · ".join(filter(None, [self.alike, *said])))

    def format_rows(self) -> list[tuple[str, ...]]:
        """Return the texts of each row, one per column."""
        texts = [format_column(column, self.rows) for column in self.columns]
        return list(zip(*texts, strict=True))


def make_table(caption: str, columns: list[Column], rows: pd.DataFrame, *, remark: str = "") -> Table:
    """Return a table whose columns are read from the rows, without the optional columns that have no value in any row.

    `caption`: stands above it, and names it in links. `remark`: stands below it.
    """
    shown = tuple(column for column in columns if not column.is_optional or column.has_value(rows))
    return Table(caption=caption, columns=shown, rows=rows, remark=remark)


def shorten_rows(rows: pd.DataFrame, file_name: str) -> tuple[pd.DataFrame, str]:
    """Return the first MAX_LISTED rows, and a remark that names the file that has all; empty where these are all."""
    if len(rows) <= MAX_LISTED:
        return rows, ""
    return rows.head(MAX_LISTED), f"The first {MAX_LISTED} of {len(rows)}; {file_name} has all."


def select_known(rows: pd.DataFrame, columns: list[Column]) -> pd.DataFrame:
    """Return the rows that have a value for any of `columns`."""
    sources = [source for column in columns for source in column.sources]
    return rows[rows[sources].notna().any(axis="columns")]


def find_common_text(column: Column, rows: pd.DataFrame) -> str:
    """Return the text that all rows have in a column; empty if they differ, have none, or the column stays anyway."""
    if column.is_finding:
        return ""
    texts = (column.format(*row) for row in zip(*(rows[source] for source in column.sources), strict=True))
    first = next(texts, "")
    return first if first not in ("", NOT_THERE) and all(text == first for text in texts) else ""


def format_column(column: Column, rows: pd.DataFrame) -> list[str]:
    """Return the texts of one column, one per row."""
    values = (rows[source].to_list() for source in column.sources)
    return [column.format(*row) for row in zip(*values, strict=True)]
