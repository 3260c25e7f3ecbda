"""Print tables and sentences, fitted to the width of the terminal."""

from collections.abc import Mapping
from dataclasses import replace
from functools import partial

from rich.console import Console
from rich.table import Table as RichTable
from rich.text import Text

from collector.tables.table import ESSENTIAL, Column, Table, format_column

MAX_NOTES = 20
"""Notes below a table: a screen full of them is read by nobody."""


def print_table(console: Console, table: Table) -> None:
    """Print a table; where the terminal is too narrow for it, drop columns by their priority before breaking lines.

    Where the console is no terminal nothing is dropped and no line is broken. Its notes stand below it, each text once.
    """
    table, notes = _number_notes(table)
    _print_columns(console, table)
    for number, note in enumerate(notes[:MAX_NOTES], 1):
        print_text(console, f"[{number}] {note}")
    if len(notes) > MAX_NOTES:
        print_text(console, f"and {len(notes) - MAX_NOTES} more notes, which the report has")


def print_text(console: Console, text: str, style: str = "") -> None:
    """Print a sentence, broken between words where the terminal ends; on one line where the console is none."""
    console.print(Text(text, style=style), soft_wrap=not console.is_terminal)


def _number_notes(table: Table) -> tuple[Table, list[str]]:
    numbers: dict[str, int] = {}
    columns = []
    for column in table.columns:
        if not column.is_note:
            columns.append(column)
            continue
        for text in format_column(column, table.rows):
            if text:
                numbers.setdefault(text, len(numbers) + 1)
        show = partial(_show_number, column, numbers)
        columns.append(replace(column, format=show))
    return replace(table, columns=tuple(columns)), list(numbers)


def _show_number(column: Column, numbers: Mapping[str, int], *values: object) -> str:
    text = column.format(*values)
    return f"[{numbers[text]}]" if text else ""


def _print_columns(console: Console, table: Table) -> None:
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
    unbounded = console.options.update(width=10_000)
    return console.measure(_render(table), options=unbounded).maximum


def _render(table: Table) -> RichTable:
    rendered = RichTable(box=None, header_style="bold", pad_edge=False)
    for column in table.columns:
        rendered.add_column(Text(column.heading), overflow="fold", justify=column.align)
    for row in table.format_rows():
        rendered.add_row(*map(Text, row))  # as Text: a name in brackets is no markup
    return rendered
