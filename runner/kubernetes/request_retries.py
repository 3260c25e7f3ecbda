"""Retries of requests to the API server: which errors pass, how long to wait, and when to give up.

This is about single requests. Why a Job is created again is in job_retries.py.
"""

import random
import threading
import time
from dataclasses import dataclass
from http import HTTPStatus
from typing import Protocol

import kubernetes.client

from runner.kubernetes.api_errors import (
    ANONYMOUS,
    NO_RIGHT,
    REFUSED_CREDENTIALS,
    UNREACHABLE,
    ApiError,
    BusyError,
    is_unauthorized,
)
from runner.kubernetes.rate_limiter import MAX_PAUSE_SECONDS

PATIENCE_SECONDS = 900.0
"""How long requests are repeated to an API server that does not answer."""
FIRST_PATIENCE_SECONDS = 30.0
"""The same for a server that never answered: perhaps there is none at that address."""
LOGIN_PATIENCE_SECONDS = 60.0
"""The same for a server that no longer accepts a user it had accepted, or a request that it had allowed: an expired
token is soon replaced, and a server that starts does not know the roles at first."""
SHORT_PATIENCE_SECONDS = 10.0
"""How long a request is repeated that a run goes on without: lists of nodes, the facts of one node or placement."""
WARN_SECONDS = 5.0
"""Requests that are repeated for so long are reported."""
MIN_WAIT_SECONDS, MAX_WAIT_SECONDS = 0.5, 30.0


class Retried(Protocol):
    """What the retries need to know of a connection."""

    is_known: bool

    def warn(self, message: str, dedup_key: str, /) -> None:
        """Report why requests are repeated; warnings of one dedup_key have the same cause."""

    def log_in_again(self, refused: "kubernetes.client.ApiClient | None") -> None:
        """Read the credentials again if `refused` is the client in use."""


@dataclass(kw_only=True)
class Retries:
    """The waits between the tries of one request: exponential backoff with jitter, until patience is over."""

    connection: Retried
    patience_seconds: float
    _since: float | None = None
    _wait_seconds: float = MIN_WAIT_SECONDS

    def reset(self) -> None:
        """Note a try that went well: the next error starts with the shortest wait."""
        self._since, self._wait_seconds = None, MIN_WAIT_SECONDS

    def wait(self, error: ApiError, stop: threading.Event | None = None) -> None:
        """Wait before the next try, until `stop` at most; raise `error` if there is to be none."""
        now = time.monotonic()
        self._since = now if self._since is None else self._since
        left = self._find_patience(error) - (now - self._since)
        if left <= 0:
            raise error
        if now - self._since >= WARN_SECONDS:
            why = REFUSED_CREDENTIALS if is_unauthorized(error) else error.message
            message = f"{why}; it is tried again, for {self._find_patience(error):g} s in all"
            self.connection.warn(message, f"API server {error.reason or error.status}")
        if not isinstance(error, BusyError):
            self.connection.log_in_again(error.client)
        asked = min(error.retry_after or 0.0, MAX_PAUSE_SECONDS) if isinstance(error, BusyError) else 0.0
        seconds = max(asked, self._wait_seconds * random.uniform(0.5, 1.0))
        (stop or threading.Event()).wait(min(seconds, left))  # the last try is made when patience ends
        self._wait_seconds = min(2 * self._wait_seconds, MAX_WAIT_SECONDS)

    def _find_patience(self, error: ApiError) -> float:
        """Return for how many seconds the request is repeated after this error; 0 if it is a refusal."""
        if isinstance(error, BusyError):
            is_first = error.reason == UNREACHABLE and not self.connection.is_known
            return min(FIRST_PATIENCE_SECONDS, self.patience_seconds) if is_first else self.patience_seconds
        lost_right = error.was_allowed and NO_RIGHT.search(error.message) is not None
        is_forbidden = error.status == HTTPStatus.FORBIDDEN and (ANONYMOUS in error.message or lost_right)
        is_unknown = error.status == HTTPStatus.UNAUTHORIZED or is_forbidden
        return min(LOGIN_PATIENCE_SECONDS, self.patience_seconds) if is_unknown and self.connection.is_known else 0.0
