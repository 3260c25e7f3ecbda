"""A path and a selector in, what is there and every change to it out, for as long as it takes: one LIST, one WATCH.

https://kubernetes.io/docs/reference/using-api/api-concepts/#efficient-detection-of-changes
"""

import json
import re
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import Future
from dataclasses import dataclass, field
from typing import Any, Generic, TypeVar

from runner.kubernetes.connection import ApiError, BusyError, Connection, Retries

PAGE_SIZE = 500
WATCH_SECONDS = 240
"""After so long the server is asked to end a watch; the next goes on where it ended."""
IDLE_SECONDS = 150.0
"""A watch that has neither event nor bookmark for so long is opened anew: bookmarks come every minute."""
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
class InformerFailed:
    """The feed has ended: the server refuses, or was away for longer than the connection's patience (ApiError)."""

    error: Exception


@dataclass(kw_only=True)
class Informer(Generic[T]):
    """Follows the objects of one kind that a selector names. `read` takes what matters from an object's JSON."""

    connection: Connection
    path: str
    labels: str
    read: Callable[[dict[str, Any]], T]
    fields: str = ""
    num_lists: int = 0
    """Lists so far: one, and one for each time that the server had forgotten where the watch was."""
    _stop: threading.Event = field(default_factory=threading.Event)

    def follow(self, tell: Callable[[Listed[T] | Changed[T] | InformerFailed], None]) -> None:
        """Tell all that happens until `stop` is called, or the feed is lost; blocks, so call it in a thread."""
        try:
            while not self._stop.is_set():
                version, items = self._list()
                tell(Listed(items))
                self._watch(version, tell)
        except Exception as error:  # noqa: BLE001  (whoever is told raises it; a silent end would be waited for)
            tell(InformerFailed(error))

    def stop(self) -> None:
        """End the feed after the next line that comes; its thread is not waited for."""
        self._stop.set()

    def _list(self) -> tuple[str, tuple[T, ...]]:
        while True:
            try:
                version, items = self._list_pages()
                self.num_lists += 1
                return version, items
            except ApiError as error:
                if error.status != GONE:  # the first pages are too old for the rest: from the start
                    raise

    def _list_pages(self) -> tuple[str, tuple[T, ...]]:
        """Return version and items of all pages; while one is read, the server is at work on the next."""
        items: list[T] = []
        body = self._fetch_page("")
        while True:
            token = _find_continue(body)
            following = self._fetch_page_meanwhile(token) if token else None
            page = json.loads(body)
            items += [self.read(item) for item in page["items"]]
            if following is None:
                return page["metadata"]["resourceVersion"], tuple(items)
            body = following.result()

    def _fetch_page_meanwhile(self, token: str) -> "Future[bytes]":
        """Fetch a page in a thread of its own, which does not keep the process alive."""
        future: Future[bytes] = Future()

        def fetch() -> None:
            try:
                future.set_result(self._fetch_page(token))
            except BaseException as error:  # handed over to whoever waits
                future.set_exception(error)

        threading.Thread(target=fetch, name="page", daemon=True).start()
        return future

    def _fetch_page(self, token: str) -> bytes:
        query = self._select() | {"limit": str(PAGE_SIZE)} | ({"continue": token} if token else {})
        return self.connection.request("list", self.path, query=query)

    def _select(self) -> dict[str, str]:
        return {"labelSelector": self.labels} | ({"fieldSelector": self.fields} if self.fields else {})

    def _watch(self, version: str, tell: Callable[[Changed[T]], None]) -> None:
        """Tell changes since `version`; returns when the server no longer knows it."""
        retries = Retries(connection=self.connection, patience_seconds=self.connection.patience_seconds)
        while not self._stop.is_set():
            try:
                has_told = False
                for kind, found in self._read_events(version, retries):
                    has_told = True
                    version = found["metadata"]["resourceVersion"]
                    if kind != "BOOKMARK":
                        tell(Changed(self.read(found), is_gone=kind == "DELETED"))
                    if self._stop.is_set():
                        return
                if not has_told:
                    retries.wait(BusyError(503, "Ended", "the API server ended a watch at once", None), self._stop)
            except ApiError as error:
                if error.status == GONE:
                    return
                retries.wait(error, self._stop)

    def _read_events(self, version: str, retries: Retries) -> Iterator[tuple[str, dict[str, Any]]]:
        query = self._select() | {
            "watch": "1",
            "resourceVersion": version,
            "allowWatchBookmarks": "true",
            "timeoutSeconds": str(WATCH_SECONDS),
        }
        with self.connection.stream(self.path, query, idle_seconds=IDLE_SECONDS) as lines:
            retries.reset()
            for line in filter(None, lines):
                try:
                    event = json.loads(line)
                except ValueError:  # cut off in the middle of a line: the next watch begins with this event
                    return
                if event["type"] == "ERROR":
                    status = event["object"]
                    raise _read_status(status)
                yield event["type"], event["object"]


def _find_continue(body: bytes) -> str:
    """Return the token of the next page, which stands before the items; empty where this is the last."""
    head = body.partition(b'"items"')[0]
    match = re.search(rb'"continue":"([^"]*)"', head)
    return match[1].decode() if match else ""


def _read_status(status: dict[str, Any]) -> ApiError:
    code, reason, message = status.get("code", 500), status.get("reason", ""), status.get("message", "")
    return BusyError(code, reason, message, None) if code >= 500 else ApiError(code, reason, message)
