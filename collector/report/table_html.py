"""Prepare the tables of the report for the page, and read them back from it.

A short table stands in the page as it is, so that it can be read without a script. Of a long one the page has the
columns, compressed, and draws the rows that are in view.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from html.parser import HTMLParser

from collector.answers.anchors import name_anchor
from collector.report.packing import compress_document, expand_column, expand_document, pack_column
from collector.tables.table import Table

MAX_STATIC_ROWS = 100
"""Rows up to which a table stands in the page as it is; as many as a page lists of failures."""
CELL_ID_COLUMNS = ("cell_id", "cell_id_subject", "cell_id_reference")
"""Columns of a data frame that name the cells which a row is of."""


@dataclass(frozen=True, kw_only=True)
class TableView:
    """A table as the page shows it."""

    table: Table
    anchor: str
    rows: Sequence[tuple[str, ...]]
    """The texts of the rows; of a long table none."""
    cells: Sequence[str]
    """Of each row, the ids of the cells that it is of, separated by blanks."""
    packed: str
    """The rows of a long table, compressed; empty for a short one."""

    @property
    def num_rows(self) -> int:
        """How many rows the table has, in the page or packed."""
        return len(self.table.rows)


def view_table(table: Table) -> TableView:
    """Return the table for the page."""
    rows, cells = table.format_rows(), _list_cells(table)
    packed = "" if len(rows) <= MAX_STATIC_ROWS else _pack_rows(rows, cells)
    return TableView(
        table=table,
        anchor=name_anchor(table.caption),
        rows=() if packed else rows,
        cells=() if packed else cells,
        packed=packed,
    )


def read_tables(html: str) -> dict[str, list[tuple[str, ...]]]:
    """Return the texts of all tables of a report by their caption: the headings, then the rows."""
    reader = _TableReader()
    reader.feed(html)
    return reader.tables


def _list_cells(table: Table) -> list[str]:
    names = [name for name in CELL_ID_COLUMNS if name in table.rows]
    columns = [table.rows[name].astype("str").tolist() for name in names]
    return [" ".join(dict.fromkeys(ids)) for ids in zip(*columns, strict=True)] if names else [""] * len(table.rows)


def _pack_rows(rows: Sequence[tuple[str, ...]], cells: Sequence[str]) -> str:
    columns = [pack_column(texts) for texts in zip(*rows, strict=True)]
    return compress_document({"columns": columns, "cells": pack_column(cells)})


class _TableReader(HTMLParser):
    """Collects captions, headings and rows, also of tables whose rows are packed."""

    def __init__(self) -> None:
        super().__init__()
        self.tables: dict[str, list[tuple[str, ...]]] = {}
        self._caption = ""
        self._row: list[str] = []
        self._text: list[str] | None = None
        self._is_packed = False

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Begin a text at a caption, a cell or packed rows."""
        if tag == "tr":
            self._row = []
        self._is_packed = tag == "script" and dict(attrs).get("class") == "packed-rows"
        if tag in ("caption", "th", "td") or self._is_packed:
            self._text = []

    def handle_data(self, data: str) -> None:
        """Add to the text that is being read."""
        if self._text is not None:
            self._text.append(data)

    def handle_endtag(self, tag: str) -> None:
        """End the text, the row or the packed rows that were being read."""
        text, self._text = "".join(self._text or ()), None
        if tag == "caption":
            self._caption = text
            self.tables[text] = []
        elif tag in ("th", "td"):
            self._row.append(text)
        elif tag == "tr" and self._row:
            self.tables[self._caption].append(tuple(self._row))
        elif tag == "script" and self._is_packed:
            columns = [expand_column(column) for column in expand_document(text)["columns"]]
            self.tables[self._caption] += list(zip(*columns, strict=True))
            self._is_packed = False
