"""Define how a session measures its run, and what follows directly from that."""

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, TypeVar

from runner.kubernetes.connection import Connection
from runner.kubernetes.dispatcher import Dispatcher
from runner.kubernetes.informers import Informer
from runner.kubernetes.observer import ClusterObserver
from runner.kubernetes.placements import PlacementRecorder
from runner.kubernetes.recording import ResultRecorder
from runner.kubernetes.rendering.job_name import select_run
from runner.kubernetes.rendering.job_template import JobRenderer
from runner.kubernetes.shared_nodes import BlockKey, FormerNode
from runner.kubernetes.spending import Spending

T = TypeVar("T")


@dataclass(frozen=True, kw_only=True)
class SessionOptions:
    """One run on one cluster, and how to measure it."""

    connection: Connection
    namespace: str
    run_id: str
    fingerprint: str
    """Of the run: only Jobs and pods that carry it are followed."""
    renderer: JobRenderer
    recorder: ResultRecorder
    placement_recorder: PlacementRecorder
    observer: ClusterObserver
    max_in_flight: int
    unschedulable_seconds: float
    is_requeued: bool = False
    """A Job that no node takes for so long is deleted and created again later, rather than given up."""
    deadline: datetime | None = None
    """When to stop, whatever is missing then."""
    cancelled_with: Mapping[str, frozenset[str]] = field(default_factory=dict)
    """By the ids of other runs whose cancellation ends this one too: the marks of earlier cancellations of theirs."""
    spending: Spending
    find_former_nodes: Callable[[Collection[BlockKey]], Mapping[BlockKey, FormerNode]]
    """Returns where cells of these blocks ran under an earlier runner, of those for which that is known; blocks."""

    def make_dispatcher(self) -> Dispatcher:
        """Return what runs the session's requests in threads, and its callbacks on the main thread."""
        return Dispatcher(warn_user=self.observer.warn, patience_seconds=self.connection.patience_seconds)

    def make_informer(
        self, group: str, kind: str, read: Callable[[dict[str, Any]], T], fields: str = ""
    ) -> Informer[T]:
        """Return an informer of the run's objects of a kind, of which it keeps what `read` returns."""
        path = f"{group}/namespaces/{self.namespace}/{kind}"
        labels = select_run(self.run_id, fingerprint=self.fingerprint)
        return Informer(connection=self.connection, path=path, labels=labels, read=read, fields=fields)
