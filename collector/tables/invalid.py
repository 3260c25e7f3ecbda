"""The table of repeats that ended ok with a verdict other than valid, and whether they count."""

from collector.analysis import Analysis
from collector.labels import add_labels
from collector.results.summary import list_invalid
from collector.tables.columns import CELL, count_column, text_column
from collector.tables.table import Table, make_table, shorten_rows

INVALID_CAPTION = "Repeats with another verdict than valid"


def make_invalid_table(analysis: Analysis) -> Table | None:
    """Return the rows of `list_invalid` with their reasons; None where every repeat is valid."""
    invalid = list_invalid(analysis.collection)
    if invalid.empty:
        return None
    rows, remark = shorten_rows(invalid, "invalid.csv")
    columns = [
        CELL,
        count_column("repeat", "repeat"),
        text_column("verdict", "verdict"),
        text_column("counts", "counts"),
        text_column("reasons", "verdict_reasons"),
    ]
    return make_table(INVALID_CAPTION, columns, add_labels(rows), remark=remark)
