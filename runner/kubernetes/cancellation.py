"""Leaves marks of a run's cancellation in the store, and watches for them.

A runner that sees a Job being deleted learns from the Job's annotation that the run was cancelled. One whose watch is
down just then finds the Jobs deleted, as if somebody had done it by hand; the mark shows that it was a cancellation.
Clocks are not compared: the marks that exist when a runner starts are of earlier cancellations, any other one is
meant for it.
"""

import socket
from collections.abc import Callable, Collection
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import partial
from uuid import uuid4

from pydantic import AwareDatetime

from bench.errors import UserError
from bench.schema import Document
from bench.store import Store, cancelled_key, cancelled_prefix
from collector.nights.confirmation_name import name_confirmation
from runner.kubernetes.dispatcher import Dispatcher
from runner.matrix.plan import read_user_name
from runner.runs import is_stored, read_run


class RunCancelled(Exception):  # noqa: N818  (an answer rather than an error)
    """Somebody cancelled the run with `benchmatrix cancel`."""


class Cancellation(Document):
    """The content of a mark, for people: a runner only checks whether there is one."""

    run_id: str
    cancelled_at: AwareDatetime
    hostname: str
    user: str


def leave_mark(store: Store, run_id: str) -> None:
    """Put a mark for this cancellation into the store. StoreError if the store cannot be used."""
    document = Cancellation(
        run_id=run_id, cancelled_at=datetime.now(UTC), hostname=socket.gethostname(), user=read_user_name()
    )
    store.put_with_short_retries(cancelled_key(run_id, uuid4().hex), document.to_json())  # somebody is waiting


def leave_mark_where_jobs_write(urls: Collection[str], run_id: str) -> Store | str:
    """Put a mark into the store that the run's Jobs name and return this store, or why that failed.

    `urls`: the stores that its Jobs write to, one at the most.
    """
    if not urls:
        return "no Job of the run is there that would name its store"
    (url,) = urls
    try:
        store = Store.open(url)
        if read_run(store, run_id) is None:
            return f"store {url}, which its Jobs name, has no run {run_id} as it is seen from here"
        leave_mark(store, run_id)
    except UserError as error:
        return f"its Jobs name the store {url}, which cannot be used from here ({error})"
    return store


def find_confirmation(store: Store, run_id: str) -> str | None:
    """Return the id of the run that measures again what was suspected in the run `run_id`; None if there is none.

    StoreError if the store cannot be used.
    """
    run = read_run(store, run_id)
    confirmation = None if run is None else name_confirmation(run.matrix, run_id)
    return confirmation if confirmation is not None and is_stored(store, confirmation) else None


def list_marks(store: Store, run_id: str) -> frozenset[str]:
    """Return the keys of the run's marks. StoreError if the store cannot be used."""
    return frozenset(store.list_keys(cancelled_prefix(run_id)))


@dataclass(kw_only=True)
class CancellationWatcher:
    """Checks for marks that did not exist when the runner started, with one look at them for all checks that wait."""

    dispatcher: Dispatcher
    store: Store
    run_ids: tuple[str, ...]
    """The run, and others whose cancellation ends it too: of a confirmation, its night."""
    known: frozenset[str]
    """The marks that existed at the start."""
    is_checking: bool = False
    """Whether a request is under way; no Job is to be created until it is answered."""
    _callbacks: list[Callable[[], None]] = field(default_factory=list)

    def check(self, then: Callable[[], None] = lambda: None) -> None:
        """Call `then` on the main thread if the run is not cancelled; raise RunCancelled there if it is."""
        self._callbacks.append(then)
        if not self.is_checking:
            self._start()

    def _start(self) -> None:
        """Look once for the callbacks that wait. Checks that come later need another look: this one may miss a mark."""
        callbacks, self._callbacks, self.is_checking = self._callbacks, [], True
        self.dispatcher.record(self._list_marks, partial(self._handle_marks, callbacks))

    def _list_marks(self) -> frozenset[str]:
        return frozenset().union(*(list_marks(self.store, run_id) for run_id in self.run_ids))

    def _handle_marks(self, callbacks: list[Callable[[], None]], marks: frozenset[str]) -> None:
        if not marks <= self.known:
            raise RunCancelled
        self.is_checking = False
        for then in callbacks:
            then()
        if self._callbacks and not self.is_checking:
            self._start()
