"""Daemon threads for requests: they neither outlive the process nor keep it from ending, as a pool's would."""

import queue
import threading
import time
from abc import ABC, abstractmethod
from collections.abc import Callable
from types import TracebackType
from typing import Self


class StoppedAtEnd(ABC):
    """Stops at the end of its `with` block and waits for its requests under way, also after an error.

    Otherwise they would go on beside whatever comes next, each with a socket. Ctrl-C, and a signal that ends the
    process, are not to wait for an answer.
    """

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.stop()
        if error is None or isinstance(error, Exception):
            self.await_end()

    @abstractmethod
    def stop(self) -> None:
        """Let the threads end after what they do now; they are not waited for."""

    @abstractmethod
    def await_end(self) -> None:
        """Wait, after `stop`, until no work is being done any more."""


class RequestThreads(StoppedAtEnd):
    """Daemon threads that take work from one queue; it must not raise."""

    def __init__(self, num_threads: int, name: str) -> None:
        self._queue: queue.SimpleQueue[Callable[[], None] | None] = queue.SimpleQueue()
        self._num_threads = num_threads
        self._is_stopped = False
        self._threads = [
            threading.Thread(target=self._work, name=f"{name}-{number}", daemon=True) for number in range(num_threads)
        ]
        for thread in self._threads:
            thread.start()

    def submit(self, work: Callable[[], None]) -> None:
        """Queue `work` for the next free thread."""
        self._queue.put(work)

    def stop(self) -> None:
        """Drop what has not begun, and let the threads end after what they do now; they are not waited for."""
        self._is_stopped = True
        for _ in range(self._num_threads):
            self._queue.put(None)

    def await_end(self, seconds: float = threading.TIMEOUT_MAX) -> None:
        """Wait, after `stop`, until no work is being done any more; so long at the most."""
        deadline = time.monotonic() + seconds
        for thread in self._threads:
            thread.join(min(max(0.0, deadline - time.monotonic()), threading.TIMEOUT_MAX))

    def _work(self) -> None:
        while (work := self._queue.get()) is not None and not self._is_stopped:
            work()
