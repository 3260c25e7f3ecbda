"""The session of one runner with one cluster: it measures what a run lacks, one Job per repeat.

All state is in the cluster and the store; what a session keeps can be rebuilt from them, so it may be killed at any
time. The states of a repeat are in job_states.py.
"""

import threading
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import partial
from typing import Any, TypeVar

from bench.schema import Result
from runner.kubernetes.api_errors import ApiError, to_user_error
from runner.kubernetes.cancellation import CancellationWatcher, list_marks
from runner.kubernetes.connection import Connection
from runner.kubernetes.dispatcher import TICK_SECONDS, Dispatcher
from runner.kubernetes.informers import Informer, Notification
from runner.kubernetes.job_completion import JobCompletion
from runner.kubernetes.job_retries import JobRetries
from runner.kubernetes.job_tracker import JobTracker
from runner.kubernetes.node_fault_tracker import NodeFaultRecorder, NodeFaultTracker, read_node_faults
from runner.kubernetes.object_status import read_job_status, read_pod_status
from runner.kubernetes.observer import ClusterObserver
from runner.kubernetes.pending_pods import PendingPods
from runner.kubernetes.placements import PlacementRecorder, PlacementTracker
from runner.kubernetes.queued_jobs import QueuedJobs
from runner.kubernetes.recording import ResultRecorder
from runner.kubernetes.rendering.job_name import select_run
from runner.kubernetes.rendering.job_template import JobRenderer
from runner.kubernetes.start_problems import StartProblems
from runner.kubernetes.submission import Submission
from runner.kubernetes.tracked_jobs import TrackedJob, TrackedJobs

LAST_EVENTS_SECONDS = 3.0
"""How long, at the deadline, ends are waited for that the informers have not reported yet."""
RECORDING_SECONDS = 120.0
"""How long, at the deadline, requests under way and the records of what has ended are waited for."""
# How well a pod ended is known from its Job and its record.
POD_FIELDS = "status.phase!=Succeeded"

T = TypeVar("T")


class DeadlinePassed(Exception):  # noqa: N818  (an answer rather than an error)
    """The run has taken as long as it may."""


@dataclass(frozen=True, kw_only=True)
class SessionOptions:
    """One run on one cluster, and how to measure it."""

    connection: Connection
    namespace: str
    run_id: str
    renderer: JobRenderer
    recorder: ResultRecorder
    placement_recorder: PlacementRecorder
    observer: ClusterObserver
    max_in_flight: int
    unschedulable_seconds: float
    deadline: datetime | None = None
    """When to stop, whatever is missing then."""


class ClusterSession:
    """Measures the repeats that `list_missing` returns. Used once."""

    def __init__(self, options: SessionOptions, list_missing: Callable[[], Iterable[TrackedJob]]) -> None:
        """Read the marks of earlier cancellations, and what is placed; nothing is sent to the cluster before `run`.

        `list_missing` is called when the Jobs that exist are known. In this order nothing is measured twice: a Job that
        was deleted before the list has its record in the store. StoreError if the store cannot be used.
        """
        known_marks = list_marks(options.recorder.store, options.run_id)
        self.jobs = TrackedJobs()
        self._deadline, self._observer = options.deadline, options.observer
        self._next_tick = 0.0
        self._dispatcher = Dispatcher(
            warn_user=options.observer.warn, patience_seconds=options.connection.patience_seconds
        )
        self._connection = options.connection
        self._connection.warn = self._dispatcher.warn_later
        self._job_informer = _make_informer(options, "/apis/batch/v1", "jobs", read_job_status)
        self._pod_informer = _make_informer(options, "/api/v1", "pods", read_pod_status, POD_FIELDS)
        watcher = CancellationWatcher(
            dispatcher=self._dispatcher, store=options.recorder.store, run_id=options.run_id, known=known_marks
        )
        self._node_faults = self._make_node_faults(options)
        self._submission = self._make_submission(options, watcher)
        completion = self._make_completion(options)
        self._retries = self._make_retries(options, watcher, completion)
        self._pending_pods = self._make_pending_pods(options, completion, self._retries)
        self._queued_jobs = self._make_queued_jobs(options)
        self._placements = self._make_placements(options.placement_recorder)
        self._tracker = JobTracker(
            list_missing=list_missing,
            jobs=self.jobs,
            cancellation_watcher=watcher,
            submission=self._submission,
            completion=completion,
            retries=self._retries,
            pending_pods=self._pending_pods,
            placements=self._placements,
            node_faults=self._node_faults,
        )

    def _make_completion(self, options: SessionOptions) -> JobCompletion:
        return JobCompletion(
            dispatcher=self._dispatcher,
            recorder=options.recorder,
            jobs=self.jobs,
            report=self._report,
            measure_again=lambda *failed: self._retries.measure_again(*failed),
        )

    def _make_node_faults(self, options: SessionOptions) -> NodeFaultTracker:
        store = options.recorder.store
        tracker = NodeFaultTracker(
            dispatcher=self._dispatcher,
            recorder=NodeFaultRecorder(connection=options.connection, store=store),
            can_avoid_nodes=options.renderer.profile.avoid_faulty_nodes,
        )
        tracker.load(read_node_faults(store, options.run_id))
        return tracker

    def _report(self, tracked: TrackedJob, result: Result) -> None:
        self._node_faults.note_result(tracked, result)
        self._observer.finish(tracked, result)

    def _make_submission(self, options: SessionOptions, watcher: CancellationWatcher) -> Submission:
        return Submission(
            dispatcher=self._dispatcher,
            cancellation_watcher=watcher,
            connection=options.connection,
            namespace=options.namespace,
            renderer=options.renderer,
            max_in_flight=options.max_in_flight,
            jobs=self.jobs,
            find_avoided=self._node_faults.find_avoided,
        )

    def _make_retries(
        self, options: SessionOptions, watcher: CancellationWatcher, completion: JobCompletion
    ) -> JobRetries:
        return JobRetries(
            dispatcher=self._dispatcher,
            recorder=options.recorder,
            cancellation_watcher=watcher,
            submission=self._submission,
            completion=completion,
            node_faults=self._node_faults,
            jobs=self.jobs,
        )

    def _make_pending_pods(
        self, options: SessionOptions, completion: JobCompletion, retries: JobRetries
    ) -> PendingPods:
        return PendingPods(
            dispatcher=self._dispatcher,
            recorder=options.recorder,
            jobs=self.jobs,
            unschedulable_seconds=options.unschedulable_seconds,
            start_problems=StartProblems(
                dispatcher=self._dispatcher, connection=options.connection, namespace=options.namespace
            ),
            start_seconds=options.renderer.profile.start_seconds,
            give_up=completion.give_up,
            handle_missing_job=retries.handle_missing_job,
        )

    def _make_queued_jobs(self, options: SessionOptions) -> QueuedJobs:
        connection, namespace = options.connection, options.namespace
        return QueuedJobs(dispatcher=self._dispatcher, connection=connection, namespace=namespace, jobs=self.jobs)

    def _make_placements(self, recorder: PlacementRecorder) -> PlacementTracker:
        return PlacementTracker(dispatcher=self._dispatcher, recorder=recorder, placed=recorder.list_placed())

    def run(self) -> None:
        """Measure everything that is missing, and return when each repeat has its terminal record.

        UserError if the cluster refuses; NodesAtFaultError if no node of a pool can measure; RunCancelled if the run
        was cancelled; DeadlinePassed if time is up: what had ended has its record then, Jobs that have not finished
        are left as they are.
        """
        try:
            self._start(self._job_informer, self._tracker.on_jobs)
            while not self._tracker.has_begun:
                self._run_next()
            self._start(self._pod_informer, self._tracker.on_pods)
            while self.jobs.count("done") < len(self.jobs) or self._placements.num_pending:
                self._submission.submit_more()
                self._run_next()
        except ApiError as error:
            raise to_user_error(error, self._connection.context) from error
        finally:
            self._job_informer.stop()
            self._pod_informer.stop()
            self._dispatcher.stop()

    def _start(self, informer: Informer[T], handle: Callable[[Notification[T]], None]) -> None:
        """Run an informer in a thread; its notifications are handled on the main thread."""

        def notify(notification: Notification[T]) -> None:
            self._dispatcher.post(partial(handle, notification))

        threading.Thread(target=informer.run, args=(notify,), name="informer", daemon=True).start()

    def _run_next(self) -> None:
        self._handle_events()
        if self._node_faults.stop is not None:
            raise self._node_faults.stop
        if self._deadline is not None and read_clock() >= self._deadline:
            self._await_records()
            raise DeadlinePassed

    def _handle_events(self) -> None:
        self._dispatcher.run_next()
        now = time.monotonic()
        if now >= self._next_tick and self._tracker.has_begun:
            self._next_tick = now + TICK_SECONDS
            self._pending_pods.check()
            self._queued_jobs.check()
            self._observer.tick(self.jobs)

    def _await_records(self) -> None:
        """Create no further Job, and wait until what had ended by the deadline has its record.

        So a deletion of the unfinished Jobs afterwards sees all of them.
        """
        if not self._tracker.has_begun:
            return
        self._submission.stop(RECORDING_SECONDS)
        begun = time.monotonic()
        while (seconds := time.monotonic() - begun) < RECORDING_SECONDS:
            if seconds > LAST_EVENTS_SECONDS and not (self.jobs.count("recording") or self._placements.num_pending):
                break
            self._handle_events()


def read_clock() -> datetime:
    """Return the time of day."""
    return datetime.now(UTC)


def _make_informer(
    options: SessionOptions, group: str, kind: str, read: Callable[[dict[str, Any]], T], fields: str = ""
) -> Informer[T]:
    path = f"{group}/namespaces/{options.namespace}/{kind}"
    return Informer(
        connection=options.connection, path=path, labels=select_run(options.run_id), read=read, fields=fields
    )
