"""A path and a selector in, what is there and every change to it out, for as long as it takes: one LIST, one WATCH.

https://kubernetes.io/docs/reference/using-api/api-concepts/#efficient-detection-of-changes
"""

import json
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any, Generic, TypeVar

from runner.cluster.connection import MAX_WAIT_SECONDS, MIN_WAIT_SECONDS, UNAUTHORIZED, ApiError, BusyError, Connection

PAGE_SIZE = 500
WATCH_SECONDS = 240
"""After so long the server is asked to end a watch; the next goes on where it ended."""
IDLE_SECONDS = 330.0
"""A watch that has neither event nor bookmark nor end for so long is cut: bookmarks come every minute."""
GONE = 410

T = TypeVar("T")


@dataclass(frozen=True)
class Listed(Generic[T]):
    """Everything that is there; what was there before and is not in `items` has gone meanwhile."""

    items: tuple[T, ...]


@dataclass(frozen=True)
class Changed(Generic[T]):
    """One object was added, has changed, or was deleted (`is_gone`)."""

    item: T
    is_gone: bool


@dataclass(frozen=True)
class Lost:
    """The feed has ended: the server refuses, or was away for longer than the connection's patience."""

    error: ApiError


@dataclass(kw_only=True)
class Feed(Generic[T]):
    """Follows the objects of one kind that a selector names. `read` takes what matters from an object's JSON."""

    connection: Connection
    path: str
    labels: str
    read: Callable[[dict[str, Any]], T]
    fields: str = ""
    num_lists: int = 0
    """Lists so far: one, and one for each time that the server had forgotten where the watch was."""
    _stop: threading.Event = field(default_factory=threading.Event)

    def follow(self, tell: Callable[[Listed[T] | Changed[T] | Lost], None]) -> None:
        """Tell all that happens until `stop` is called, or the feed is lost; blocks, so call it in a thread."""
        try:
            while not self._stop.is_set():
                version, items = self._list()
                tell(Listed(items))
                self._watch(version, tell)
        except ApiError as error:
            tell(Lost(error))

    def stop(self) -> None:
        """End the feed after the next line that comes; its thread is not waited for."""
        self._stop.set()

    def _list(self) -> tuple[str, tuple[T, ...]]:
        while True:
            try:
                items: list[T] = []
                token = ""
                while True:
                    page = self._list_page(token)
                    items += [self.read(item) for item in page["items"]]
                    token = page["metadata"].get("continue", "")
                    if not token:
                        self.num_lists += 1
                        return page["metadata"]["resourceVersion"], tuple(items)
            except ApiError as error:
                if error.status != GONE:  # the first pages are too old for the rest: from the start
                    raise

    def _list_page(self, token: str) -> Any:
        query = self._select() | {"limit": str(PAGE_SIZE)} | ({"continue": token} if token else {})
        return json.loads(self.connection.request("list", self.path, query=query))

    def _select(self) -> dict[str, str]:
        return {"labelSelector": self.labels} | ({"fieldSelector": self.fields} if self.fields else {})

    def _watch(self, version: str, tell: Callable[[Changed[T]], None]) -> None:
        """Tell changes since `version`; returns when the server no longer knows it."""
        wait, deadline = MIN_WAIT_SECONDS, self._extend()
        while not self._stop.is_set():
            try:
                for kind, found in self._read_events(version):
                    wait, deadline = MIN_WAIT_SECONDS, self._extend()
                    version = found["metadata"]["resourceVersion"]
                    if kind != "BOOKMARK":
                        tell(Changed(self.read(found), is_gone=kind == "DELETED"))
                    if self._stop.is_set():
                        return
                deadline = self._extend()
            except ApiError as error:
                if error.status == GONE:
                    return
                if error.status == UNAUTHORIZED:
                    self.connection.log_in_anew()
                elif not isinstance(error, BusyError):
                    raise
                if time.monotonic() > deadline:
                    raise
                self._stop.wait(wait)
                wait = min(2 * wait, MAX_WAIT_SECONDS)

    def _extend(self) -> float:
        return time.monotonic() + self.connection.patience_seconds

    def _read_events(self, version: str) -> Iterator[tuple[str, dict[str, Any]]]:
        query = self._select() | {
            "watch": "1",
            "resourceVersion": version,
            "allowWatchBookmarks": "true",
            "timeoutSeconds": str(WATCH_SECONDS),
        }
        with self.connection.stream(self.path, query, idle_seconds=IDLE_SECONDS) as lines:
            for line in filter(None, lines):
                try:
                    event = json.loads(line)
                except ValueError:  # cut off in the middle of a line: the next watch begins with this event
                    return
                if event["type"] == "ERROR":
                    status = event["object"]
                    raise _read_status(status)
                yield event["type"], event["object"]


def _read_status(status: dict[str, Any]) -> ApiError:
    code, reason, message = status.get("code", 500), status.get("reason", ""), status.get("message", "")
    return BusyError(code, reason, message, None) if code >= 500 else ApiError(code, reason, message)
