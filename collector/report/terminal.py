"""The table that a run prints at its end, fitted to the width of the terminal."""

from rich.console import Console
from rich.table import Table as RichTable
from rich.text import Text

from collector.labels import add_labels
from collector.results.collection import Collection
from collector.results.summary import summarize_cells
from collector.tables.columns import CELL, number_column
from collector.tables.step_times import NOTE, REPEATS, THROUGHPUT_COLUMN, VERDICT, time_columns
from collector.tables.table import ESSENTIAL, Table, make_table
from collector.units import choose_memory_unit


def make_terminal_table(collection: Collection) -> Table:
    """Return one row per cell and environment, with fewer columns than the report has."""
    rows = add_labels(summarize_cells(collection))
    memory = number_column(
        "peak RSS", "peak_rss_bytes", choose_memory_unit(rows["peak_rss_bytes"].dropna()), priority=3
    )
    columns = [CELL, *time_columns("step time"), THROUGHPUT_COLUMN, memory, REPEATS, VERDICT, NOTE]
    return make_table("Step times", columns, rows)


def print_table(console: Console, table: Table) -> None:
    """Print a table; where the terminal is too narrow for it, drop columns by their priority before breaking lines.

    Where the console is no terminal nothing is dropped and no line is broken.
    """
    if not console.is_terminal:
        wide = type(console)(file=console.file, width=_measure_width(console, table))  # as careful as the one given
        wide.print(_render(table))
        return
    dispensable = [column for column in table.columns if column.priority < ESSENTIAL]
    for column in sorted(dispensable, key=lambda column: column.priority):
        if _measure_width(console, table) > console.width:
            table = table.drop_column(column)
    console.print(_render(table))


def _measure_width(console: Console, table: Table) -> int:
    """Return the width at which no cell of the table is broken."""
    unbounded = console.options.update(width=10_000)
    return console.measure(_render(table), options=unbounded).maximum


def _render(table: Table) -> RichTable:
    rendered = RichTable(box=None, header_style="bold", pad_edge=False)
    for column in table.columns:
        rendered.add_column(Text(column.heading), overflow="fold", justify=column.align)
    for row in table.format_rows():
        rendered.add_row(*map(Text, row))  # as Text: a name in brackets is no markup
    return rendered
