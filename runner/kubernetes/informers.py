"""Informers: one LIST and one WATCH that report every object of a kind, and every change to it.

https://kubernetes.io/docs/reference/using-api/api-concepts/#efficient-detection-of-changes
"""

import json
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import partial
from http import HTTPStatus
from typing import Generic, TypeVar

import urllib3

from runner.kubernetes.connection import (
    UNREACHABLE,
    ApiError,
    BusyError,
    Connection,
    JsonObject,
    Retries,
    name_kind,
    read_item,
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
    _stop: threading.Event = field(default_factory=threading.Event)

    def run(self) -> None:
        """Report everything until `stop` is called or the informer fails; blocks, so call it in a thread.

        It fails where the server refuses, or was away for longer than the connection's patience: ApiError.
        """
        try:
            lists = self._make_retries()
            while not self._stop.is_set():
                version, items = self.connection.read_list(self.path, self.read, self._select(), stop=self._stop)
                self.post(partial(self.on_list, items))
                if self._watch(version):
                    lists.reset()
                else:
                    words = "the API server knows no list long enough to watch from it"
                    lists.wait(_make_busy("Expired", words), self._stop)
        except Exception as error:  # noqa: BLE001  (raised where it is handled; nobody would notice a silent end)
            if not self._stop.is_set():  # else it is how the end of its last request looks
                self.post(partial(raise_error, error))

    def stop(self) -> None:
        """End the waits between requests; a watch ends at its next event or bookmark, and nothing more is reported."""
        self._stop.set()

    def _make_retries(self) -> Retries:
        return Retries(self.connection, self.connection.patience_seconds)

    def _select(self) -> dict[str, str]:
        return {"labelSelector": self.labels} | ({"fieldSelector": self.fields} if self.fields else {})

    def _watch(self, version: str) -> bool:
        """Report changes since `version`; return when the server no longer knows it, or after `stop`.

        Returns whether a watch was of any use: patience is renewed by one that brought a newer version, or stood for
        LASTING_SECONDS.
        """
        retries, was_useful = self._make_retries(), False
        while not self._stop.is_set():
            begun, first = time.monotonic(), version
            problem: ApiError | None = None
            try:
                for kind, found in self._read_events(version):
                    if self._stop.is_set():
                        return True
                    if kind != "BOOKMARK":
                        item = read_item(found, self.read, name_kind(self.path))
                        self.post(partial(self.on_change, item, is_deleted=kind == "DELETED"))
                    version = found["metadata"]["resourceVersion"]
            except ApiError as error:
                problem = error
            if version != first or time.monotonic() - begun >= LASTING_SECONDS:
                was_useful = True
                retries.reset()
            elif problem is None:
                problem = _make_busy("Ended", "the API server ended a watch at once")
            if problem is not None and problem.status == HTTPStatus.GONE:
                break
            if problem is not None and not self._stop.is_set():
                retries.wait(problem, self._stop)
        return was_useful or self._stop.is_set()

    def _read_events(self, version: str) -> Iterator[tuple[str, JsonObject]]:
        query = self._select() | {
            "watch": "1",
            "resourceVersion": version,
            "allowWatchBookmarks": "true",
            "timeoutSeconds": str(WATCH_SECONDS),
        }
        with self.connection.stream(self.path, query, idle_seconds=IDLE_SECONDS) as response:
            for line in filter(None, _iterate_lines(response)):
                try:
                    event = json.loads(line)
                    kind, found = event["type"], event["object"]
                except (ValueError, KeyError, TypeError):  # cut off in a line: the next begins with this event
                    raise _make_busy(UNREACHABLE, f"a watch of {name_kind(self.path)} was cut off") from None
                if kind == "ERROR":
                    raise read_watch_error(found)
                yield kind, found


def _iterate_lines(response: urllib3.BaseHTTPResponse) -> Iterator[bytes]:
    parts: list[bytes] = []  # of a line whose end has not come: joined once, however many chunks it is long
    for chunk in response.stream(65_536):
        *ended, rest = chunk.split(b"\n")
        if ended:
            yield b"".join([*parts, ended[0]])
            yield from ended[1:]
            parts = []
        parts.append(rest)
    if any(parts):
        yield b"".join(parts)
