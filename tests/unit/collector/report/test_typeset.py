"""Tables as LaTeX and Markdown: units in the headings, intervals, and nothing that is read as markup."""

import pandas as pd
import pytest

from collector.report.paper import escape_latex, write_latex
from collector.tables.table import CELL, Table, interval_column, make_table, number_column, write_markdown
from collector.units import MILLISECOND


def make_times(label: str) -> Table:
    """Return a table with one row that has a time and an interval, and one that has neither."""
    rows = pd.DataFrame({"label": [label, "z"], "t": [0.01, None], "low": [0.009, None], "high": [0.011, None]})
    columns = [
        CELL,
        number_column("time", "t", MILLISECOND),
        interval_column("95 % interval", "low", "high", MILLISECOND),
    ]
    return make_table("Step times", columns, rows)


def test_latex_has_booktabs_rules_units_and_intervals() -> None:
    lines = write_latex([make_times("[a]")]).splitlines()
    body = lines[lines.index(r"\toprule") - 1 : lines.index(r"\bottomrule") + 1]
    assert body == [
        r"\begin{tabular}{lrr}",
        r"\toprule",
        r"cell & time, ms & 95 \% interval, ms \\",
        r"\midrule",
        r"{}[a] & 10.0 & 9.00 to 11.0 \\",
        r"{}z & -- & -- \\",
        r"\bottomrule",
    ]
    assert r"\caption{Step times}" in lines


@pytest.mark.parametrize(
    ("text", "escaped"),
    [
        ("50 % & more", r"50 \% \& more"),
        (r"\input{x}", r"\textbackslash{}input\{x\}"),
        ("a_b^c~d", r"a\_b\textasciicircum{}c\textasciitilde{}d"),
        ("$x$ #1", r"\$x\$ \#1"),
        ("two\nlines\x1b[2J", "two lines[2J"),
    ],
)
def test_no_text_is_markup_of_latex(text: str, escaped: str) -> None:
    assert escape_latex(text) == escaped


def test_markdown_keeps_a_bar_in_its_cell() -> None:
    lines = write_markdown([make_times("a|b `c`")]).splitlines()
    assert lines[2:4] == ["| cell | time, ms | 95 % interval, ms |", "| --- | ---: | ---: |"]
    assert lines[4].count(" | ") == 2
    assert "a\\|b" in lines[4]
