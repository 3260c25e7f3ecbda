"""Leaves marks of a run's cancellation in the store, and watches for them.

A runner that sees a Job being deleted learns from the Job's annotation that the run was cancelled. One whose watch is
down just then finds the Jobs deleted, as if somebody had done it by hand; the mark shows that it was a cancellation.
Clocks are not compared: the marks that exist when a runner starts are of earlier cancellations, any other one is
meant for it. Where signatures are checked, a mark counts only if it is signed rightly: whoever may write to the store
could end a run otherwise.
"""

import socket
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import partial
from uuid import uuid4

from pydantic import AwareDatetime

from bench.schema import SignableDocument
from bench.signatures.signed_store import UnverifiedObject
from bench.store import Store, UnreadableObject, cancelled_key, cancelled_prefix
from runner.kubernetes.dispatcher import Dispatcher
from runner.matrix.plan import read_user_name
from runner.runs import read_run

UNSIGNED = "the run is signed, and its runner obeys no mark that is not"
"""Why a mark of cancellation would be of no use."""


class RunCancelled(Exception):  # noqa: N818  (an answer rather than an error)
    """Is raised in the runner after somebody cancelled its run with `benchmatrix cancel`."""


class Cancellation(SignableDocument):
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


def leave_mark_that_counts(store: Store, run_id: str) -> str:
    """Put a mark into the store if a runner of the run obeys it; return why not, empty where it does.

    StoreError if the store cannot be used.
    """
    run = read_run(store, run_id)
    if run is not None and run.signature is not None and not store.checks_signatures:
        return UNSIGNED
    leave_mark(store, run_id)
    return ""


def list_marks(store: Store, run_id: str) -> frozenset[str]:
    """Return the keys of the run's marks. StoreError if the store cannot be used."""
    return frozenset(store.list_keys(cancelled_prefix(run_id)))


@dataclass(frozen=True, kw_only=True)
class CheckedMarks:
    """Marks of which it is known whether they count."""

    counted: frozenset[str] = frozenset()
    refused: Mapping[str, str] = field(default_factory=dict)
    """Those that are not signed rightly, by key, with the reason."""

    def describe_refused(self) -> str:
        """Return in words how many do not count and why; empty where all do."""
        if not self.refused:
            return ""
        key, reason = next(iter(self.refused.items()))
        return f"marks of cancellation that do not count: {len(self.refused):,}, such as {key}: {reason}"


def check_marks(store: Store, keys: Collection[str]) -> CheckedMarks:
    """Return which of these marks count: all of them, or those that are signed rightly where that is checked."""
    if not store.checks_signatures:
        return CheckedMarks(counted=frozenset(keys))
    counted, refused = set[str](), dict[str, str]()
    for key, data in store.get_listed(sorted(keys)):
        if isinstance(data, UnreadableObject):
            refused[key] = data.reason if isinstance(data, UnverifiedObject) else str(data)
        else:
            counted.add(key)
    return CheckedMarks(counted=frozenset(counted), refused=refused)


@dataclass(kw_only=True)
class CancellationWatcher:
    """Checks for marks that did not exist when the runner started, with one look at them for all checks that wait."""

    dispatcher: Dispatcher
    store: Store
    run_ids: tuple[str, ...]
    """The run, and others whose cancellation ends it too: of a confirmation, its night."""
    known: frozenset[str]
    """The marks that existed at the start, and those that do not count."""
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

    def _list_marks(self) -> CheckedMarks:
        marks = frozenset[str]().union(*(list_marks(self.store, run_id) for run_id in self.run_ids))
        return check_marks(self.store, marks - self.known)

    def _handle_marks(self, callbacks: list[Callable[[], None]], marks: CheckedMarks) -> None:
        if marks.counted:
            raise RunCancelled
        if marks.refused:
            self.known |= marks.refused.keys()
            self.dispatcher.warn(f"{marks.describe_refused()}; the run goes on", "marks")
        self.is_checking = False
        for then in callbacks:
            then()
        if self._callbacks and not self.is_checking:
            self._start()
