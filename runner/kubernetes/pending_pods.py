"""Why pods of Jobs in flight do not run: asked for in events, warned of, and given up after too long.

While a pod is in `ContainerCreating`, its status says nothing more; its events do (`FailedCreatePodSandBox`,
`FailedMount`, `FailedAttachVolume`, `FailedPrepareDynamicResources`, ...: pkg/kubelet/events/event.go).

Jobs without a pod are explained in the words of the Job controller, or of the node that does not let a pod go: all of
them by one list of events and one of pods, however many they are.
"""

import time
from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import partial
from typing import Any

from runner.kubernetes.connection import Connection
from runner.kubernetes.dispatcher import Dispatcher
from runner.kubernetes.failures import JobOutcome, Verdict, explain_waiting, find_pending_pod
from runner.kubernetes.objects import JobStatus, PodStatus, read_pod_status
from runner.kubernetes.tracked_jobs import TrackedJob, TrackedJobs

STARTING_SECONDS = 10.0
"""A pod that is being started for so long is worth asking about, and telling of."""
MAX_PAUSE_SECONDS = 60.0
"""Between two requests, which are STARTING_SECONDS or NO_POD_SECONDS apart at first."""
STARTING_REASONS = frozenset({"", "ContainerCreating", "PodInitializing"})
# Those of other moments of a pod's life. `Pulling` stays: what came before it is over.
_OTHER_REASONS = ("FailedScheduling", "Scheduled", "Pulled", "Created", "Started", "Killing")
# Warnings that the kubelet gives at every start of a pod on nodes that have more name servers or search domains than it
# passes on, or no cluster DNS; the pod starts (pkg/kubelet/network/dns/dns.go,
# https://github.com/kubernetes/kubernetes/issues/126585). Given again at each attempt, they would hide why it failed.
_HARMLESS_REASONS = ("DNSConfigForming", "MissingClusterDNS")


def is_starting(pod: PodStatus) -> bool:
    return pod.phase == "Pending" and bool(pod.node) and pod.waiting_reason in STARTING_REASONS


def read_start_problems(connection: Connection, namespace: str) -> dict[str, str]:
    """Return by the uid of pods what was said last of them, if it was a warning. ApiError if events may not be read."""
    left_out = (f"reason!={reason}" for reason in _OTHER_REASONS + _HARMLESS_REASONS)
    fields = ",".join(["involvedObject.kind=Pod", *left_out])
    events = connection.list_items(f"/api/v1/namespaces/{namespace}/events", fieldSelector=fields)
    newest = {event["involvedObject"].get("uid", ""): event for event in sorted(events, key=_find_time)}
    return {uid: _describe(event) for uid, event in newest.items() if event.get("type") == "Warning"}


def _find_time(event: dict[str, Any]) -> str:
    """Return when something was last seen to happen; a series of events has a time of its own."""
    series = event.get("series") or {}
    times = (series.get("lastObservedTime"), event.get("lastTimestamp"), event.get("eventTime"))
    return max(str(time or "") for time in times)


def _describe(event: dict[str, Any]) -> str:
    return f"{event.get('reason', '')}: {' '.join(str(event.get('message', '')).split())}".strip(": ")


@dataclass(kw_only=True)
class StartProblems:
    """Asks for the events of the pods that are being started, all at once and only while there are such pods."""

    dispatcher: Dispatcher
    connection: Connection
    namespace: str
    _since: dict[str, float] = field(default_factory=dict, repr=False)
    """When (time.monotonic) a pod was first seen being started, by its uid."""
    _problems: dict[str, str] = field(default_factory=dict, repr=False)
    _pause_seconds: float = STARTING_SECONDS
    _next_request: float = 0.0

    def check(self, pods: Iterable[PodStatus]) -> None:
        """Note the pods that are being started now, and ask for their events if one takes long."""
        now = time.monotonic()
        self._since = {pod.uid: self._since.get(pod.uid, now) for pod in pods if is_starting(pod)}
        if not any(now - since >= STARTING_SECONDS for since in self._since.values()):
            self._pause_seconds, self._problems = STARTING_SECONDS, {}
        elif now >= self._next_request:
            self._next_request = now + self._pause_seconds
            self._pause_seconds = min(2 * self._pause_seconds, MAX_PAUSE_SECONDS)
            self.dispatcher.request(partial(read_start_problems, self.connection, self.namespace), self._keep)

    def find(self, pod: PodStatus) -> tuple[str, float] | None:
        """Return what keeps a pod from starting, and since when (time.monotonic) it is being started; None: nothing."""
        problem = self._problems.get(pod.uid)
        since = self._since.get(pod.uid)
        return None if problem is None or since is None else (problem, since)

    def _keep(self, problems: dict[str, str]) -> None:
        self._problems = problems


NO_POD_SECONDS = 20.0
"""A Job that has been without a pod for so long is worth asking about."""
FAILED_CREATE = "FailedCreate"
"""The reason of the Job controller's events about pods that it could not create."""
COUNTED_PODS = "count/pods"
"""The resource of a quota on pods of all phases; `pods` are those that have not ended."""
JOB_NAME_LABEL = "batch.kubernetes.io/job-name"


def read_missing_pod_reasons(connection: Connection, namespace: str) -> dict[str, str]:
    """Return by the name of Jobs why a pod could last not be created. ApiError if events may not be read."""

    def read(event: dict[str, Any]) -> tuple[str, str, str]:
        time_seen = str(event.get("lastTimestamp") or event.get("eventTime") or "")
        return time_seen, event["involvedObject"].get("name", ""), str(event.get("message", ""))

    query = {"fieldSelector": f"involvedObject.kind=Job,reason={FAILED_CREATE}"}
    found = connection.read_items(f"/api/v1/namespaces/{namespace}/events", read, query)
    return {name: message for _, name, message in sorted(found)}


def read_overdue_pods(connection: Connection, namespace: str, labels: str) -> dict[str, str]:
    """Return by the name of Jobs which pod of theirs should have ended by now and is still there.

    `labels` select the pods. ApiError if they may not be read.
    """
    now = datetime.now(UTC)

    def read(pod: dict[str, Any]) -> tuple[str, str]:
        metadata, node = pod["metadata"], pod["spec"].get("nodeName", "")
        until = metadata.get("deletionTimestamp")
        if not until or datetime.fromisoformat(until) >= now:
            return "", ""
        return metadata.get("labels", {}).get(JOB_NAME_LABEL, ""), (
            f"pod {metadata['name']} should have ended by {until}, but node {node} does not say that it has; "
            f"if that machine is lost, `kubectl delete node {node}`"
        )

    query = {"labelSelector": labels}
    found = dict(connection.read_items(f"/api/v1/namespaces/{namespace}/pods", read, query))
    return {job_name: message for job_name, message in found.items() if job_name}


def find_running_pod(connection: Connection, namespace: str, tracked: TrackedJob) -> str:
    """Return the name of a pod of a Job that is gone which runs on, since nobody deleted it; empty if there is none.

    `kubectl delete --cascade=orphan` leaves it. ApiError if the pods cannot be listed.
    """
    query = {"labelSelector": f"{JOB_NAME_LABEL}={tracked.name}"}
    pods = connection.read_items(f"/api/v1/namespaces/{namespace}/pods", read_pod_status, query)
    running = (pod for pod in pods if pod.phase == "Running" and not pod.is_deleted)
    return next((pod.name for pod in running if pod.uid not in tracked.settled_uids), "")


@dataclass(kw_only=True)
class MissingPods:
    """Asks why Jobs have no pod, for all of them at once and only while there are such Jobs; on the main thread."""

    dispatcher: Dispatcher
    connection: Connection
    namespace: str
    labels: str
    """The selector of the run's pods."""
    make_room: Callable[[], None] = lambda: None
    """Called when a quota counts pods that have ended, and leaves no room for one: has finished Jobs deleted."""
    _pause_seconds: float = 0.0
    """Until the next request is allowed; 0: no Job lacked a pod for long when that was last checked."""
    _next_request: float = 0.0

    def check(self, jobs: Sequence[TrackedJob]) -> None:
        """Ask for the reasons if one of these Jobs, which have no pod, has had none for long."""
        now = time.monotonic()
        lacking = [
            tracked
            for tracked in jobs
            if tracked.no_pod_since is not None and now - tracked.no_pod_since >= NO_POD_SECONDS
        ]
        if not lacking:
            self._pause_seconds = 0.0
        elif not self._pause_seconds or now >= self._next_request:
            self._pause_seconds = min(2 * self._pause_seconds or NO_POD_SECONDS, MAX_PAUSE_SECONDS)
            self._next_request = now + self._pause_seconds
            self._ask(lacking)

    def _ask(self, lacking: Sequence[TrackedJob]) -> None:
        ending = [tracked for tracked in lacking if tracked.job is not None and tracked.job.num_terminating]
        others = [tracked for tracked in lacking if tracked.job is not None and not tracked.job.num_terminating]
        for tracked in others:
            tracked.termination_message = ""

        def keep_terminations(messages: dict[str, str]) -> None:
            for tracked in ending:
                tracked.termination_message = messages.get(tracked.name, "")

        def keep_reasons(reasons: dict[str, str]) -> None:
            for tracked in others:
                tracked.missing_pod_reason = reasons.get(tracked.name, "")
            if any("exceeded quota" in reason and COUNTED_PODS in reason for reason in reasons.values()):
                self.make_room()

        if ending:
            read = partial(read_overdue_pods, self.connection, self.namespace, self.labels)
            self.dispatcher.request(read, keep_terminations)
        if others:
            self.dispatcher.request(partial(read_missing_pod_reasons, self.connection, self.namespace), keep_reasons)


UNSEEN_SECONDS = 60.0
"""A Job that was created and that the informer has not reported for so long counts as missing."""
WARN_SECONDS = 10.0
"""A pod that waits for so long, while no cell of its pool runs, is worth a warning."""


@dataclass(kw_only=True)
class PendingPods:
    """Watches the Jobs in flight whose pod does not run."""

    dispatcher: Dispatcher
    jobs: TrackedJobs
    unschedulable_seconds: float
    start_problems: StartProblems
    missing_pods: MissingPods
    start_seconds: float
    """How long a node may take to start a pod."""
    give_up: Callable[[TrackedJob, JobOutcome], None]
    """Called for a Job whose pod cannot start."""
    withdraw: Callable[[TrackedJob, JobStatus], None] | None
    """Called in place of `give_up` for a Job whose pod no node takes. None: it is given up."""
    blame_node: Callable[[TrackedJob, JobStatus], None]
    """Called for a Job whose pod cannot start for a fault of its node."""
    handle_missing_job: Callable[[TrackedJob], None]
    """Called for a Job that was created and never reported."""
    _last_progress: defaultdict[str, float] = field(default_factory=lambda: defaultdict(time.monotonic), repr=False)
    """When a cell last ran or ended, by the kind of nodes that it needs."""

    def note_progress(self, tracked: TrackedJob, job: JobStatus) -> None:
        """Remember that cells which need the same nodes get on, if the Job runs or has ended."""
        if job.num_ready or job.end:
            self._last_progress[tracked.node_kind] = time.monotonic()

    def check(self) -> None:
        """Check every Job in flight; to be called about once a second."""
        now = time.monotonic()
        in_flight = [tracked for tracked in self.jobs.list_unfinished() if tracked.state == "in-flight"]
        self.start_problems.check(pod for tracked in in_flight for pod in tracked.pods.values())
        for tracked in in_flight:
            if tracked.job is not None and tracked.job.num_ready:
                self._last_progress[tracked.node_kind] = now
        for tracked in in_flight:
            if tracked.job is not None:
                self._check_job(tracked, tracked.job, now)
            elif now - _note_no_pod(tracked, now) >= UNSEEN_SECONDS:
                tracked.forget_no_pod()
                self.handle_missing_job(tracked)
        self.missing_pods.check([tracked for tracked in in_flight if tracked.job and _lacks_pod(tracked.job)])

    def _check_job(self, tracked: TrackedJob, job: JobStatus, now: float) -> None:
        if _lacks_pod(job):
            _note_no_pod(tracked, now)
        else:
            tracked.forget_no_pod()
        is_waiting = not (job.num_ready or job.is_suspended)
        failure = self._find_failure(tracked) if is_waiting else None
        if failure is None:
            tracked.forget_waiting()
        else:
            self._warn_or_give_up(tracked, job, failure, now)

    def _find_failure(self, tracked: TrackedJob) -> Verdict | None:
        failure = explain_waiting(tracked, unschedulable_seconds=self.unschedulable_seconds)
        pod = find_pending_pod(tracked)
        if failure is not None or pod is None:
            return failure
        found = self.start_problems.find(pod)
        if found is None:
            return None
        problem, since = found
        return Verdict(kind="infrastructure", message=problem, patience=self.start_seconds, since=since)

    def _warn_or_give_up(self, tracked: TrackedJob, job: JobStatus, failure: Verdict, now: float) -> None:
        if failure.kind != tracked.waiting_for or tracked.waiting_since is None:
            tracked.waiting_for, tracked.waiting_since = failure.kind, failure.since or now
        # While others run that need the same nodes, a pod that no node takes merely waits for its turn.
        is_in_turn = failure.kind == "unschedulable"
        since = max(tracked.waiting_since, self._last_progress[tracked.node_kind] if is_in_turn else 0.0)
        if now - since >= min(WARN_SECONDS, failure.patience):
            slug = tracked.repeat.planned.cell.slug
            self.dispatcher.warn(f"{failure.to_failure().message} (waiting: {slug}, for example)", failure.dedup_key)
        if now - since < failure.patience:
            return
        if failure.node_fault:
            self.blame_node(tracked, job)
        elif failure.kind != "unschedulable":
            self.give_up(tracked, ("failed", failure.to_failure()))
        elif self.withdraw is not None:
            self.withdraw(tracked, job)
        else:
            self._give_up_alike(tracked, ("failed", failure.to_failure()))

    def _give_up_alike(self, tracked: TrackedJob, outcome: JobOutcome) -> None:
        """Give up a Job that no node takes, and those not submitted yet that ask for the same of the same nodes.

        One after the other, a few at a time, each would wait for as long.
        """
        cell = tracked.repeat.planned.cell
        alike = [
            other
            for other in self.jobs
            if other.state == "to-submit"
            and other.node_kind == tracked.node_kind
            and (other.repeat.planned.cell.num_gpus, other.repeat.planned.cell.tenants) == (cell.num_gpus, cell.tenants)
        ]
        for other in (tracked, *alike):
            self.give_up(other, outcome)


def _lacks_pod(job: JobStatus) -> bool:
    return not (job.num_active or job.num_ready or job.is_suspended)


def _note_no_pod(tracked: TrackedJob, now: float) -> float:
    tracked.no_pod_since = now if tracked.no_pod_since is None else tracked.no_pod_since
    return tracked.no_pod_since
