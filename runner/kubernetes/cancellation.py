"""Leaves marks of a run's cancellation in the store, and watches for them.

A runner that sees a Job being deleted learns from the Job's annotation that the run was cancelled. One whose watch is
down just then finds the Jobs deleted, as if somebody had done it by hand; the mark shows that it was a cancellation.
Clocks are not compared: the marks that exist when a runner starts are of earlier cancellations, any other one is
meant for it.
"""

import socket
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import partial
from uuid import uuid4

from pydantic import AwareDatetime

from bench.schema import Document
from bench.store import Store, cancelled_key, cancelled_prefix
from runner.kubernetes.dispatcher import Dispatcher
from runner.matrix.plan import read_user_name


class RunCancelled(Exception):  # noqa: N818  (an answer rather than an error)
    """Is raised in the runner after somebody cancelled its run with `benchmatrix cancel`."""


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
        return frozenset[str]().union(*(list_marks(self.store, run_id) for run_id in self.run_ids)) - self.known

    def _handle_marks(self, callbacks: list[Callable[[], None]], marks: frozenset[str]) -> None:
        if marks:
            raise RunCancelled
        self.is_checking = False
        for then in callbacks:
            then()
        if self._callbacks and not self.is_checking:
            self._start()
