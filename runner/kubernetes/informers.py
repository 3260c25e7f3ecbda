"""Informers: one LIST and one WATCH that report every object of a kind, and every change to it.

https://kubernetes.io/docs/reference/using-api/api-concepts/#efficient-detection-of-changes
"""

import json
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from http import HTTPStatus
from typing import Generic, TypeVar

from runner.kubernetes.connection import (
    UNREACHABLE,
    ApiError,
    BusyError,
    Connection,
    JsonObject,
    Retries,
    name_kind,
    read_watch_error,
)
from runner.kubernetes.tracked_jobs import raise_error

WATCH_SECONDS = 240
"""After so long the server is asked to end a watch; the next goes on where it ended."""
IDLE_SECONDS = 150.0
"""A watch that has neither event nor bookmark for so long is opened again: bookmarks come every minute."""
LASTING_SECONDS = 5.0
"""A watch that stood for so long was one, even if nothing happened meanwhile."""

T = TypeVar("T")


def _make_busy(reason: str, message: str) -> BusyError:
    return BusyError(HTTPStatus.SERVICE_UNAVAILABLE, reason, message)


@dataclass(kw_only=True)
class Informer(Generic[T]):
    """Follows the objects of one kind that selectors name. `read` takes what matters from an object's JSON."""

    connection: Connection
    path: str
    labels: str
    read: Callable[[JsonObject], T]
    post: Callable[[Callable[[], None]], None]
    """Queues a call of those that follow, or of what raises why the informer has ended."""
    on_list: Callable[[list[T]], None]
    """Called with all objects that exist; what was reported before and is not among them was deleted in between."""
    on_change: Callable[..., None]
    """Called with an object that was added, has changed, or was deleted, and `is_deleted`."""
    fields: str = ""
    _version: str = ""
    """Up to which all was reported; empty: a list is to come."""
    _stop: threading.Event = field(default_factory=threading.Event)

    def run(self) -> None:
        """Post every list and change of the objects until `stop` is called. It blocks, so call it in a thread.

        If the server refuses, or is away for longer than the connection's patience, it posts what raises ApiError.
        """
        try:
            retries = Retries(self.connection, self.connection.patience_seconds)
            while not self._stop.is_set():
                if not self._version:
                    found = self.connection.read_list(self.path, self.read, self._select(), stop=self._stop)
                    self._version, items = found
                    self.post(partial(self.on_list, items))
                begun, first = time.monotonic(), self._version
                problem = self._watch()
                # Patience is renewed by a watch that brought a newer version, or stood for some seconds.
                if self._version != first or time.monotonic() - begun >= LASTING_SECONDS:
                    retries.reset()
                elif problem is None:
                    problem = _make_busy("Ended", "the API server ended a watch at once")
                if problem is not None and problem.status == HTTPStatus.GONE:
                    self._version = ""
                    problem = _make_busy("Expired", "the API server knows no list long enough to watch from it")
                if problem is not None and not self._stop.is_set():
                    retries.wait(problem, self._stop)
        except Exception as error:  # noqa: BLE001  (raised where it is handled; nobody would notice a silent end)
            if not self._stop.is_set():  # else it is how the end of its last request looks
                self.post(partial(raise_error, error))

    def stop(self) -> None:
        """End the waits between requests; a watch ends at its next event or bookmark, and nothing more is reported."""
        self._stop.set()

    def _select(self) -> dict[str, str]:
        return {"labelSelector": self.labels} | ({"fieldSelector": self.fields} if self.fields else {})

    def _watch(self) -> ApiError | None:
        """Report changes until the watch ends; return why, if not because its time is over."""
        query = self._select() | {
            "watch": "1",
            "resourceVersion": self._version,
            "allowWatchBookmarks": "true",
            "timeoutSeconds": str(WATCH_SECONDS),
        }
        try:
            with self.connection.stream(self.path, query, idle_seconds=IDLE_SECONDS) as response:
                for line in response:
                    if self._stop.is_set():
                        break
                    self._report(line)
        except ApiError as error:
            return error
        return None

    def _report(self, line: bytes) -> None:
        try:
            event = json.loads(line)
            kind, found = event["type"], event["object"]
        except (ValueError, KeyError, TypeError):  # cut off in a line: the next watch begins with this event
            raise _make_busy(UNREACHABLE, f"a watch of {name_kind(self.path)} was cut off") from None
        if kind == "ERROR":
            raise read_watch_error(found)
        if kind != "BOOKMARK":
            self.post(partial(self.on_change, self.read(found), is_deleted=kind == "DELETED"))
        self._version = found["metadata"]["resourceVersion"]
