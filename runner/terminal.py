"""Consoles and texts that foreign texts cannot steer, and the words of progress lines.

No other module makes a console, and none prints by other means than a console and `echo`. Texts of others pass one of
three functions on their way to a terminal: `join_printable`, `replace_unprintable` (which consoles do by themselves) or
`escape_unprintable`, for documents.
"""

import json
import os
import re
import sys
from collections.abc import Iterator
from typing import TextIO

from rich.console import Console, ConsoleOptions, RenderableType
from rich.segment import Segment

from bench.redaction import hide_url_users


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


STATUS_STYLES = {"ok": "green", "failed": "red", "oom": "red", "timeout": "red", "preempted": "yellow"}
QUERY = re.compile(r"(://[^\s?'\"]*)(\?[^\s'\"]*)?")
"""A URL, with or without a query: tokens and signatures stand there."""


def format_wait(seconds: float) -> str:
    """Return a duration as people say it: `40 s`, `3 min`, `2 h 5 min`."""
    if round(seconds) < 60:
        return f"{seconds:.0f} s"
    minutes = round(seconds / 60)
    return f"{minutes} min" if minutes < 60 else f"{minutes // 60} h {minutes % 60} min"


def join_printable(message: str) -> str:
    """Return a message on one line, without characters that would move a terminal's cursor."""
    return replace_unprintable(message).replace("\n", " ")


def replace_unprintable(text: str) -> str:
    """Return a text of any number of lines, without characters that steer a terminal, such as ESC and U+202E."""
    return "".join(letter if letter.isprintable() or letter == "\n" else " " for letter in text)


def escape_unprintable(text: str) -> str:
    """Return a document with escapes as JSON has them for what is unprintable; one in JSON says the same."""
    return "".join(one if one.isprintable() or one in "\n\t" else json.dumps(one)[1:-1] for one in text)


def hide_credentials(text: str) -> str:
    """Return a text without user, password and query of a URL: whoever pastes one in a wrong place shows them then."""
    return QUERY.sub(lambda url: f"{url[1]}?..." if url[2] else url[0], hide_url_users(text))


def echo(text: str | bytes, *, err: bool = False, nl: bool = True) -> None:
    document = text if isinstance(text, str) else text.decode()
    print(escape_unprintable(document), end="\n" if nl else "", file=sys.stderr if err else sys.stdout, flush=True)


def format_message(text: str) -> str:
    """Return an error's message: printable, its further lines indented, URLs without user and password.

    A name with a line break in it can so not look like a message of its own.
    """
    return replace_unprintable(hide_credentials(text)).replace("\n", "\n  ")


def warn_on_stderr(text: str) -> None:
    """Print a warning where it is in nobody's way: stdout may get a document."""
    echo(format_message(f"warning: {text}"), err=True)
