"""Ends programs that this process has started and nobody waits for any more, with all that they have started."""

import os
import select
import signal
import time
from collections.abc import Iterable, Iterator
from contextlib import suppress
from pathlib import Path

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
