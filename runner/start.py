"""Starts the command line, and ends it in order on Ctrl-C, SIGTERM and SIGHUP: 128 plus the signal's number."""

import os
import signal
import sys
from collections.abc import Callable
from types import FrameType
from typing import NoReturn

from bench.child_processes import end_programs, list_children

Handler = Callable[[int, FrameType | None], object] | signal.Handlers

EXIT_INTERRUPTED = 128 + signal.SIGINT
ENDING_SIGNALS = (signal.SIGTERM, signal.SIGHUP)
"""What ends a process that does not handle it, at once: a file that is being written would stay beside its target."""

AGAIN_SECONDS = 0.01
"""After which a signal is sent again that came where Python drops exceptions."""


def main() -> None:
    """Import the command line and run it. An ignored signal stays ignored.

    Until its modules are imported, Ctrl-C ends the process at once and without a traceback. No program that was started
    outlives the command.
    """
    _fill_descriptors()
    others = list_children()  # of a shell that became this process
    previous = signal.getsignal(signal.SIGINT)
    if previous is signal.default_int_handler:
        signal.signal(signal.SIGINT, _end)  # nothing is begun yet that would have to be put in order
    from runner.cli import main as run

    try:
        try:
            if previous is signal.default_int_handler:
                signal.signal(signal.SIGINT, previous)
            _replace_handlers(signal.SIG_DFL, _end_in_order)
            sys.unraisablehook = _send_again
            run()
        finally:
            _end_children(others)
            if previous is signal.default_int_handler:
                signal.signal(signal.SIGINT, _end)  # a second Ctrl-C, while Python ends, would be a traceback
            _replace_handlers(_end_in_order, signal.SIG_DFL)
    except KeyboardInterrupt:  # between the import and the first command, after the last one, or a second one
        signal.signal(signal.SIGINT, signal.SIG_IGN)
        _end_children(others)
        os._exit(EXIT_INTERRUPTED)


def _end_children(others: set[int]) -> None:
    """End the programs that this process has started and that still run: whoever waited for them was interrupted."""
    end_programs(list_children() - others)


def _send_again(unraisable: "sys.UnraisableHookArgs") -> None:
    """Send the signal again whose exception Python has dropped, since it came in a destructor or a callback."""
    error = unraisable.exc_value
    if isinstance(error, KeyboardInterrupt):
        number = int(signal.SIGINT)
    elif isinstance(error, _Ended):
        _replace_handlers(signal.SIG_IGN, _end_in_order)
        number = error.number
    else:
        sys.__unraisablehook__(unraisable)
        return
    import threading  # takes a millisecond, and is hardly ever needed

    # Not at once: it would be dropped here again.
    again = threading.Timer(AGAIN_SECONDS, os.kill, (os.getpid(), number))
    again.daemon = True
    again.start()


def _fill_descriptors() -> None:
    """Open /dev/null where stdin, stdout or stderr was closed: a result would be the next file with such a number.

    Libraries that are not Python's, and programs that are started, write their messages to 2 whatever it is. A result
    for a closed stdout is an error, as it is for `ls >&-`: nobody gets it. Messages for a closed stderr are dropped.
    """
    for number, flags in enumerate((os.O_RDONLY, os.O_RDONLY, os.O_WRONLY)):
        try:
            os.fstat(number)
        except OSError:
            nowhere = os.open(os.devnull, flags)
            if nowhere != number:  # it takes the lowest number that is free
                os.dup2(nowhere, number)
                os.close(nowhere)
    if sys.stdin is None:  # whoever asks whether somebody can be asked would end with a traceback
        sys.stdin = open(0, encoding="utf-8", closefd=False)  # noqa: SIM115  (to the end)
    if sys.stdout is None:  # as Python has it for a closed one; print would say nothing, and end with 0
        sys.stdout = open(1, "w", encoding="utf-8", closefd=False)  # noqa: SIM115  (to the end)
    if sys.stderr is None:  # print would take stdout instead
        sys.stderr = open(2, "w", encoding="utf-8", closefd=False)  # noqa: SIM115  (to the end)


def _replace_handlers(old: Handler, new: Handler) -> None:
    """Let `new` handle the signals that `old` handles now, so that none is taken from whoever has set another."""
    for number in ENDING_SIGNALS:
        if signal.getsignal(number) == old:
            signal.signal(number, new)


class _Ended(SystemExit):
    """A signal has asked the process to end."""

    def __init__(self, number: int) -> None:
        super().__init__(128 + number)
        self.number = number


def _end_in_order(number: int, frame: FrameType | None) -> NoReturn:
    # A terminal that is closed sends SIGHUP twice, systemd SIGTERM and SIGHUP: the second would end the tidying up.
    _replace_handlers(_end_in_order, signal.SIG_IGN)
    raise _Ended(number)


def _end(number: int, frame: FrameType | None) -> None:
    os._exit(EXIT_INTERRUPTED)
