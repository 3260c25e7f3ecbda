"""Informers: one LIST and one WATCH that report every object of a kind, and every change to it.

https://kubernetes.io/docs/reference/using-api/api-concepts/#efficient-detection-of-changes
"""

import re
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import Future
from dataclasses import dataclass, field
from http import HTTPStatus
from typing import Generic, TypeAlias, TypeVar

from runner.kubernetes.answer_bodies import AnswerLines
from runner.kubernetes.answers import (
    ApiObject,
    GarbledWatchError,
    decode_answer,
    read_item,
    read_items,
    read_watch_event,
)
from runner.kubernetes.api_errors import ApiError, BusyError, read_watch_error
from runner.kubernetes.connection import MAX_PAGES, PAGE_SIZE, Connection, make_endless, name_kind
from runner.kubernetes.request_retries import Retries

WATCH_SECONDS = 240
"""After so long the server is asked to end a watch; the next goes on where it ended."""
IDLE_SECONDS = 150.0
"""A watch that has neither event nor bookmark for so long is opened again: bookmarks come every minute."""

LASTING_SECONDS = 5.0
"""A watch that stood for so long was one, even if nothing happened meanwhile."""
MAX_GARBLED = 5
"""Watches in a row that bring nothing but a line that is no event. One is cut off now and then, in the middle of a
line; a server, or what stands before it, that does it each time will not stop."""
MAX_LISTS = 10
"""How often a list is begun again whose first pages became too old while the rest was read."""

_WATCH_ENDED = BusyError(HTTPStatus.SERVICE_UNAVAILABLE, "Ended", "the API server ended a watch at once", None)
_LIST_TOO_OLD = BusyError(
    HTTPStatus.SERVICE_UNAVAILABLE, "Expired", "the API server knows no list long enough to watch from it", None
)

T = TypeVar("T")


@dataclass(frozen=True)
class Listed(Generic[T]):
    """All objects that exist; what was reported before and is not in `items` was deleted in between."""

    items: tuple[T, ...]


@dataclass(frozen=True)
class Changed(Generic[T]):
    """One object was added, has changed, or was deleted."""

    item: T
    is_deleted: bool


@dataclass(frozen=True)
class InformerFailed:
    """The informer has ended: the server refuses, or was away for longer than the connection's patience (ApiError)."""

    error: Exception


Notification: TypeAlias = Listed[T] | Changed[T] | InformerFailed


@dataclass
class WatchAttempts:
    """Watches of one list, one after the other: how long to wait before the next, and when to give up.

    Patience is renewed by a watch that was of use: one that brought a newer version, or stood for LASTING_SECONDS.
    """

    retries: Retries
    was_useful: bool = False
    """Whether any was."""
    _num_garbled: int = 0
    _reason: ApiError | None = None
    """Why to wait before the next."""

    def note(self, problem: ApiError | None, *, is_useful: bool) -> int | None:
        """Note how a watch ended, and return the status of what ended it; GarbledWatchError after too many of these."""
        if is_useful:
            self.was_useful, self._num_garbled = True, 0
            self.retries.reset()
        if isinstance(problem, GarbledWatchError):  # cut off in a line: the next watch begins with this event
            self._num_garbled += 1
            if self._num_garbled > MAX_GARBLED:
                raise problem
            problem = _WATCH_ENDED
        self._reason = problem if problem is not None or is_useful else _WATCH_ENDED
        return None if problem is None else problem.status

    def wait(self, stop: threading.Event) -> None:
        """Wait before the next watch; raise the error that ended the last where there is to be none."""
        if self._reason is not None:
            self.retries.wait(self._reason, stop)


@dataclass(kw_only=True)
class Informer(Generic[T]):
    """Follows the objects of one kind that selectors name. `read` takes what matters from an object's JSON."""

    connection: Connection
    path: str
    labels: str
    read: Callable[[ApiObject], T]
    fields: str = ""
    num_lists: int = 0
    """Lists so far: the first, and one for each time that the server no longer knew the watch's version."""
    _stop: threading.Event = field(default_factory=threading.Event)
    _lines: AnswerLines | None = field(default=None, repr=False)
    """Of the watch that is open."""
    _lock: threading.Lock = field(default_factory=threading.Lock, repr=False)
    """Held while `_lines` is set or ended, so that no watch is opened that `stop` does not see."""

    def run(self, notify: Callable[[Notification[T]], None]) -> None:
        """Notify of everything until `stop` is called or the informer fails; blocks, so call it in a thread."""
        try:
            lists = self._make_retries()
            while not self._stop.is_set():
                version, items = self._list()
                notify(Listed(items))
                if self._watch(version, notify):
                    lists.reset()
                else:
                    lists.wait(_LIST_TOO_OLD, self._stop)
        except Exception as error:  # noqa: BLE001  (raised where it is handled; nobody would notice a silent end)
            if not self._stop.is_set():  # else it is how the end of its last request looks
                notify(InformerFailed(error))

    @property
    def _kind(self) -> str:
        return name_kind(self.path)

    def stop(self) -> None:
        """End the watch, and the waits between requests; the thread is not waited for."""
        self._stop.set()
        with self._lock:
            if self._lines is not None:
                self._lines.end()

    def _make_retries(self) -> Retries:
        return Retries(connection=self.connection, patience_seconds=self.connection.patience_seconds)

    def _list(self) -> tuple[str, tuple[T, ...]]:
        expired: ApiError = _LIST_TOO_OLD
        for _ in range(MAX_LISTS):
            try:
                version, items = self._list_pages()
                self.num_lists += 1
                return version, items
            except ApiError as error:
                if error.status != HTTPStatus.GONE:  # the first pages are too old for the rest: from the start
                    raise
                expired = error
        raise expired

    def _list_pages(self) -> tuple[str, tuple[T, ...]]:
        """Return version and items of all pages; while one is read, the server is at work on the next."""
        items: list[T] = []
        body = self._fetch_page("")
        for _ in range(MAX_PAGES):
            token = _find_continue(body)
            following = self._fetch_page_in_background(token) if token else None
            page = decode_answer(body)
            items += read_items(page, self.read, self._kind)
            if following is None and (late := str(page["metadata"].get("continue", ""))):  # it stood behind the items
                following = self._fetch_page_in_background(late)
            if following is None:
                return str(page["metadata"]["resourceVersion"]), tuple(items)
            body = following.result()
        raise make_endless(self.path)

    def _fetch_page_in_background(self, token: str) -> "Future[bytes]":
        """Fetch a page in a thread of its own, which does not keep the process alive."""
        future: Future[bytes] = Future()

        def fetch() -> None:
            try:
                future.set_result(self._fetch_page(token))
            except BaseException as error:  # raised where the result is read
                future.set_exception(error)

        threading.Thread(target=fetch, name="page", daemon=True).start()
        return future

    def _fetch_page(self, token: str) -> bytes:
        query = self._select() | {"limit": str(PAGE_SIZE)} | ({"continue": token} if token else {})
        return self.connection.request("list", self.path, query=query, stop=self._stop)

    def _select(self) -> dict[str, str]:
        return {"labelSelector": self.labels} | ({"fieldSelector": self.fields} if self.fields else {})

    def _watch(self, version: str, notify: Callable[[Changed[T]], None]) -> bool:
        """Notify of changes since `version`; return when the server no longer knows it, or after `stop`.

        Returns whether a watch was of any use.
        """
        attempts = WatchAttempts(self._make_retries())
        while not self._stop.is_set():
            begun, first = time.monotonic(), version
            problem: ApiError | None = None
            try:
                for kind, found in self._read_events(version):
                    if kind != "BOOKMARK":
                        notify(Changed(read_item(found, self.read, self._kind), is_deleted=kind == "DELETED"))
                    version = str(found["metadata"]["resourceVersion"])
                    if self._stop.is_set():
                        return True
            except ApiError as error:
                problem = error
            if self._stop.is_set():
                return True
            is_useful = version != first or time.monotonic() - begun >= LASTING_SECONDS
            if attempts.note(problem, is_useful=is_useful) == HTTPStatus.GONE:
                break
            attempts.wait(self._stop)
        return attempts.was_useful

    def _read_events(self, version: str) -> Iterator[tuple[str, ApiObject]]:
        """Yield the type and object of each event of a watch; raise GarbledWatchError for a line that is no event."""
        query = self._select() | {
            "watch": "1",
            "resourceVersion": version,
            "allowWatchBookmarks": "true",
            "timeoutSeconds": str(WATCH_SECONDS),
        }
        with self.connection.stream(self.path, query, idle_seconds=IDLE_SECONDS) as lines:
            self._note_open(lines)
            try:
                for line in filter(None, lines):
                    event = read_watch_event(line, self._kind)
                    if event["type"] == "ERROR":
                        raise read_watch_error(event["object"])
                    yield event["type"], event["object"]
            finally:
                self._note_open(None)

    def _note_open(self, lines: AnswerLines | None) -> None:
        """Note the watch that is open, and end it where `stop` was called before."""
        with self._lock:
            self._lines = lines
            if lines is not None and self._stop.is_set():
                lines.end()


def _find_continue(body: bytes) -> str:
    """Return the token of the next page, which stands before the items; empty where this is the last."""
    head = body.partition(b'"items"')[0]
    match = re.search(rb'"continue":"([^"]*)"', head)
    return match[1].decode() if match else ""
