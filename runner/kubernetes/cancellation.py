"""A run and its store in; a mark of its cancellation left there, or found by the runner that it is meant for, out.

A runner that sees a Job go learns from the Job's annotation that the run was cancelled. One whose watch is down just
then finds the Jobs gone, as it would if somebody had deleted them; the mark tells it. Clocks are not compared: the
marks that are there when a runner starts are of earlier cancellations, any other one is meant for it.
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
    """Somebody cancelled the run with `benchmatrix cancel`."""


class Cancellation(Document):
    """What a mark says, for people: that it is there is all that a runner looks at."""

    run_id: str
    cancelled_at: AwareDatetime
    hostname: str
    user: str


def leave_mark(store: Store, run_id: str) -> None:
    """Leave a mark of its own for this cancellation. StoreError where the store cannot be used."""
    document = Cancellation(
        run_id=run_id, cancelled_at=datetime.now(UTC), hostname=socket.gethostname(), user=read_user_name()
    )
    store.put(cancelled_key(run_id, uuid4().hex), document.to_json())


def list_marks(store: Store, run_id: str) -> frozenset[str]:
    """Return the keys of the run's marks. StoreError where the store cannot be used."""
    return frozenset(store.list_keys(cancelled_prefix(run_id)))


@dataclass(kw_only=True)
class CancellationWatcher:
    """Looks for a mark that was not there when the runner started, in one request for all who ask meanwhile."""

    dispatcher: Dispatcher
    store: Store
    run_id: str
    known: frozenset[str]
    """The marks that were there."""
    is_looking: bool = False
    """No Job is to be made until the answer is there."""
    _asked: list[Callable[[], None]] = field(default_factory=list)

    def look(self, then: Callable[[], None] = lambda: None) -> None:
        """Have `then` called once it is clear that the run is not cancelled; RunCancelled is what is met else."""
        self._asked.append(then)
        if not self.is_looking:
            self._start()

    def _start(self) -> None:
        """Begin a look for those who have asked; who asks later needs another: this one may miss what comes now."""
        asked, self._asked, self.is_looking = self._asked, [], True
        self.dispatcher.record(lambda: list_marks(self.store, self.run_id), partial(self._hear, asked))

    def _hear(self, asked: list[Callable[[], None]], marks: frozenset[str]) -> None:
        if not marks <= self.known:
            raise RunCancelled
        self.is_looking = False
        for then in asked:
            then()
        if self._asked and not self.is_looking:
            self._start()
