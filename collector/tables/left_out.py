"""The table of cells that were left out of the run."""

from collector.analysis import Analysis
from collector.labels import add_labels
from collector.results.cells import describe_cell
from collector.results.frames import CELL_COLUMNS, make_frame
from collector.tables.columns import CELL, text_column
from collector.tables.table import Table, make_table


def make_left_out_table(analysis: Analysis) -> Table | None:
    """Return the cells of the matrix that cannot run where the run took place, with the reasons; None without any."""
    left_out = analysis.collection.run.left_out
    if not left_out:
        return None
    cells = add_labels(make_frame([describe_cell(entry.cell) for entry in left_out], CELL_COLUMNS))
    rows = cells.assign(reason=[entry.reason for entry in left_out])
    return make_table("Cells that cannot run here", [CELL, text_column("reason", "reason")], rows)
