"""Columns, what they show and when they are dropped."""

from dataclasses import replace

import pandas as pd
import pytest

from collector.tables.table import Column, Table, count_column, interval_column, make_table, number_column, text_column
from collector.units import MILLISECOND, RATIO, THROUGHPUT, WATT

ROWS = pd.DataFrame(
    {
        "label": ["conv6", "vgg16"],
        "seconds": pd.array([0.25, None], dtype="float64"),
        "low": [0.2, None],
        "high": [0.3, None],
        "count": pd.array([1234, 5], dtype="Int64"),
        "note": ["", ""],
        "reason": pd.array([None, "broken"], dtype="str"),
    }
)


@pytest.mark.parametrize(
    ("column", "heading", "texts", "align"),
    [
        (text_column("cell", "label"), "cell", ["conv6", "vgg16"], "left"),
        (text_column("why", "reason"), "why", ["", "broken"], "left"),
        (number_column("time", "seconds", MILLISECOND), "time, ms", ["250", "–"], "right"),
        (number_column("ratio", "seconds", RATIO), "ratio", ["0.250", "–"], "right"),
        (number_column("", "count", THROUGHPUT), "samples/s", ["1,234", "5.000"], "right"),
        (interval_column("between", "low", "high", MILLISECOND), "between, ms", ["200 to 300", "–"], "right"),
        (count_column("steps", "count"), "steps", ["1,234", "5"], "right"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_a_column_shows_its_values_in_its_unit(column: Column, heading: str, texts: list[str], align: str) -> None:
    table = make_table("", [column], ROWS)
    assert (table.headings, column.align) == ([heading], align)
    assert table.format_rows() == [(text,) for text in texts]


@pytest.mark.parametrize(("source", "is_kept"), [("note", False), ("reason", True), ("seconds", True)])
def test_an_optional_column_is_dropped_where_no_row_has_a_value(source: str, is_kept: bool) -> None:
    columns = [text_column("cell", "label"), text_column("other", source, is_optional=True)]
    assert ("other" in make_table("", columns, ROWS).headings) == is_kept


def make_alike(num_rows: int, **columns: str) -> Table:
    """Return a table of so many rows that differ in their cell and their time, and are alike in `columns`."""
    rows = pd.DataFrame({"label": [f"cell {number}" for number in range(num_rows)]})
    rows = rows.assign(seconds=rows.index / 1000, watts=700.0, **columns)
    shown = [
        number_column("time", "seconds", MILLISECOND),
        number_column("limit", "watts", WATT),
        number_column("", "watts", THROUGHPUT),
    ]
    return make_table("", [text_column("cell", "label"), *shown, *(text_column(name, name) for name in columns)], rows)


def test_what_all_rows_say_alike_is_said_once() -> None:
    table = make_alike(3, source="datasheet", note="").lift_alike()
    assert table.alike == "limit: 700 W · 700.0 samples/s · source: datasheet"
    assert table.headings == ["cell", "time, ms", "note"]
    assert table.format_rows()[1] == ("cell 1", "1.00", "")


def test_two_rows_a_finding_and_a_table_of_nothing_else_keep_their_columns() -> None:
    two, three = make_alike(2, source="datasheet"), make_alike(3, source="datasheet")
    assert two.lift_alike() == two
    kept = tuple(replace(column, is_finding=True) for column in three.columns)
    assert replace(three, columns=kept).lift_alike().headings == three.headings
    alone = replace(three, columns=(three.columns[0], three.columns[4]))
    assert alone.lift_alike().headings == ["cell", "source"]
