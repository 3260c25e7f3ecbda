"""Find out whether the terminal's lines can be drawn again, and which variables about it cannot be used."""

import os
from collections.abc import MutableMapping
from typing import TYPE_CHECKING

if TYPE_CHECKING:  # rich takes 40 ms to import: `benchmatrix version` does without
    from rich.console import Console

WIDTHS = ("COLUMNS", "LINES", "TERMINAL_WIDTH")
"""Variables that rich and typer read as whole numbers."""
MAX_WIDTH = 10_000
"""Of a terminal, in columns or lines; what is above is a slip, and rich would fill such a line with blanks."""


def clean_variables(variables: MutableMapping[str, str] = os.environ) -> None:
    """Remove sizes of the terminal that are no whole numbers above 0, such as `²`: the real size is used then.

    rich takes `²` for digits and fails (`str.isdigit`), and typer fails on any other word.
    """
    for name in WIDTHS:
        value = variables.get(name)
        if value is not None and not (value.isascii() and value.isdigit() and 0 < int(value[:9]) <= MAX_WIDTH):
            del variables[name]


def can_redraw(console: "Console") -> bool:
    """Return whether lines of the console can be drawn again, as progress does.

    They cannot in a pipe, in a log of CI even where it asks for colours, and in a terminal with `TERM=dumb`.
    """
    is_log = os.environ.get("CI", "").lower() not in ("", "0", "false")
    return console.is_terminal and not console.is_dumb_terminal and console.file.isatty() and not is_log
