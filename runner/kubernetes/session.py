"""The session of one runner with one cluster: it measures what a run lacks, one Job per repeat.

All state is in the cluster and the store; what a session keeps can be rebuilt from them, so it may be killed at any
time. The states of a repeat are in job_states.py.
"""

import threading
import time
from collections.abc import Callable, Iterable
from datetime import UTC, datetime
from functools import partial

from bench.schema import Result
from runner.kubernetes.api_errors import ApiError, to_user_error
from runner.kubernetes.cancellation import CancellationWatcher, list_marks
from runner.kubernetes.changed_pods import ChangedPods
from runner.kubernetes.dispatcher import TICK_SECONDS
from runner.kubernetes.finished_jobs import FinishedJobs
from runner.kubernetes.informers import Informer, Notification
from runner.kubernetes.job_completion import JobCompletion
from runner.kubernetes.job_retries import JobRetries
from runner.kubernetes.job_tracker import JobTracker
from runner.kubernetes.missing_pods import MissingPods
from runner.kubernetes.node_fault_tracker import NodeFaultRecorder, NodeFaultTracker, read_node_faults
from runner.kubernetes.object_status import read_job_status, read_pod_status
from runner.kubernetes.pending_pods import PendingPods
from runner.kubernetes.placements import PlacementRecorder, PlacementTracker
from runner.kubernetes.pool_capacity import PoolCapacity
from runner.kubernetes.queued_jobs import QueuedJobs
from runner.kubernetes.rendering.job_name import select_run
from runner.kubernetes.session_options import SessionOptions, T
from runner.kubernetes.shared_nodes import SharedNodes
from runner.kubernetes.start_problems import StartProblems
from runner.kubernetes.submission import Submission
from runner.kubernetes.tracked_jobs import TrackedJob, TrackedJobs

LAST_EVENTS_SECONDS = 3.0
"""How long, at the deadline, ends are waited for that the informers have not reported yet."""
RECORDING_SECONDS = 120.0
"""How long, at the deadline, requests under way and the records of what has ended are waited for."""
# How well a pod ended is known from its Job and its record.
POD_FIELDS = "status.phase!=Succeeded"


class DeadlinePassed(Exception):  # noqa: N818  (an answer rather than an error)
    """The run has taken as long as it may."""


class BudgetSpent(Exception):  # noqa: N818  (an answer rather than an error)
    """The cap on the run's cost leaves no room for another Job."""


class ClusterSession:
    """Measures the repeats that `list_missing` returns. Used once."""

    def __init__(self, options: SessionOptions, list_missing: Callable[[], Iterable[TrackedJob]]) -> None:
        """Read the marks of earlier cancellations, and what is placed; nothing is sent to the cluster before `run`.

        `list_missing` is called when the Jobs that exist are known. In this order nothing is measured twice: a Job that
        was deleted before the list has its record in the store. StoreError if the store cannot be used.
        """
        marks = list_marks(options.recorder.store, options.run_id).union(*options.cancelled_with.values())
        self.jobs, self._spending = TrackedJobs(), options.spending
        self._deadline, self._observer, self._next_tick = options.deadline, options.observer, 0.0
        self._connection = options.connection
        self._dispatcher = options.make_dispatcher()
        self._connection.warn = self._dispatcher.warn_later
        self._job_informer = options.make_informer("/apis/batch/v1", "jobs", read_job_status)
        self._pod_informer = options.make_informer("/api/v1", "pods", read_pod_status, POD_FIELDS)
        watcher = self._make_watcher(options, marks)
        self._capacity = self._make_capacity(options)
        self._node_faults = self._make_node_faults(options)
        self._shared_nodes = self._make_shared_nodes(options)
        self._submission = self._make_submission(options, watcher)
        self._placements = self._make_placements(options.placement_recorder)
        self._finished_jobs = self._make_finished_jobs(options)
        completion = self._make_completion(options, self._finished_jobs)
        self._retries = self._make_retries(options, watcher, completion)
        self._pending_pods = self._make_pending_pods(options, completion, self._retries)
        self._queued_jobs = self._make_queued_jobs(options)
        self._tracker = JobTracker(
            list_missing=list_missing,
            jobs=self.jobs,
            cancellation_watcher=watcher,
            capacity=self._capacity,
            submission=self._submission,
            finished_jobs=self._finished_jobs,
            completion=completion,
            retries=self._retries,
            pending_pods=self._pending_pods,
            placements=self._placements,
            shared_nodes=self._shared_nodes,
            node_faults=self._node_faults,
            changed_pods=self._make_changed_pods(options),
        )

    def _make_changed_pods(self, options: SessionOptions) -> ChangedPods:
        connection, renderer = options.connection, options.renderer
        return ChangedPods(
            dispatcher=self._dispatcher, connection=connection, namespace=options.namespace, renderer=renderer
        )

    def _make_shared_nodes(self, options: SessionOptions) -> SharedNodes:
        # With a queue, cells that wait for their node would use up its quota.
        patience = 0 if options.renderer.queue else options.renderer.profile.same_node_patience_seconds
        return SharedNodes(
            dispatcher=self._dispatcher,
            submit_next=lambda tracked: self._submission.add_first(tracked),
            delete_job=options.recorder.delete_job,
            find_instance_type=options.placement_recorder.find_instance_type,
            find_former_nodes=options.find_former_nodes,
            # A cell that waits for a node of its own choice must not be given up as one that no node can take.
            patience_seconds=min(patience, options.unschedulable_seconds / 2),
        )

    def _make_capacity(self, options: SessionOptions) -> PoolCapacity:
        return PoolCapacity(dispatcher=self._dispatcher, connection=options.connection, renderer=options.renderer)

    def _make_node_faults(self, options: SessionOptions) -> NodeFaultTracker:
        store = options.recorder.store
        tracker = NodeFaultTracker(
            dispatcher=self._dispatcher,
            recorder=NodeFaultRecorder(connection=options.connection, store=store),
            jobs=self.jobs,
            can_avoid_nodes=options.renderer.profile.avoid_faulty_nodes,
        )
        tracker.load(read_node_faults(store, options.run_id))
        return tracker

    def _make_watcher(self, options: SessionOptions, marks: frozenset[str]) -> CancellationWatcher:
        run_ids = (options.run_id, *options.cancelled_with)
        return CancellationWatcher(
            dispatcher=self._dispatcher, store=options.recorder.store, run_ids=run_ids, known=marks
        )

    def _make_submission(self, options: SessionOptions, watcher: CancellationWatcher) -> Submission:
        return Submission(
            dispatcher=self._dispatcher,
            cancellation_watcher=watcher,
            connection=options.connection,
            namespace=options.namespace,
            renderer=options.renderer,
            max_in_flight=options.max_in_flight,
            capacity=self._capacity,
            spending=self._spending,
            jobs=self.jobs,
            is_held_back=lambda: self._finished_jobs.is_behind,
            make_room=lambda: self._finished_jobs.make_room(),
            find_wish=lambda tracked: self._shared_nodes.find_wish(tracked, self._node_faults.find_avoided(tracked)),
        )

    def _make_completion(self, options: SessionOptions, finished_jobs: FinishedJobs) -> JobCompletion:
        return JobCompletion(
            dispatcher=self._dispatcher,
            recorder=options.recorder,
            jobs=self.jobs,
            submission=self._submission,
            finished_jobs=finished_jobs,
            report=self._report,
            measure_again=lambda *failed: self._retries.measure_again(*failed),
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
            jobs=self.jobs,
            unschedulable_seconds=options.unschedulable_seconds,
            start_problems=StartProblems(
                dispatcher=self._dispatcher, connection=options.connection, namespace=options.namespace
            ),
            missing_pods=MissingPods(
                dispatcher=self._dispatcher,
                connection=options.connection,
                namespace=options.namespace,
                labels=select_run(options.run_id, fingerprint=options.fingerprint),
                make_room=lambda: self._finished_jobs.make_room(),
            ),
            start_seconds=options.renderer.profile.start_seconds,
            give_up=completion.give_up,
            withdraw=completion.withdraw if options.is_requeued else None,
            blame_node=retries.blame_node,
            handle_missing_job=retries.handle_missing_job,
        )

    def _make_queued_jobs(self, options: SessionOptions) -> QueuedJobs:
        connection, namespace = options.connection, options.namespace
        return QueuedJobs(dispatcher=self._dispatcher, connection=connection, namespace=namespace, jobs=self.jobs)

    def _make_placements(self, recorder: PlacementRecorder) -> PlacementTracker:
        return PlacementTracker(dispatcher=self._dispatcher, recorder=recorder, placed=recorder.list_placed())

    def _make_finished_jobs(self, options: SessionOptions) -> FinishedJobs:
        return FinishedJobs(
            dispatcher=self._dispatcher,
            connection=options.connection,
            namespace=options.namespace,
            run_id=options.run_id,
            fingerprint=options.fingerprint,
            placements=self._placements,
        )

    def _report(self, tracked: TrackedJob, result: Result) -> None:
        self._node_faults.note_result(tracked, result)
        self._spending.add(tracked, result)
        self._shared_nodes.note_end(tracked)
        self._observer.finish(tracked, result)

    def run(self) -> None:
        """Measure everything that is missing, and return when each repeat has its terminal record.

        UserError if the cluster refuses; NodesAtFaultError if no node of a pool can measure; RunCancelled if the run
        was cancelled; DeadlinePassed if time is up: what had ended has its record then, Jobs that have not finished
        are left as they are; BudgetSpent if the cap on the cost leaves no room for what is missing, when everything
        that was submitted has its record.
        """
        with self._dispatcher:  # stopped last
            try:
                self._start(self._job_informer, self._tracker.on_jobs)
                while not self._tracker.has_begun:
                    self._run_next()
                self._start(self._pod_informer, self._tracker.on_pods)
                while self.jobs.count("done") < len(self.jobs) or self._placements.num_pending:
                    self._submission.submit_more()
                    self._check_budget()  # before an end is handled that leaves more room than was expected
                    self._run_next()
            except ApiError as error:
                raise to_user_error(error, self._connection.context) from error
            finally:
                self._job_informer.stop()
                self._pod_informer.stop()

    def _start(self, informer: Informer[T], handle: Callable[[Notification[T]], None]) -> None:
        """Start a thread that runs an informer, and have each notification passed to `handle` on the main thread."""

        def notify(notification: Notification[T]) -> None:
            self._dispatcher.post(partial(handle, notification))

        threading.Thread(target=informer.run, args=(notify,), name="informer", daemon=True).start()

    def _check_budget(self) -> None:
        """Raise BudgetSpent if only the cap on the cost keeps the rest from being measured."""
        if self._submission.is_budget_spent and not self._placements.num_pending:
            raise BudgetSpent

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
            self._shared_nodes.check()
            self._capacity.refresh()
            self._spending.update(self.jobs)
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
