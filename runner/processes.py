"""Processes that this one starts: none is forgotten at Ctrl-C, all are ended in the end, and how they end in words."""

import errno
import os
import select
import signal
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from types import FrameType

GRACE_SECONDS = 1.0
"""Between SIGTERM and SIGKILL."""
TASKS = Path("/proc/self/task")


def list_children(thread: int | None = None) -> set[int]:
    """Return the processes that a thread of this process, or all of them, have started and not waited for.

    `thread`: its number in the system. Empty where the system does not list them; Linux alone does.
    """
    try:
        tasks = [TASKS / str(thread)] if thread is not None else [*TASKS.iterdir()]
    except OSError:
        return set()
    return {pid for task in tasks for pid in _read_children(task)}


def end_programs(pids: Iterable[int]) -> None:
    """Send SIGTERM to these children; kill what is left after a moment of them and of all that they have started."""
    trees = [*_hold_trees(pids)]
    if not trees:
        return
    try:
        for handle, is_child in trees:
            if is_child:
                _send(handle, signal.SIGTERM)
        _await_ends([handle for handle, _ in trees])
    finally:  # at a second Ctrl-C at once
        for handle, _ in trees:
            _send(handle, signal.SIGKILL)
            os.close(handle)


def _hold_trees(pids: Iterable[int]) -> Iterator[tuple[int, bool]]:
    """Yield a handle of each process and of its descendants, and whether it is a child of this process.

    By a handle no signal reaches another process that gets the number later. A descendant whose parent ends meanwhile
    has another one then, and cannot be found any more: so all are held before the first is ended.
    """
    waiting = [(pid, True) for pid in pids]
    while waiting:
        pid, is_child = waiting.pop()
        with suppress(OSError):  # it has ended
            handle = os.pidfd_open(pid)
            yield handle, is_child
            tasks = Path(f"/proc/{pid}/task").iterdir()
            waiting += [(child, False) for task in tasks for child in _read_children(task)]


def _read_children(task: Path) -> list[int]:
    with suppress(OSError):  # the thread has ended
        return [int(pid) for pid in (task / "children").read_text().split()]
    return []


def _send(handle: int, number: int) -> None:
    with suppress(OSError):  # it has ended
        signal.pidfd_send_signal(handle, number)


def _await_ends(handles: list[int]) -> None:
    """Wait until all have ended, GRACE_SECONDS at most. One that nobody has waited for has ended, too."""
    poll, left = select.poll(), len(handles)
    for handle in handles:
        poll.register(handle, select.POLLIN)
    deadline = time.monotonic() + GRACE_SECONDS
    while left and (seconds := deadline - time.monotonic()) > 0:
        for handle, _ in poll.poll(1000 * seconds):
            poll.unregister(handle)
            left -= 1


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
    """Say in words which resource ran out, and how to raise its limit; return None if the error has another cause."""
    if isinstance(error, MemoryError):
        return _BY_NUMBER[errno.ENOMEM]
    if isinstance(error, OSError):
        if error.errno in (errno.ENOSPC, errno.EDQUOT):
            place = "" if error.filename is None else f"of {str(error.filename)!r} "
            return f"the disk {place}is full; free some space, or name another place"
        return _BY_NUMBER.get(error.errno or 0)
    return _BY_NUMBER[errno.EAGAIN] if "can't start new thread" in str(error) else None
