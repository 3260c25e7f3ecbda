"""Report a stdout or stderr that can no longer be written, and make consoles that foreign texts cannot steer.

No other module makes a console, and none prints by other means than a console and `terminal_text.echo`.
"""

import os
import sys
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, Any, TextIO, cast

from bench.errors import UserError
from runner.terminal_text import BIDIRECTIONAL_MARKS, hide_credentials

if TYPE_CHECKING:  # rich takes 40 ms to import: `benchmatrix version` does without
    from rich.console import Console


class OutputError(UserError):
    """Stdout or stderr cannot be written. No OSError: libraries would take a closed pipe for an end like any other."""


class OutputClosedError(OutputError):
    """Nobody reads the output any more, as after `| head`."""


class GuardedStream:
    """A stream whose faults are OutputErrors; all else is the stream's own.

    `takes_messages`: what is written are messages, which hold no user and no password of a URL.
    """

    def __init__(self, stream: TextIO, name: str, *, takes_messages: bool = False) -> None:
        self._stream = stream
        self._name = name
        self._takes_messages = takes_messages

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)

    def write(self, text: str) -> int:
        """Write as the stream does; marks that change a text's direction become escapes, whoever prints them."""
        shown = hide_credentials(text) if self._takes_messages else text
        with self._name_faults():
            return self._stream.write(shown.translate(BIDIRECTIONAL_MARKS))

    def writelines(self, lines: Iterable[str]) -> None:
        """Write as the stream does."""
        for line in lines:
            self.write(line)

    def flush(self) -> None:
        """Flush as the stream does."""
        with self._name_faults():
            self._stream.flush()

    @contextmanager
    def _name_faults(self) -> Iterator[None]:
        try:
            yield
        except BrokenPipeError as error:
            raise OutputClosedError(f"{self._name} was closed") from error
        except OSError as error:
            reason = error.strerror or str(error)
            raise OutputError(f"{self._name} cannot be written: {reason}; give another place for it") from error


@contextmanager
def guard_output() -> Iterator[None]:
    """Turn faults of stdout and stderr into OutputError; both are flushed at the end, whatever the end is."""
    streams = sys.stdout, sys.stderr
    for stream in streams:
        if hasattr(stream, "reconfigure"):  # a name that is not UTF-8, or a terminal that knows ASCII alone
            stream.reconfigure(errors="backslashreplace")
    if streams[0] is not None:  # started with a closed stdout: `>&-`
        sys.stdout = cast("TextIO", GuardedStream(streams[0], "stdout"))
    if streams[1] is not None:
        sys.stderr = cast("TextIO", GuardedStream(streams[1], "stderr", takes_messages=True))
    guarded = sys.stdout, sys.stderr
    try:
        yield
    finally:
        sys.stdout, sys.stderr = streams
        for stream in guarded:
            if stream is not None:
                stream.flush()


def abandon_output() -> None:
    """Drop what is unwritten and can no longer be written: Python would try it again at its end, and end with 120."""
    for stream in (sys.stdout, sys.stderr):
        try:
            if stream is not None:
                stream.flush()
        except OSError:
            with suppress(OSError), open(os.devnull, "wb") as nowhere:
                os.dup2(nowhere.fileno(), stream.fileno())


def make_console(file: TextIO | None = None, *, to_stderr: bool = False, width: int | None = None) -> "Console":
    """Return a console for stdout, for stderr or for a file, less what is unprintable in its texts."""
    from runner.printable_console import PrintableConsole

    return PrintableConsole(file=file, stderr=to_stderr, width=width, markup=False, emoji=False, highlight=False)
