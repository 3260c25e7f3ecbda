"""The limit of parallel requests: halved when the server asks for a pause, one more after each round that went well.

Additive increase, multiplicative decrease, as TCP does: D.-M. Chiu and R. Jain, Analysis of the Increase and Decrease
Algorithms for Congestion Avoidance in Computer Networks, 1989.
"""

import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager

MAX_PAUSE_SECONDS = 30.0
"""The longest Retry-After that is obeyed."""


class RateLimiter:
    """Limits how many requests run at once, and holds them back for a while; to be used from many threads."""

    def __init__(self, max_parallel: int) -> None:
        self._max_parallel = max_parallel
        self._allowed = float(max_parallel)
        self._running = 0
        self._not_before = 0.0
        self._condition = threading.Condition()

    @property
    def num_allowed(self) -> int:
        """How many requests may run at once at present."""
        return int(self._allowed)

    @contextmanager
    def hold(self) -> Iterator[None]:
        """Wait for a place, and keep it for the block."""
        with self._condition:
            while True:
                pause = self._not_before - time.monotonic()
                if pause <= 0 and self._running < self.num_allowed:
                    break
                self._condition.wait(pause if pause > 0 else None)
            self._running += 1
        try:
            yield
        finally:
            with self._condition:
                self._running -= 1
                self._condition.notify()

    def slow_down(self, retry_after: float | None) -> None:
        """Halve the limit, and hold all requests back for `retry_after` seconds if the server names any."""
        with self._condition:
            self._allowed = max(1.0, self._allowed / 2)
            if retry_after:
                until = time.monotonic() + min(retry_after, MAX_PAUSE_SECONDS)
                self._not_before = max(self._not_before, until)

    def speed_up(self) -> None:
        """Note a request that went well; a round of as many as may run at once raises the limit by one."""
        if self._allowed >= self._max_parallel:
            return
        with self._condition:
            self._allowed = min(self._max_parallel, self._allowed + 1 / self._allowed)
            self._condition.notify()
