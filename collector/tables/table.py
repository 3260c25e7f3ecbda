"""Tables for people: columns that know how to show the values of a data frame; printed, in Markdown and in LaTeX."""

import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from typing import Literal

import pandas as pd
from rich.console import Console
from rich.table import Table as RichTable
from rich.text import Text

from collector.files import escape_markdown
from collector.ratio_words import format_ratio, format_ratios
from collector.units import NOT_THERE, Unit, format_interval, format_number

Align = Literal["left", "right"]

MAX_LISTED = 100
"""How many rows a page lists where there can be any number of them."""
ESSENTIAL = 100
"""The priority of a column that is never dropped."""
LEAST_ALIKE_ROWS = 3
"""Rows from which on a text that all of them have is said once: two rows are often alike by chance."""


@dataclass(frozen=True, kw_only=True)
class Column:
    """One column of a table: which values of a row it shows, and how."""

    title: str
    sources: tuple[str, ...]
    """The columns of the data frame that `format` gets the values of, in this order."""
    format: Callable[..., str]
    unit: Unit | None = None
    align: Align = "left"
    priority: int = ESSENTIAL
    """Where a table is too wide, the columns of the lowest priority are dropped first, and ESSENTIAL ones never."""
    is_optional: bool = False
    """Whether the column is dropped where no row has a value for it."""
    is_note: bool = False
    """Whether its texts are sentences, which terminals and logs show below the table."""
    is_finding: bool = False
    """Whether the table is read for it: it stays a column also where all rows are alike."""

    @property
    def heading(self) -> str:
        """The title with the unit: `step time, ms`, `samples/s`."""
        return ", ".join(part for part in (self.title, self.unit.label if self.unit else "") if part)

    def has_value(self, rows: pd.DataFrame) -> bool:
        """Return whether any row has a value, an empty text being none."""
        values = rows[list(self.sources)]
        return bool((values.notna() & (values != "")).any(axis=None))


@dataclass(frozen=True, kw_only=True)
class Table:
    """Columns over the rows of a data frame. The first column names the row."""

    caption: str
    columns: tuple[Column, ...]
    rows: pd.DataFrame
    remark: str = ""
    """What a reader must know before reading the table."""
    alike: str = ""
    """What holds for all rows, for the caption: `timed steps 90 · verdict valid`."""

    @property
    def headings(self) -> list[str]:
        return [column.heading for column in self.columns]

    def lift_alike(self) -> "Table":
        """Return the table without the columns whose texts are all the same: `alike` says them once.

        The first column, those that the table is read for, and those without any value stay.
        """
        if len(self.rows) < LEAST_ALIKE_ROWS:
            return self
        first, *others = self.columns
        found = {column.title: text for column in others if (text := find_common_text(column, self.rows))}
        kept = tuple(column for column in others if column.title not in found)
        if not found or not kept:
            return self
        units = {column.title: column.unit.label if column.unit else "" for column in others}
        said = (" ".join(filter(None, [title and f"{title}:", text, units[title]])) for title, text in found.items())
        return replace(self, columns=(first, *kept), alike=" · ".join(filter(None, [self.alike, *said])))

    def format_rows(self) -> list[tuple[str, ...]]:
        texts = [format_column(column, self.rows) for column in self.columns]
        return list(zip(*texts, strict=True))


def make_table(caption: str, columns: list[Column], rows: pd.DataFrame, *, remark: str = "") -> Table:
    """Return a table whose columns are read from the rows, without the optional columns that have no value in any row.

    `caption`: stands above it, and names it in links. `remark`: stands below it.
    """
    shown = tuple(column for column in columns if not column.is_optional or column.has_value(rows))
    return Table(caption=caption, columns=shown, rows=rows, remark=remark)


def select_known(rows: pd.DataFrame, columns: list[Column]) -> pd.DataFrame:
    sources = [source for column in columns for source in column.sources]
    return rows[rows[sources].notna().any(axis="columns")]


def find_common_text(column: Column, rows: pd.DataFrame) -> str:
    """Return the text that all rows have in a column; empty if they differ, have none, or the column stays anyway."""
    if column.is_finding:
        return ""
    texts = set(format_column(column, rows))
    return texts.pop() if len(texts) == 1 and not texts & {"", NOT_THERE} else ""


def format_column(column: Column, rows: pd.DataFrame) -> list[str]:
    values = (rows[source].to_list() for source in column.sources)
    return [column.format(*row) for row in zip(*values, strict=True)]


def text_column(title: str, source: str, *, priority: int = ESSENTIAL, is_optional: bool = False) -> Column:
    """Return a column of words; a missing value is shown as nothing."""
    return Column(title=title, sources=(source,), format=_format_text, priority=priority, is_optional=is_optional)


def count_column(title: str, source: str) -> Column:
    """Return a column of whole numbers, thousands grouped."""
    return Column(title=title, sources=(source,), format="{:,}".format, align="right")


def number_column(
    title: str,
    source: str,
    unit: Unit,
    *,
    priority: int = ESSENTIAL,
    is_optional: bool = False,
    num_digits: int | None = None,
) -> Column:
    """Return a column of amounts, held in base units and shown in `unit`; a missing value is shown as a dash."""
    return Column(
        title=title,
        sources=(source,),
        format=lambda value: format_number(_to_float(value), unit, num_digits),
        unit=unit,
        align="right",
        priority=priority,
        is_optional=is_optional,
    )


def interval_column(
    title: str, low: str, high: str, unit: Unit, *, priority: int = ESSENTIAL, num_digits: int | None = None
) -> Column:
    """Return a column of `low to high`, held in base units and shown in `unit`; no interval is shown as a dash."""
    return Column(
        title=title,
        sources=(low, high),
        format=lambda low, high: format_interval(_to_float(low), _to_float(high), unit, num_digits),
        unit=unit,
        align="right",
        priority=priority,
    )


def ratio_column(title: str, name: str) -> Column:
    return Column(title=title, sources=(name,), format=_if_known(format_ratio), align="right")


def ratio_interval_column(title: str, name: str) -> Column:
    return Column(title=title, sources=(f"{name}_low", f"{name}_high"), format=_if_known(format_ratios), align="right")


def _if_known(form: Callable[..., str]) -> Callable[..., str]:
    return lambda *values: NOT_THERE if any(map(pd.isna, values)) else form(*values)


def _format_text(value: object) -> str:
    return "" if pd.isna(value) else str(value)  # type: ignore[call-overload]


def _to_float(value: object) -> float | None:
    return None if pd.isna(value) else float(value)  # type: ignore[call-overload,arg-type]


CELL = text_column("cell", "label")
"""The first column of most tables: the name of the cell, of `add_labels`."""


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
    """Return the table with numbers in the place of its notes, and the notes by their numbers from 1."""
    numbers: dict[str, int] = {}
    rows, columns = table.rows, []
    for column in table.columns:
        if column.is_note:
            texts = format_column(column, rows)
            marks = [f"[{numbers.setdefault(text, len(numbers) + 1)}]" if text else "" for text in texts]
            rows = rows.assign(**{f"number of {column.title}": marks})
            column = text_column(column.title, f"number of {column.title}")
        columns.append(column)
    return replace(table, columns=tuple(columns), rows=rows), list(numbers)


def _print_columns(console: Console, table: Table) -> None:
    if not console.is_terminal:
        wide = type(console)(file=console.file, width=_measure_width(console, table))  # as careful as the one given
        wide.print(_render(table))
        return
    dispensable = [column for column in table.columns if column.priority < ESSENTIAL]
    for column in sorted(dispensable, key=lambda column: column.priority):
        if _measure_width(console, table) > console.width:
            table = replace(table, columns=tuple(kept for kept in table.columns if kept is not column))
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


def write_markdown(tables: Iterable[Table]) -> str:
    """Return the tables as Markdown, each under its caption, numbers aligned to the right."""
    return "\n".join("\n".join(_list_markdown(table)) + "\n" for table in tables)


def _list_markdown(table: Table) -> Iterator[str]:
    yield f"**{escape_markdown(table.caption)}**\n"
    if table.remark:
        yield f"{escape_markdown(table.remark)}\n"
    rules = ("---:" if column.align == "right" else "---" for column in table.columns)
    yield f"| {' | '.join(map(escape_markdown, table.headings))} |\n| {' | '.join(rules)} |"
    yield from (f"| {' | '.join(map(escape_markdown, row))} |" for row in table.format_rows())


LATEX_PREAMBLE = (
    "% Needs \\usepackage{booktabs}, and with pdfLaTeX \\usepackage[T1]{fontenc} and \\usepackage{textcomp}.\n"
    "% Units stand in the headings; numbers are text, so siunitx is not needed.\n"
)


def write_latex(tables: Iterable[Table]) -> str:
    return LATEX_PREAMBLE + "".join(f"\n{_write_latex_table(table)}" for table in tables)


def _write_latex_table(table: Table) -> str:
    rows = [[flatten_text(text) for text in row] for row in table.format_rows()]
    caption = flatten_text(". ".join(filter(None, [table.caption, table.remark])))
    return pd.DataFrame(rows, columns=table.headings).to_latex(
        index=False,
        escape=True,
        caption=re.sub(r"([%&$#_{}])", r"\\\1", caption),
        label=f"tab:{re.sub('[^a-z0-9]+', '-', table.caption.lower()).strip('-')}",
        column_format="".join("r" if column.align == "right" else "l" for column in table.columns),
    )


def flatten_text(text: str) -> str:
    """Return the text on one line; control characters are left out."""
    return "".join(filter(str.isprintable, " ".join(text.split())))
