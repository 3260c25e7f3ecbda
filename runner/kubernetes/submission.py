"""Create the Jobs of a run, as many at once as there is room for, and delete those that have their record.

Nothing relies on finished Jobs: progress and resuming rest on the records in the store. They would fill etcd in a long
run. The newest stay, with their pods and logs, until their `ttlSecondsAfterFinished`; none does where a quota counts
them and leaves no room for others.
"""

import threading
import time
from collections import defaultdict, deque
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from functools import partial
from http import HTTPStatus

from runner.kubernetes.capacity import PoolCapacity, Spending
from runner.kubernetes.cleanup import CancellationWatcher
from runner.kubernetes.connection import ApiError, delete_exactly
from runner.kubernetes.names import CELL_LABEL, REPEAT_LABEL
from runner.kubernetes.nodes import Placements
from runner.kubernetes.objects import JobStatus
from runner.kubernetes.rendering import NodeWish
from runner.kubernetes.tracked_jobs import OngoingRun, TrackedJob

NUM_KEPT = 1000
"""Finished Jobs that stay: with their pods about 12 MB of etcd (about 12 KB each, docs/performance.md)."""
BATCH_SIZE = 50
"""Jobs that one request deletes. It names them in its URL, at most 64 bytes each: proxies accept URLs of 4 KB."""
NUM_DELETIONS = 2
"""Requests under way that delete. Each takes a while, because the API server deletes its Jobs one by one
(`--delete-collection-workers` is 1). More of them would take the threads and the places that records and new Jobs need.
https://kubernetes.io/docs/reference/command-line-tools-reference/kube-apiserver/"""
MAX_FINISHED = 5000
"""Finished Jobs, those whose record is being found or written among them, at which no more are created: about 60 MB of
etcd. Cells may end faster than the store or the API server answers."""
COMPLETE = "status.successful=1"
"""The field selector of Jobs whose pod has succeeded: an unfinished Job of the same repeat is never deleted."""


@dataclass(kw_only=True)
class FinishedJobs:
    """Keeps the newest Jobs of a run that have their record, and has the others deleted, many with one request."""

    run: OngoingRun
    placements: Placements
    _kept: deque[tuple[JobStatus, str | None]] = field(default_factory=deque, repr=False)
    """With the attempt that the record is of; None: an earlier runner saw the Job end."""
    _is_room_needed: bool = False
    """Whether none stays."""
    _num_deletions: int = 0
    """Requests under way."""

    def add(self, job: JobStatus, attempt: str | None) -> None:
        self._kept.append((job, attempt))
        self._delete_more()

    def make_room(self) -> None:
        """Have all of them deleted, from now on: a quota that is used up counts them."""
        self._is_room_needed = True
        self._delete_more()

    def __len__(self) -> int:
        return len(self._kept)

    def _delete_more(self) -> None:
        while self._has_batch() and self._num_deletions < NUM_DELETIONS:
            batch = [self._kept.popleft() for _ in range(min(BATCH_SIZE, len(self._kept)))]
            is_placed = self.placements.placed.issuperset(attempt for _, attempt in batch)
            delete = partial(self._delete, [job for job, _ in batch], is_placed=is_placed)
            self._num_deletions += 1
            self.run.dispatcher.record(delete, self._handle_deleted)

    def _has_batch(self) -> bool:
        return bool(self._kept) if self._is_room_needed else len(self._kept) >= NUM_KEPT + BATCH_SIZE

    def _delete(self, batch: list[JobStatus], *, is_placed: bool) -> None:
        """Delete the Jobs, after the placements that they lack were written; `is_placed`: they lack none."""
        path = self.run.path("jobs")
        try:
            for number in sorted({job.number for job in batch}):
                cells = ",".join(sorted({job.cell_id for job in batch if job.number == number}))
                labels = f"{self.run.labels},{REPEAT_LABEL}={number},{CELL_LABEL} in ({cells})"
                if not is_placed:
                    self.placements.write_wanted(labels, lambda attempt: attempt not in self.placements.placed)
                query = {"labelSelector": labels, "fieldSelector": COMPLETE, "propagationPolicy": "Background"}
                self.run.connection.request("deletecollection", path, query=query)
            for job in batch:
                if job.end == "failed":
                    delete_exactly(self.run.connection, f"{path}/{job.name}", job.uid)
        except ApiError as error:  # their TTL deletes them
            message = f"finished Jobs are not deleted: {error.message}"
            self.run.dispatcher.warn_later(message, "deletion of finished Jobs")

    def _handle_deleted(self, _: None) -> None:
        self._num_deletions -= 1
        self._delete_more()


QUOTA_PAUSE_SECONDS = 10.0
"""How long nothing is submitted after a refusal by a quota."""
MIN_REQUEUE_SECONDS, MAX_REQUEUE_SECONDS = 60.0, 900.0
"""How long a Job that no node took is not created again: at first, and at most; each time it is twice as long."""
ALREADY_EXISTS = "AlreadyExists"


@dataclass(kw_only=True)
class Submission:
    """Creates the Jobs of a run in the order in which they were added; a full pool does not hold up the others."""

    run: OngoingRun
    cancellation_watcher: CancellationWatcher
    capacity: PoolCapacity
    spending: Spending
    finished_jobs: FinishedJobs
    """Of the run: none is created while the cluster has as many as it may have."""
    find_wish: Callable[[TrackedJob], NodeWish]
    """Returns the node that a new Job should run on."""
    _waiting: defaultdict[str, deque[tuple[int, TrackedJob]]] = field(
        default_factory=lambda: defaultdict(deque), repr=False
    )
    """By kind of nodes: the Jobs to submit, each with its place in the order of the run."""
    _num_added: int = 0
    _is_stopped: threading.Event = field(default_factory=threading.Event, repr=False)
    _paused_until: float | None = None
    """When (time.monotonic) to try again after a refusal by a quota. None: it left room."""

    def add(self, jobs: Iterable[TrackedJob]) -> None:
        for tracked in jobs:
            self._waiting[tracked.node_kind].append((self._num_added, tracked))
            self._num_added += 1

    def add_first(self, jobs: Iterable[TrackedJob]) -> None:
        """Queue Jobs that are no longer held back, or found no room, before those that have waited for no node."""
        for tracked in jobs:
            self._waiting[tracked.node_kind].appendleft((-1, tracked))

    def retry(self, tracked: TrackedJob, delay_seconds: float = 0.0) -> None:
        """Queue a Job that is gone and left no record, behind all others, after a delay."""
        self.run.jobs.move(tracked, "to-submit")
        if delay_seconds:
            self.run.dispatcher.call_later(delay_seconds, partial(self._add_after_pause, tracked))
        else:
            self.add([tracked])

    def requeue(self, tracked: TrackedJob) -> None:
        seconds = min(MIN_REQUEUE_SECONDS * 2**tracked.num_withdrawn, MAX_REQUEUE_SECONDS)
        tracked.num_withdrawn += 1
        self.retry(tracked, seconds)

    @property
    def is_budget_spent(self) -> bool:
        """Whether only the cap on the cost keeps the rest from being measured: nothing is unfinished or in a pause.

        A Job in a pause, of a pool whose cells cost less, may fit where the first that waits does not.
        """
        if self.run.bounds.max_cost is None or self.run.jobs.count("submitting", "in-flight", "recording"):
            return False
        left = {tracked.pool: tracked for tracked in self.run.jobs if tracked.state == "to-submit"}
        return bool(left) and not any(self.spending.has_room(tracked) for tracked in left.values())

    def submit_more(self) -> None:
        """Send as many requests as there is room for, unless it is being checked whether the run is cancelled."""
        if self._paused_until is not None and time.monotonic() >= self._paused_until:
            self._paused_until = None
            # While a quota leaves no room, there may be no Job whose end would show a cancellation.
            self.cancellation_watcher.check()
        if self._paused_until is not None or self.cancellation_watcher.is_checking or not self.capacity.is_known:
            return
        while (tracked := self._take_next()) is not None:
            self.run.jobs.move(tracked, "submitting")
            create = partial(self._create, tracked, self.find_wish(tracked))
            self.run.dispatcher.submit(create, partial(self._handle_created, tracked))

    def stop(self, seconds: float) -> None:
        """Create no further Job: requests that wait for the API server are given up; waits `seconds` at most."""
        self._is_stopped.set()
        self.run.dispatcher.stop_submitting(seconds)

    def _add_after_pause(self, tracked: TrackedJob) -> None:
        self.cancellation_watcher.check()  # there may have been no Job whose end would show a cancellation
        self.add([tracked])

    def _take_next(self) -> TrackedJob | None:
        """Return the first Job in the order of the run for which its nodes and the run have room; None if none."""
        if self.run.jobs.count("submitting", "in-flight") >= self.run.bounds.max_in_flight:
            return None
        if self.run.jobs.count("recording") + len(self.finished_jobs) >= MAX_FINISHED:
            return None
        heads: list[tuple[int, TrackedJob]] = []
        for waiting in self._waiting.values():
            while waiting and waiting[0][1].state != "to-submit":
                waiting.popleft()
            if waiting and self.capacity.has_room(waiting[0][1]):
                heads.append(waiting[0])
        for _, tracked in sorted(heads, key=lambda head: head[0]):
            if self.spending.has_room(tracked):
                self._waiting[tracked.node_kind].popleft()
                return tracked
        return None

    def _create(self, tracked: TrackedJob, wish: NodeWish) -> bool:
        """Create the Job, if no other runner has; return whether a quota left room."""
        body = self.run.renderer.render(tracked.repeat.planned, tracked.key, wish)
        try:
            path = self.run.path("jobs")
            self.run.connection.request("create", path, body=body, stop=self._is_stopped)
        except ApiError as error:
            if error.status == HTTPStatus.FORBIDDEN and "exceeded quota" in error.message:
                hint = "finished Jobs count until they are deleted: those of this run are now, once they are recorded"
                message = f"no room for more Jobs at present: {error.message} ({hint})"
                self.run.dispatcher.warn_later(message, "quota of Jobs")
                return False
            if error.reason != ALREADY_EXISTS and not self._is_stopped.is_set():
                raise
        return True

    def _handle_created(self, tracked: TrackedJob, has_room: bool) -> None:
        if tracked.state != "submitting":  # the informer reported the Job first
            return
        if has_room:
            self.run.jobs.move(tracked, "in-flight")
        else:
            self.run.jobs.move(tracked, "to-submit")
            self.finished_jobs.make_room()
            self.add_first([tracked])
            self._paused_until = time.monotonic() + QUOTA_PAUSE_SECONDS
