"""The tables of what does not count: repeats that are not valid, cells left out, documents skipped."""

from collector.analysis import Analysis
from collector.labels import add_labels
from collector.results.cells import describe_cell
from collector.results.frames import CELL_COLUMNS, make_frame
from collector.results.summary import list_invalid, list_skipped
from collector.tables.columns import CELL, count_column, text_column
from collector.tables.table import MAX_LISTED, Table, make_table, shorten_rows

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


def make_left_out_table(analysis: Analysis) -> Table | None:
    """Return the cells of the matrix that cannot run where the run took place, with the reasons; None without any."""
    left_out = analysis.collection.run.left_out
    if not left_out:
        return None
    cells = add_labels(make_frame([describe_cell(entry.cell) for entry in left_out], CELL_COLUMNS))
    rows = cells.assign(reason=[entry.reason for entry in left_out])
    return make_table("Cells that cannot run here", [CELL, text_column("reason", "reason")], rows)


SKIPPED_CAPTION = "Documents that did not count"


def make_skipped_table(analysis: Analysis) -> Table | None:
    """Return the keys that did not count, with the reasons; None where every document counted."""
    skipped = list_skipped(analysis.collection)
    if skipped.empty:
        return None
    shown = skipped.head(MAX_LISTED)
    remark = f"{len(skipped)} of the keys under the run in the store did not count"
    if len(skipped) > len(shown):
        remark += f"; the first {len(shown)} are listed, skipped.csv has all"
    columns = [text_column("key", "key"), text_column("reason", "reason")]
    return make_table(SKIPPED_CAPTION, columns, shown, remark=f"{remark}.")
