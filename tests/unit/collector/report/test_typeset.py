"""Tables as LaTeX and Markdown: units in the headings, intervals, and nothing that is read as markup."""

import pandas as pd

from collector.tables.table import CELL, Table, interval_column, make_table, number_column, write_latex, write_markdown
from collector.units import MILLISECOND


def make_times(label: str) -> Table:
    """Return a table with one row that has a time and an interval, and one that has neither."""
    rows = pd.DataFrame({"label": [label, "z"], "t": [0.01, None], "low": [0.009, None], "high": [0.011, None]})
    interval = interval_column("95 % interval", "low", "high", MILLISECOND)
    columns = [CELL, number_column("time", "t", MILLISECOND), interval]
    return make_table("Step times", columns, rows)


def test_latex_has_booktabs_rules_units_and_intervals_and_no_text_is_markup() -> None:
    lines = write_latex([make_times("50 % of \\input{x}_y\x1b")]).splitlines()
    body = lines[lines.index(r"\toprule") - 1 : lines.index(r"\bottomrule") + 1]
    assert body == [
        r"\begin{tabular}{lrr}",
        r"\toprule",
        r"cell & time, ms & 95 \% interval, ms \\",
        r"\midrule",
        r"50 \% of \textbackslash input\{x\}\_y & 10.0 & 9.00 to 11.0 \\",
        r"z & – & – \\",
        r"\bottomrule",
    ]
    assert r"\caption{Step times}" in lines


def test_markdown_keeps_a_bar_in_its_cell() -> None:
    lines = write_markdown([make_times("a|b `c`")]).splitlines()
    assert lines[2:4] == ["| cell | time, ms | 95 % interval, ms |", "| --- | ---: | ---: |"]
    assert lines[4].count(" | ") == 2
    assert "a\\|b" in lines[4]
