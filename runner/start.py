"""Starts the command line: until its modules are imported, Ctrl-C ends the process at once and without a traceback."""

import os
import signal
from types import FrameType

EXIT_INTERRUPTED = 128 + signal.SIGINT


def main() -> None:
    """Import the command line and run it. An ignored Ctrl-C stays ignored."""
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


def _end(number: int, frame: FrameType | None) -> None:
    os._exit(EXIT_INTERRUPTED)
