"""Rows of formatted strings in, a table that fits the terminal out."""

from collections.abc import Sequence

from rich.console import Console
from rich.table import Table

# Left out in this order where the terminal is too narrow for all columns; the report has them.
DISPENSABLE = ("IQR of steps, ms", "note", "peak RSS, MiB", "peak RSS, GiB", "samples/s")
LEFT_ALIGNED = ("cell", "note")


def print_table(console: Console, columns: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
    """Print the rows under their columns. Empty columns are left out, and dispensable ones where the width asks for it.

    Where the console is no terminal nothing is left out for its width and no line is broken.
    """
    shown = [column for index, column in enumerate(columns) if any(row[index] for row in rows)]
    for column in DISPENSABLE:
        if console.is_terminal and column in shown and _measure(console, columns, rows, shown) > console.width:
            shown.remove(column)
    if not console.is_terminal:
        console = Console(file=console.file, width=_measure(console, columns, rows, shown), markup=False)
    console.print(_make_table(columns, rows, shown))


def _measure(console: Console, columns: Sequence[str], rows: Sequence[Sequence[str]], shown: Sequence[str]) -> int:
    """Return the width at which no cell of the table is broken."""
    unbounded = console.options.update(width=10_000)
    return console.measure(_make_table(columns, rows, shown), options=unbounded).maximum


def _make_table(columns: Sequence[str], rows: Sequence[Sequence[str]], shown: Sequence[str]) -> Table:
    table = Table(box=None, header_style="bold", pad_edge=False)
    for column in shown:
        table.add_column(column, overflow="fold", justify="left" if column in LEFT_ALIGNED else "right")
    indices = [columns.index(column) for column in shown]
    for row in rows:
        table.add_row(*(row[index] for index in indices))
    return table
