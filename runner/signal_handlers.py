"""Replaces the handlers of signals for a while, and delays Ctrl-C so that no process is started and then forgotten."""

import signal
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from types import FrameType

INTERRUPTS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


@contextmanager
def handle_signals(numbers: Sequence[int], handler: Callable[[int, FrameType | None], None]) -> Iterator[None]:
    """Handle these signals with `handler` inside the block. An ignored signal stays ignored."""
    handled = [number for number in numbers if signal.getsignal(number) is not signal.SIG_IGN]
    previous = {number: signal.signal(number, handler) for number in handled}
    try:
        yield
    finally:
        for number, former in previous.items():
            signal.signal(number, former)


@contextmanager
def delay_interrupts() -> Iterator[None]:
    """Delay Ctrl-C and similar signals to the end of the block, so that no process is started and then forgotten.

    In the main thread alone: Python handles signals in no other.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    waiting: list[int] = []

    def note(number: int, frame: FrameType | None) -> None:
        waiting.append(number)

    try:
        with handle_signals(INTERRUPTS, note):
            yield
    finally:  # also where the process could not be started: nobody else has heard of the signal
        for waited in waiting:
            signal.raise_signal(waited)
