"""Waits for work of a library that has no limits of its own: for a time, and while it takes no more than a memory.

The timeout of a socket is one of silence: an answer that comes byte by byte, or that begins with `100 Continue` without
end, never meets it.
"""

import math
import os
import threading
import time
from collections.abc import Callable
from concurrent.futures import Future, wait
from contextlib import suppress
from pathlib import Path
from typing import TypeVar

from bench.child_processes import end_programs, list_children

CHECK_SECONDS = 0.05

T = TypeVar("T")


class WorkTooSlowError(Exception):
    """Work took longer than it may."""

    def __init__(self, seconds: float) -> None:
        super().__init__(f"not done after {seconds:g} s")


class WorkTooLargeError(Exception):
    """Work took more memory than it may."""


def run_bounded(work: Callable[[], T], *, limit_seconds: float, max_bytes: float = math.inf) -> T:
    """Return what `work` returns or raise what it raises; WorkTooSlowError or WorkTooLargeError beyond its limits.

    It has a thread of its own, which does not keep the process alive. Programs that this thread has started are ended
    beyond a limit, and at Ctrl-C; the thread itself cannot be. `max_bytes`: by how much the process may grow meanwhile;
    it is not known without Linux's /proc, and not limited there.
    """
    future: Future[T] = Future()
    thread = threading.Thread(target=_fulfil, args=(future, work), name="bounded", daemon=True)
    thread.start()
    try:
        _wait(future, thread, limit_seconds, max_bytes)
        return future.result()
    finally:
        if not future.done():
            end_programs(list_children(thread.native_id))
        del future  # an error's traceback has this frame: what the error holds, a socket perhaps, would stay open


def _wait(future: "Future[T]", thread: threading.Thread, limit_seconds: float, max_bytes: float) -> None:
    is_weighed = math.isfinite(max_bytes)
    before, deadline = read_resident_bytes() if is_weighed else 0, time.monotonic() + limit_seconds
    while wait([future], CHECK_SECONDS if is_weighed else limit_seconds).not_done:
        if is_weighed and read_resident_bytes() - before > max_bytes:
            raise WorkTooLargeError
        if time.monotonic() > deadline:
            raise WorkTooSlowError(limit_seconds)


def read_resident_bytes() -> int:
    """Return how much memory this process takes; 0 where that is not known, without Linux's /proc."""
    with suppress(OSError, ValueError, IndexError):
        return int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")
    return 0


def _fulfil(future: "Future[T]", work: Callable[[], T]) -> None:
    try:
        future.set_result(work())
    except BaseException as error:  # raised in the thread that waits
        future.set_exception(error)
