"""The event queue of the main thread, and the threads that send its requests.

All state is changed on the main thread, which runs one queued call after the other; so nothing else needs a lock.
"""

import heapq
import itertools
import queue
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial
from typing import NoReturn, TypeVar

from bench.store import StoreError
from runner.kubernetes.request_threads import RequestThreads, StoppedAtEnd

NUM_SUBMITTERS = 16
NUM_RECORDERS = 8
MAX_BATCH = 500
"""Queued calls that are run before anything else is done."""
TICK_SECONDS = 1.0
"""How long the main thread waits for an event before it looks for other work."""
REPEAT_WARNING_SECONDS = 600.0
"""How long the same warning is held back."""
STORE_PAUSE_SECONDS = 10.0
LAST_REQUESTS_SECONDS = 10.0
"""How long, at the end, the requests under way are waited for: one that is repeated may take minutes."""

T = TypeVar("T")


@dataclass(kw_only=True)
class Dispatcher(StoppedAtEnd):
    """Runs calls on the main thread, and requests on other threads."""

    warn_user: Callable[[str], None]
    patience_seconds: float
    """How long requests to a store that fails are repeated."""
    _queue: "queue.SimpleQueue[Callable[[], None]]" = field(default_factory=queue.SimpleQueue, repr=False)
    _delayed: list[tuple[float, int, Callable[[], None]]] = field(default_factory=list, repr=False)
    """A heap: when (time.monotonic) to run a call, its number, the call."""
    _numbers: "itertools.count[int]" = field(default_factory=itertools.count, repr=False)
    _warned_at: dict[str, float] = field(default_factory=dict, repr=False)
    """When a warning was last given, by its dedup_key."""
    _submitters: RequestThreads = field(default_factory=partial(RequestThreads, NUM_SUBMITTERS, "submit"), repr=False)
    _recorders: RequestThreads = field(default_factory=partial(RequestThreads, NUM_RECORDERS, "record"), repr=False)

    def post(self, call: Callable[[], None]) -> None:
        """Queue a call for the main thread; may be used from any thread."""
        self._queue.put(call)

    def call_later(self, seconds: float, call: Callable[[], None]) -> None:
        """Run a call on the main thread after a delay; to be used from the main thread."""
        heapq.heappush(self._delayed, (time.monotonic() + seconds, next(self._numbers), call))

    def run_next(self) -> None:
        """Wait TICK_SECONDS at most for a call; run it and those queued behind it. Raise what they raise."""
        with suppress(queue.Empty):
            self._queue.get(timeout=TICK_SECONDS)()
            for _ in range(MAX_BATCH):
                self._queue.get_nowait()()
        while self._delayed and self._delayed[0][0] <= time.monotonic():
            heapq.heappop(self._delayed)[2]()

    def stop(self) -> None:
        """Let the request threads end after what they do now."""
        self._submitters.stop()
        self._recorders.stop()

    def await_end(self) -> None:
        """Wait, after `stop`, for the requests under way, LAST_REQUESTS_SECONDS at most."""
        deadline = time.monotonic() + LAST_REQUESTS_SECONDS
        for threads in (self._submitters, self._recorders):
            threads.await_end(deadline - time.monotonic())

    def stop_submitting(self, seconds: float) -> None:
        """Drop the Jobs that are queued, and wait for the requests under way, `seconds` at most."""
        self._submitters.stop()
        self._submitters.await_end(seconds)

    def submit(self, work: Callable[[], T], then: Callable[[T], None]) -> None:
        """Run `work`, which creates a Job, on a submitting thread and pass its result to `then` on the main thread.

        What `work` raises is raised on the main thread.
        """
        self._run(self._submitters, work, then)

    def request(self, work: Callable[[], T], then: Callable[[T], None]) -> None:
        """Run `work`, which asks the API server, on a recording thread and pass its result to `then`; see `submit`."""
        self._run(self._recorders, work, then)

    def record(self, work: Callable[[], T], then: Callable[[T], None]) -> None:
        """Run `work`, which uses the store, as `request` does; repeat it, with a warning, while the store fails."""

        def persist() -> T:
            deadline = time.monotonic() + self.patience_seconds
            while True:
                try:
                    return work()
                except StoreError as error:
                    if time.monotonic() > deadline:
                        raise
                    self.warn_later(f"{error}; it is tried again", "store")
                    time.sleep(STORE_PAUSE_SECONDS)

        self._run(self._recorders, persist, then)

    def warn_later(self, message: str, dedup_key: str | None = None) -> None:
        """Queue a warning; may be used from any thread."""
        self.post(partial(self.warn, message, dedup_key))

    def warn(self, message: str, dedup_key: str | None = None) -> None:
        """Warn the user, unless a warning of the same dedup_key was given a short time ago."""
        now, key = time.monotonic(), dedup_key or message
        if now - self._warned_at.get(key, -REPEAT_WARNING_SECONDS) >= REPEAT_WARNING_SECONDS:
            self._warned_at[key] = now
            self.warn_user(message)

    def _run(self, threads: RequestThreads, work: Callable[[], T], then: Callable[[T], None]) -> None:
        def run() -> None:
            try:
                result = work()
            except Exception as error:  # noqa: BLE001  (raised on the main thread)
                self.post(partial(_raise, error))
            else:
                self.post(partial(then, result))

        threads.submit(run)


def _raise(error: Exception) -> NoReturn:
    raise error
