"""Work for other threads in, what came of it heard one by one in the thread that decides out; warnings likewise."""

import queue
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial
from typing import NoReturn, TypeVar

from bench.store import StoreError
from runner.kubernetes.request_threads import RequestThreads

NUM_SUBMITTERS = 16
NUM_RECORDERS = 8
MAX_HEARD = 500
"""News that are heard before anything else is done."""
TICK_SECONDS = 1.0
"""For so long nothing is waited for: there may be something to do that no news tells of."""
TELL_AGAIN_SECONDS = 600.0
"""Before the same warning may come again."""
STORE_PAUSE_SECONDS = 10.0

T = TypeVar("T")


@dataclass(kw_only=True)
class Dispatcher:
    """Of the thread that decides: its inbox, and the threads that send requests for it."""

    tell_user: Callable[[str], None]
    patience_seconds: float
    """How long a store that cannot be used is waited for."""
    _inbox: "queue.SimpleQueue[Callable[[], None]]" = field(default_factory=queue.SimpleQueue, repr=False)
    _told_at: dict[str, float] = field(default_factory=dict, repr=False)
    """By dedup_key of a warning: when it was last told."""
    _submitters: RequestThreads = field(default_factory=partial(RequestThreads, NUM_SUBMITTERS, "submit"), repr=False)
    _recorders: RequestThreads = field(default_factory=partial(RequestThreads, NUM_RECORDERS, "record"), repr=False)

    def put(self, news: Callable[[], None]) -> None:
        """Have the deciding thread call `news`; to be used from any thread."""
        self._inbox.put(news)

    def hear_next(self) -> None:
        """Call the next news, waiting a little for it, and what has come meanwhile; raises what they raise."""
        with suppress(queue.Empty):
            self._inbox.get(timeout=TICK_SECONDS)()
            for _ in range(MAX_HEARD):
                self._inbox.get_nowait()()

    def stop(self) -> None:
        """Let the threads end after what they do now."""
        self._submitters.stop()
        self._recorders.stop()

    def stop_submitting(self, seconds: float) -> None:
        """Have no further Job made; what is being made is waited for, so long at the most."""
        self._submitters.stop()
        self._submitters.await_end(seconds)

    def submit(self, work: Callable[[], T], then: Callable[[T], None]) -> None:
        """Have a Job made by `work`; the deciding thread hears by `then` what it returned, or meets what it raised."""
        self._work(self._submitters, work, then)

    def ask(self, work: Callable[[], T], then: Callable[[T], None]) -> None:
        """Have the API server asked by `work`, and heard as `submit` says."""
        self._work(self._recorders, work, then)

    def record(self, work: Callable[[], T], then: Callable[[T], None]) -> None:
        """Have `work` done that needs the store; while that cannot be used, it is tried again, and told about."""

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

        self._work(self._recorders, persist, then)

    def warn_later(self, message: str, dedup_key: str | None = None) -> None:
        """Have the deciding thread warn; to be used from any thread."""
        self.put(partial(self.warn, message, dedup_key))

    def warn(self, message: str, dedup_key: str | None = None) -> None:
        """Tell the user, but not twice in short time what has the same dedup_key."""
        now, key = time.monotonic(), dedup_key or message
        if now - self._told_at.get(key, -TELL_AGAIN_SECONDS) >= TELL_AGAIN_SECONDS:
            self._told_at[key] = now
            self.tell_user(message)

    def _work(self, workers: RequestThreads, work: Callable[[], T], then: Callable[[T], None]) -> None:
        def do() -> None:
            try:
                result = work()
            except Exception as error:  # noqa: BLE001  (raised where it is heard)
                self.put(partial(_raise, error))
            else:
                self.put(partial(then, result))

        workers.submit(do)


def _raise(error: Exception) -> NoReturn:
    raise error
