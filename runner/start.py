"""Starts the command line: until its modules are imported, Ctrl-C ends the process at once and without a traceback."""

import os
import signal
from types import FrameType

EXIT_INTERRUPTED = 128 + signal.SIGINT


def main() -> None:
    """Import the command line and run it. An ignored Ctrl-C stays ignored."""
    _fill_descriptors()
    previous = signal.getsignal(signal.SIGINT)
    if previous is signal.default_int_handler:
        signal.signal(signal.SIGINT, _end)  # nothing is begun yet that would have to be put in order
    from runner.cli import main as run

    try:
        if previous is signal.default_int_handler:
            signal.signal(signal.SIGINT, previous)
        run()
    except KeyboardInterrupt:  # between the import and the first command, or after the last one
        os._exit(EXIT_INTERRUPTED)


def _fill_descriptors() -> None:
    """Open /dev/null where stdin, stdout or stderr was closed: a result would be the next file with such a number.

    Libraries that are not Python's, and programs that are started, write their messages to 2 whatever it is.
    """
    for number in range(3):
        try:
            os.fstat(number)
        except OSError:
            nowhere = os.open(os.devnull, os.O_RDWR)
            if nowhere != number:  # it takes the lowest number that is free
                os.dup2(nowhere, number)
                os.close(nowhere)


def _end(number: int, frame: FrameType | None) -> None:
    os._exit(EXIT_INTERRUPTED)
