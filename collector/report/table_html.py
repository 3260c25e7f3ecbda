"""Prepare the tables of the report for the page, and read them back from it.

A short table stands in the page as it is, so that it can be read without a script. Of a long one the page has the
columns, compressed, and draws the rows that are in view.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from html.parser import HTMLParser

from collector.answers.anchors import name_anchor
from collector.report.packing import Pools, compress_document, expand_column, expand_document, make_pools, pack_column
from collector.tables.table import Table

MAX_STATIC_ROWS = 100
"""Rows up to which a table stands in the page as it is; as many as a page lists of failures."""
PACKED_ROWS, PACKED_CELLS = "packed-rows", "data-cells"
"""The class and the id by which the templates name packed rows and the packed cells."""
TEXT_TAGS = ("caption", "th", "td")
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


def view_table(table: Table, pools: Pools | None = None) -> TableView:
    """Return the table for the page."""
    rows, ids = table.format_rows(), _list_ids(table)
    packed = "" if len(rows) <= MAX_STATIC_ROWS else _pack_rows(rows, ids, pools)
    cells = [" ".join(dict.fromkeys(own)) for own in zip(*ids, strict=True)] if ids else [""] * len(rows)
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
    return reader.read_packed()


def _list_ids(table: Table) -> list[list[str]]:
    """Return the columns of ids of the cells that each row is of."""
    return [table.rows[name].astype("str").tolist() for name in CELL_ID_COLUMNS if name in table.rows]


def _pack_rows(rows: Sequence[tuple[str, ...]], ids: Sequence[Sequence[str]], pools: Pools | None) -> str:
    columns = [pack_column(texts, pools=pools) for texts in zip(*rows, strict=True)]
    return compress_document({"columns": columns, "cells": [pack_column(own, pools=pools) for own in ids]})


class _TableReader(HTMLParser):
    """Collects captions, headings and rows, also of tables whose rows are packed."""

    def __init__(self) -> None:
        super().__init__()
        self.tables: dict[str, list[tuple[str, ...]]] = {}
        self._caption = ""
        self._row: list[str] = []
        self._text: list[str] | None = None
        self._script = ""
        self._packed: dict[str, str] = {}
        self._cells = ""

    def read_packed(self) -> dict[str, list[tuple[str, ...]]]:
        """Return all tables, with the rows of those that are packed, which need the packed cells of the page."""
        pools = make_pools(expand_document(self._cells)) if self._cells else {}
        for caption, text in self._packed.items():
            columns = [expand_column(column, pools) for column in expand_document(text)["columns"]]
            self.tables[caption] += list(zip(*columns, strict=True))
        return self.tables

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Begin a text at a caption, a cell or packed rows."""
        if tag == "tr":
            self._row = []
        given = dict(attrs)
        names = (given.get("class"), given.get("id")) if tag == "script" else ()
        self._script = next((name for name in (PACKED_ROWS, PACKED_CELLS) if name in names), "")
        if tag in TEXT_TAGS or self._script:
            self._text = []
        elif tag == "small" and self._text:  # what all rows say alike follows the caption's own words
            self._name_table()

    def handle_data(self, data: str) -> None:
        """Add to the text that is being read."""
        if self._text is not None:
            self._text.append(data)

    def handle_endtag(self, tag: str) -> None:
        """End the text, the row or the packed rows that were being read."""
        if tag not in TEXT_TAGS and tag not in ("tr", "script"):  # a part of a text, such as a name's `span`
            return
        if tag == "caption" and self._text:
            self._name_table()
        text, self._text = "".join(self._text or ()), None
        if tag in ("th", "td"):
            self._row.append(text)
        elif tag == "tr" and self._row:
            self.tables[self._caption].append(tuple(self._row))
        elif tag == "script" and self._script == PACKED_ROWS:
            self._packed[self._caption] = text
        elif tag == "script" and self._script == PACKED_CELLS:
            self._cells = text

    def _name_table(self) -> None:
        """Begin the table whose caption was read."""
        self._caption = "".join(self._text or ())
        self.tables[self._caption] = []
        self._text = None
