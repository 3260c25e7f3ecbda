"""Create the Jobs of a run: as many at once as pools, budget and options allow, none while a quota leaves no room."""

import json
import threading
import time
from collections import defaultdict, deque
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from functools import partial
from http import HTTPStatus

from bench.errors import UserError
from runner.kubernetes.api_errors import ApiError
from runner.kubernetes.cancellation import CancellationWatcher
from runner.kubernetes.changed_jobs import describe_changes
from runner.kubernetes.connection import Connection, decode_answer
from runner.kubernetes.dispatcher import Dispatcher
from runner.kubernetes.pool_capacity import PoolCapacity
from runner.kubernetes.rendering.job_name import FINGERPRINT_LABEL, RUN_LABEL
from runner.kubernetes.rendering.job_template import JobRenderer
from runner.kubernetes.rendering.node_wish import NodeWish
from runner.kubernetes.spending import Spending
from runner.kubernetes.tracked_jobs import UNFINISHED, TrackedJob, TrackedJobs

QUOTA_PAUSE_SECONDS = 10.0
"""How long nothing is submitted after a refusal by a quota."""
MIN_REQUEUE_SECONDS, MAX_REQUEUE_SECONDS = 60.0, 900.0
"""How long a Job that no node took is not created again: at first, and at most; each time it is twice as long."""
MAX_RECORDING = 1000
"""Jobs that have ended and whose record is being found or written. With so many, nothing is submitted: where the store
or the API server answers more slowly than cells end, finished Jobs would fill etcd, 12 KB each with their pod."""
ALREADY_EXISTS = "AlreadyExists"


@dataclass(kw_only=True)
class Submission:
    """Creates the Jobs of a run in the order in which they were added; a full pool does not hold up the others."""

    dispatcher: Dispatcher
    cancellation_watcher: CancellationWatcher
    connection: Connection
    namespace: str
    renderer: JobRenderer
    max_in_flight: int
    capacity: PoolCapacity
    spending: Spending
    jobs: TrackedJobs
    find_wish: Callable[[TrackedJob], NodeWish]
    """Returns the node that a new Job should run on."""
    is_held_back: Callable[[], bool] = lambda: False
    """Returns whether the cluster has as many finished Jobs as it may have: then none is created."""
    make_room: Callable[[], None] = lambda: None
    """Called when a quota leaves no room for a Job: has those deleted that have finished."""
    is_held_by_budget: bool = False
    """Whether the budget left no room for a Job when there was nothing else that kept it from being created."""
    _waiting: defaultdict[str, deque[tuple[int, TrackedJob]]] = field(
        default_factory=lambda: defaultdict(deque), repr=False
    )
    """By kind of nodes: the Jobs to submit, each with its place in the order of the run."""
    _num_added: int = 0
    _compared: set[tuple[str, str, int, int]] = field(default_factory=set, repr=False)
    """The kinds of cells of which a Job was compared with what the API server was asked for."""
    _is_stopped: threading.Event = field(default_factory=threading.Event, repr=False)
    _paused_until: float | None = None
    """When (time.monotonic) to try again after a refusal by a quota. None: it left room."""

    def add(self, jobs: Iterable[TrackedJob]) -> None:
        """Queue Jobs that are `to-submit`."""
        for tracked in jobs:
            self._waiting[tracked.node_kind].append((self._num_added, tracked))
            self._num_added += 1

    def add_first(self, tracked: TrackedJob) -> None:
        """Queue a Job that is `to-submit` before all others."""
        self._waiting[tracked.node_kind].appendleft((-1, tracked))

    def retry(self, tracked: TrackedJob, delay_seconds: float = 0.0) -> None:
        """Queue a Job that is gone and left no record, behind all others, after a delay."""
        self.jobs.move(tracked, "retried")
        if delay_seconds:
            self.dispatcher.call_later(delay_seconds, partial(self._add_unless_cancelled, tracked))
        else:
            self.add([tracked])

    def requeue(self, tracked: TrackedJob) -> None:
        """Queue a Job that only waited for a node, behind all others, after a pause that grows each time."""
        self.jobs.move(tracked, "requeued")
        seconds = min(MIN_REQUEUE_SECONDS * 2**tracked.num_withdrawn, MAX_REQUEUE_SECONDS)
        tracked.num_withdrawn += 1
        self.dispatcher.call_later(seconds, partial(self._add_unless_cancelled, tracked))

    @property
    def is_budget_spent(self) -> bool:
        """Whether only the cap on the cost keeps the rest from being measured: nothing is unfinished or in a pause.

        A Job in a pause, of a pool whose cells cost less, may fit where the first that waits does not.
        """
        if not self.is_held_by_budget or self.jobs.count("submitting", "in-flight", "recording"):
            return False
        left = {tracked.pool: tracked for tracked in self.jobs if tracked.state == "to-submit"}
        return not any(self.spending.has_room(tracked, self.jobs) for tracked in left.values())

    def submit_more(self) -> None:
        """Send as many requests as there is room for, unless it is being checked whether the run is cancelled."""
        self.is_held_by_budget = False
        if self._paused_until is not None and time.monotonic() >= self._paused_until:
            self._paused_until = None
            # While a quota leaves no room, there may be no Job whose end would show a cancellation.
            self.cancellation_watcher.check()
        if self._paused_until is not None or self.cancellation_watcher.is_checking or not self.capacity.is_known:
            return
        while (tracked := self._take_next()) is not None:
            self.jobs.move(tracked, "request-sent")
            create = partial(self._create, tracked, self.find_wish(tracked))
            self.dispatcher.submit(create, partial(self._handle_created, tracked))

    def stop(self, seconds: float) -> None:
        """Create no further Job: requests that wait for the API server are given up; waits `seconds` at most."""
        self._is_stopped.set()
        self.dispatcher.stop_submitting(seconds)

    def _add_unless_cancelled(self, tracked: TrackedJob) -> None:
        """Queue a Job after a pause: meanwhile there may have been no Job whose end would show a cancellation."""
        self.cancellation_watcher.check(partial(self.add, [tracked]))

    def _take_next(self) -> TrackedJob | None:
        """Return the first Job in the order of the run for which its nodes and the run have room; None if none."""
        if self.jobs.count("submitting", "in-flight") >= self.max_in_flight:
            return None
        if self.jobs.count("recording") >= MAX_RECORDING or self.is_held_back():
            return None
        heads: list[tuple[int, TrackedJob]] = []
        for waiting in self._waiting.values():
            while waiting and waiting[0][1].state != "to-submit":
                waiting.popleft()
            if waiting and self._has_room(waiting[0][1]):
                heads.append(waiting[0])
        for _, tracked in sorted(heads, key=lambda head: head[0]):
            if self.spending.has_room(tracked, self.jobs):
                self._waiting[tracked.node_kind].popleft()
                return tracked
            self.is_held_by_budget = True
        return None

    def _has_room(self, tracked: TrackedJob) -> bool:
        maximum, limit = self.capacity.find_maximum(tracked.pool), self.capacity.find_limit(tracked.node_kind)
        if maximum is not None and self.jobs.count_in_pool(tracked.pool, *UNFINISHED) >= maximum:
            return False
        return limit is None or self.jobs.count_on_nodes(tracked.node_kind, *UNFINISHED) < limit

    def _create(self, tracked: TrackedJob, wish: NodeWish) -> bool:
        """Create the Job; return whether a quota left room. A Job that exists already was created by another runner."""
        body = self.renderer.render(tracked.repeat.planned, tracked.key, wish)
        try:
            path = f"/apis/batch/v1/namespaces/{self.namespace}/jobs"
            made = self.connection.request("create", path, body=body, stop=self._is_stopped)
            self._tell_changes(tracked, body, made)
        except ApiError as error:
            if error.status == HTTPStatus.FORBIDDEN and "exceeded quota" in error.message:
                hint = (
                    "finished Jobs count until they are deleted: those of this run are now, once they have their record"
                )
                self.dispatcher.warn_later(
                    f"no room for more Jobs at present: {error.message} ({hint})", "quota of Jobs"
                )
                return False
            if error.reason == ALREADY_EXISTS:
                self._check_own(tracked)
            elif not self._is_stopped.is_set():
                raise
        return True

    def _tell_changes(self, tracked: TrackedJob, body: bytes, made: bytes) -> None:
        """Warn if the cluster made something else of the Job than it was asked for; one of each kind is compared."""
        cell = tracked.repeat.planned.cell
        kind = (tracked.node_kind, cell.framework, cell.num_gpus, cell.tenants)
        if kind in self._compared:
            return
        self._compared.add(kind)
        found = decode_answer(made)
        if changes := describe_changes(json.loads(body), found):
            self.dispatcher.warn_later(
                f"an admission webhook or policy of the cluster changed Job {tracked.name}: {changes}; "
                "what is measured may not be what was planned",
                f"changed Jobs {kind}",
            )

    def _check_own(self, tracked: TrackedJob) -> None:
        """Raise UserError if a Job of this name exists that is not of this run; one that is gone by now is no error."""
        path = f"/apis/batch/v1/namespaces/{self.namespace}/jobs"
        found = self.connection.list_items(path, fieldSelector=f"metadata.name={tracked.name}")
        expected = {RUN_LABEL: tracked.key.run_id, FINGERPRINT_LABEL: tracked.key.fingerprint}
        if any(not expected.items() <= job["metadata"].get("labels", {}).items() for job in found):
            raise UserError(
                f"Job {tracked.name} in namespace {self.namespace} is not of this run: its labels "
                f"{' and '.join(expected)} are not this run's; delete that Job, or take another --run-id or --namespace"
            )
        for job in found:
            if "deletionTimestamp" in job["metadata"]:
                finalizers = ", ".join(job["metadata"].get("finalizers", ())) or "none that it names"
                self.dispatcher.warn_later(
                    f"Job {tracked.name} was deleted and is still there, kept by its finalizers ({finalizers}); its "
                    "repeat is not measured until it is gone",
                    "deleted Jobs that stay",
                )

    def _handle_created(self, tracked: TrackedJob, has_room: bool) -> None:
        if tracked.state != "submitting":  # the informer reported the Job first
            return
        if has_room:
            self.jobs.move(tracked, "created")
        else:
            self.jobs.move(tracked, "refused-by-quota")
            self.make_room()
            self._waiting[tracked.node_kind].appendleft((-1, tracked))
            self._paused_until = time.monotonic() + QUOTA_PAUSE_SECONDS
