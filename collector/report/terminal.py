"""Print the grid of a run and its doubts, fitted to the width of the terminal; print any table so."""

from collections.abc import Mapping
from dataclasses import replace
from functools import partial
from itertools import product

import pandas as pd
from rich.console import Console
from rich.table import Table as RichTable
from rich.text import Text

from collector.analysis import Analysis
from collector.doubts import list_doubts
from collector.facts import count_things
from collector.grid import Grid, describe_ratio, format_figure, format_half_width, make_grid
from collector.tables.columns import text_column
from collector.tables.table import ESSENTIAL, Column, Table, format_column, make_table

SIGNS = {"longer": "▲ ", "shorter": "▼ ", "undecided": "", "none": ""}
STATES = {"ok": "", "left-out": "left out"}
LEGEND = "▲ slower, ▼ faster than {}, ≈ no difference shown, ? no verdict"
MAX_NOTES = 20
"""Notes below a table: a screen full of them is read by nobody."""


def make_grid_table(grid: Grid) -> Table:
    """Return the grid of a run with a row per cell: work, program, step time, and how it compares with the baseline."""
    metric, rows, former = grid.metrics[0], [], ""
    for work, program in product(grid.works, grid.programs):
        place = grid.places.get((work, program))
        if place is None:
            continue
        said = describe_ratio(grid, metric, (work, program), grid.baseline)
        is_measured = place.state in ("ok", "unsound")
        ratio = "baseline" if program == grid.baseline else said["text"] if said else ""
        row = {
            "work": "" if work == former else work,
            "program": program,
            "time": format_figure(metric, place.row) if is_measured else "",
            "half": format_half_width(place.row) if is_measured else "",
            "ratio": f"{SIGNS[said['verdict']]}{ratio}" if said and is_measured else ratio if is_measured else "",
            "state": ""
            if place.state == "ok"
            else "left out"
            if place.state == "left-out"
            else place.status or place.state,
        }
        rows.append(row)
        former = work
    names = ("work", "program", "time", "half", "ratio", "state")
    columns = [
        text_column(f"work ({grid.shared})" if grid.shared else "work", "work"),
        text_column("program", "program"),
        replace(text_column("step, ms", "time"), align="right"),
        replace(text_column("95 %", "half", priority=2), align="right"),
        text_column("ratio", "ratio"),
        text_column("", "state", is_optional=True),
    ]
    return make_table("Step times", columns, pd.DataFrame(rows, columns=list(names)))


def print_summary(console: Console, analysis: Analysis) -> None:
    """Print the grid of a run and its doubts."""
    grid = make_grid(analysis)
    print_table(console, make_grid_table(grid))
    print_text(console, LEGEND.format(grid.baseline))
    doubts = list_doubts(analysis)
    titles = [f"! {doubt.title}" for doubt in doubts if doubt.severity == "beware"]
    unknown = len(doubts) - len(titles)
    titles += [f"? {count_things(unknown, 'thing')} not known, see the report"] if unknown else []
    if titles:
        print_text(console, " · ".join(titles))


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
    """Return the table with numbers in place of its notes, and the notes by their number, each text once."""
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
