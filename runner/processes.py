"""Processes that this one starts: none is forgotten at Ctrl-C, all are ended in the end, and how they end in words."""

import errno
import os
import signal
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from types import FrameType

GRACE_SECONDS = 1.0
"""Between SIGTERM and SIGKILL."""
POLL_SECONDS = 0.02


def list_children(pid: int | str = "self") -> set[int]:
    """Return the processes that a process has started and not waited for; none where the system does not list them."""
    found = set[int]()
    for children in Path(f"/proc/{pid}/task").glob("*/children"):
        with suppress(OSError):  # the thread has ended
            found.update(map(int, children.read_text().split()))
    return found


def read_start(pid: int) -> str | None:
    """Return when a process started, in clock ticks after boot; None if it does not exist or is a zombie."""
    try:
        fields = Path(f"/proc/{pid}/stat").read_text(errors="replace").rpartition(")")[2].split()
    except OSError:
        return None
    return None if fields[0] in "ZX" else fields[19]


def end_programs(pids: Iterable[int]) -> None:
    """Send SIGTERM to these children; kill what is left after a moment of them and of all that they have started.

    A descendant whose parent ends meanwhile has another one then, and cannot be found any more: so all are listed
    before the first is ended, with their starts, as a number may be given again.
    """
    children = below = set(pids)
    starts: dict[int, str | None] = {}
    while below:
        starts |= {pid: read_start(pid) for pid in below}
        below = set().union(*map(list_children, below))

    def send(number: int, targets: Iterable[int]) -> None:
        for pid in targets:
            with suppress(ProcessLookupError, PermissionError):  # it has ended, or is another user's, as with sudo
                os.kill(pid, number)

    def list_left() -> list[int]:
        return [pid for pid, start in starts.items() if start is not None and read_start(pid) == start]

    deadline = time.monotonic() + GRACE_SECONDS
    try:
        send(signal.SIGTERM, children)
        while list_left() and time.monotonic() < deadline:
            time.sleep(POLL_SECONDS)
    finally:  # at a second Ctrl-C at once
        send(signal.SIGKILL, list_left())


ENDING_SIGNALS = (signal.SIGTERM, signal.SIGHUP)
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


class EndRequested(KeyboardInterrupt):
    """A signal has asked the process to end. It ends what runs as Ctrl-C does; only the exit code tells them apart."""

    def __init__(self, signal_number: int) -> None:
        super().__init__(signal_number)
        self.signal_number = signal_number


@contextmanager
def end_like_interrupt() -> Iterator[None]:
    """Make SIGTERM and SIGHUP end the block as Ctrl-C does, with EndRequested. An ignored signal stays ignored.

    So does each of them after the first: a terminal that is closed sends two, which would end the tidying up.
    """

    def interrupt(signal_number: int, frame: FrameType | None) -> None:
        for number in ENDING_SIGNALS:
            signal.signal(number, signal.SIG_IGN)
        raise EndRequested(signal_number)

    with handle_signals(ENDING_SIGNALS, interrupt):
        yield


def find_end_code(interrupt: KeyboardInterrupt) -> int:
    """Return the exit code for what interrupted a command: Ctrl-C, SIGTERM or SIGHUP, as a shell gives it."""
    return 128 + getattr(interrupt, "signal_number", signal.SIGINT)


@contextmanager
def delay_interrupts() -> Iterator[None]:
    """Delay Ctrl-C and similar signals to the end of the block, so that no process is started and then forgotten."""
    if threading.current_thread() is not threading.main_thread():  # Python handles signals in no other
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


# In the last line of a process that did not catch what C++ throws when an allocation fails.
BAD_ALLOC = "std::bad_alloc"


def name_signal(number: int) -> str:
    """Return `SIGSEGV` for 11; most real-time signals have only a number."""
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"signal {number}"


_BY_NUMBER = {
    errno.EMFILE: "this process may open no more files; raise the limit (`ulimit -n`)",
    errno.ENFILE: "this machine can open no more files; end what holds many of them",
    errno.ENOMEM: "no memory is left; free some, or raise the limit (`ulimit -v`, or the container's)",
    errno.EAGAIN: "no thread or process can be started; free memory, or raise the limit (`ulimit -u`, `ulimit -v`, or "
    "the container's)",
}


def explain_exhaustion(error: BaseException) -> str | None:
    """Return which resource ran out, and how to raise its limit; None if the error has another cause."""
    if isinstance(error, MemoryError):
        return _BY_NUMBER[errno.ENOMEM]
    if isinstance(error, OSError):
        if error.errno in (errno.ENOSPC, errno.EDQUOT):
            place = "" if error.filename is None else f"of {str(error.filename)!r} "
            return f"the disk {place}is full; free some space, or name another place"
        return _BY_NUMBER.get(error.errno or 0)
    return _BY_NUMBER[errno.EAGAIN] if "can't start new thread" in str(error) else None
