"""Consoles that foreign texts cannot steer, and whether their lines can be drawn again.

No other module makes a console, and none prints by other means than a console and `terminal_text.echo`.
"""

import os
from collections.abc import Iterator
from typing import TextIO

from rich.console import Console, ConsoleOptions, RenderableType
from rich.segment import Segment

from runner.terminal_text import replace_unprintable


class PrintableConsole(Console):
    """A console that replaces what is unprintable in texts; rich's own control codes are no texts.

    The one of rich leaves ESC and the marks that change a text's direction (U+202E) as they are.
    """

    def render(self, renderable: RenderableType, options: ConsoleOptions | None = None) -> Iterator[Segment]:
        """Yield what the console would print, with a space for each unprintable character."""
        for segment in super().render(renderable, options):
            text, style, control = segment
            yield segment if control or text.isprintable() else Segment(replace_unprintable(text), style)

    def on_broken_pipe(self) -> None:
        """Raise BrokenPipeError again: rich would end the process with 1, which means that something is not ok."""
        raise  # noqa: PLE0704  (called where it is handled)


def make_console(file: TextIO | None = None, *, to_stderr: bool = False, width: int | None = None) -> Console:
    return PrintableConsole(file=file, stderr=to_stderr, width=width, markup=False, emoji=False, highlight=False)


def can_redraw(console: Console) -> bool:
    """Return whether lines of the console can be drawn again, as progress does.

    They cannot in a pipe, in a log of CI even where it asks for colours, and in a terminal with `TERM=dumb`.
    """
    is_log = os.environ.get("CI", "").lower() not in ("", "0", "false")
    return console.is_terminal and not console.is_dumb_terminal and console.file.isatty() and not is_log
