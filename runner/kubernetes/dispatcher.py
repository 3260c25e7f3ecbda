"""The event queue of the main thread, and the daemon threads that send its requests.

All state is changed on the main thread, which runs one queued call after the other; so nothing else needs a lock. The
threads neither outlive the process nor keep it from ending, as a pool's would.
"""

import queue
import sched
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial
from typing import NoReturn, Self, TypeVar

from bench.store import StoreError

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


class RequestThreads:
    """Daemon threads that take work from one queue; it must not raise."""

    def __init__(self, num_threads: int, name: str) -> None:
        self._queue: queue.SimpleQueue[Callable[[], None] | None] = queue.SimpleQueue()
        self._is_stopped = False
        self._threads = [
            threading.Thread(target=self._work, name=f"{name}-{number}", daemon=True) for number in range(num_threads)
        ]
        for thread in self._threads:
            thread.start()

    def submit(self, work: Callable[[], None]) -> None:
        self._queue.put(work)

    def stop(self) -> None:
        self._is_stopped = True
        for _ in self._threads:
            self._queue.put(None)

    def await_end(self, deadline: float) -> None:
        """Wait, after `stop`, until no work is being done any more; until `deadline` (time.monotonic) at the most."""
        for thread in self._threads:
            thread.join(max(0.0, deadline - time.monotonic()))

    def _work(self) -> None:
        while (work := self._queue.get()) is not None and not self._is_stopped:
            work()


@dataclass(kw_only=True)
class Dispatcher:
    """Runs calls on the main thread, and requests on other threads.

    Stops at the end of its `with` block and waits for its requests under way, also after an error: otherwise they would
    go on beside whatever comes next, each with a socket. Ctrl-C, and a signal that ends the process, are not to wait
    for an answer.
    """

    warn_user: Callable[[str], None]
    patience_seconds: float
    """How long requests to a store that fails are repeated."""
    _queue: "queue.SimpleQueue[Callable[[], None]]" = field(default_factory=queue.SimpleQueue, repr=False)
    _later: sched.scheduler = field(default_factory=partial(sched.scheduler, time.monotonic), repr=False)
    _warned_at: dict[str, float] = field(default_factory=dict, repr=False)
    """When a warning was last given, by its dedup_key."""
    _submitters: RequestThreads = field(default_factory=partial(RequestThreads, NUM_SUBMITTERS, "submit"), repr=False)
    _recorders: RequestThreads = field(default_factory=partial(RequestThreads, NUM_RECORDERS, "record"), repr=False)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, _kind: object, error: BaseException | None, _traceback: object) -> None:
        deadline = time.monotonic() + LAST_REQUESTS_SECONDS
        self.stop()
        if error is None or isinstance(error, Exception):
            for threads in (self._submitters, self._recorders):
                threads.await_end(deadline)

    def stop(self) -> None:
        for threads in (self._submitters, self._recorders):
            threads.stop()

    def post(self, call: Callable[[], None]) -> None:
        """Queue a call for the main thread; may be used from any thread."""
        self._queue.put(call)

    def call_later(self, seconds: float, call: Callable[[], None]) -> None:
        self._later.enter(seconds, 0, call)

    def run_next(self) -> None:
        """Wait TICK_SECONDS at most for a call; run it and those queued behind it. Raise what they raise."""
        with suppress(queue.Empty):
            self._queue.get(timeout=TICK_SECONDS)()
            for _ in range(MAX_BATCH):
                self._queue.get_nowait()()
        self._later.run(blocking=False)

    def stop_submitting(self, seconds: float) -> None:
        """Drop the Jobs that are queued, and wait for the requests under way, `seconds` at most."""
        self._submitters.stop()
        self._submitters.await_end(time.monotonic() + seconds)

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
