"""Why pods of Jobs in flight do not run: asked for in events, warned of, and given up after too long.

While a pod is in `ContainerCreating`, its status says nothing more; its events do (`FailedCreatePodSandBox`,
`FailedMount`, `FailedAttachVolume`, `FailedPrepareDynamicResources`, ...: pkg/kubelet/events/event.go).

Jobs without a pod are explained in the words of the Job controller, or of the node that does not let a pod go: all of
them by one list of events and one of pods, however many they are.
"""

import time
from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import partial
from typing import Any

from runner.kubernetes.connection import Connection
from runner.kubernetes.failures import Verdict, explain_waiting, find_pending_pod
from runner.kubernetes.objects import JobStatus, PodStatus
from runner.kubernetes.tracked_jobs import OngoingRun, TrackedJob

STARTING_SECONDS = 10.0
"""A pod that is being started for so long is worth asking about, and telling of."""
NO_POD_SECONDS = 20.0
"""A Job that has been without a pod for so long is worth asking about."""
MAX_PAUSE_SECONDS = 60.0
"""Between two requests, which are STARTING_SECONDS or NO_POD_SECONDS apart at first."""
UNSEEN_SECONDS = 60.0
"""A Job that was created and that the informer has not reported for so long counts as missing."""
WARN_SECONDS = 10.0
"""A pod that waits for so long, while no cell of its pool runs, is worth a warning."""
FAILED_CREATE = "FailedCreate"
"""The reason of the Job controller's events about pods that it could not create."""
COUNTED_PODS = "count/pods"
"""The resource of a quota on pods of all phases; `pods` are those that have not ended."""
JOB_NAME_LABEL = "batch.kubernetes.io/job-name"
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


def read_missing_pod_reasons(connection: Connection, namespace: str) -> dict[str, str]:
    """Return by the name of Jobs why a pod could last not be created. ApiError if events may not be read."""

    def read(event: dict[str, Any]) -> tuple[str, str, str]:
        return _find_time(event), event["involvedObject"].get("name", ""), str(event.get("message", ""))

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


@dataclass(kw_only=True)
class Pause:
    """Spaces out the requests about something that lasts: twice as far apart each time."""

    first_seconds: float
    _seconds: float = 0.0
    """0: there was nothing to ask about when that was last checked."""
    _until: float = 0.0

    def is_over(self, now: float, *, is_needed: bool) -> bool:
        """Return whether it is time to ask; `is_needed`: there is something to ask about."""
        if not is_needed:
            self._seconds = 0.0
        if not is_needed or (self._seconds and now < self._until):
            return False
        self._seconds = min(2 * self._seconds or self.first_seconds, MAX_PAUSE_SECONDS)
        self._until = now + self._seconds
        return True


@dataclass(kw_only=True)
class PendingPods:
    """Watches the Jobs in flight whose pod does not run; asks about all at once, and only while there are such."""

    run: OngoingRun
    is_room_needed: bool = False
    """A quota counts pods that have ended, and leaves no room for one: finished Jobs are to be deleted."""
    _last_progress: defaultdict[str, float] = field(default_factory=lambda: defaultdict(time.monotonic), repr=False)
    """When a cell last ran or ended, by the kind of nodes that it needs."""
    _starting_since: dict[str, float] = field(default_factory=dict, repr=False)
    """When (time.monotonic) a pod was first seen being started, by its uid."""
    _start_problems: dict[str, str] = field(default_factory=dict, repr=False)
    """What keeps pods from starting, by their uid."""
    _start_pause: Pause = field(default_factory=partial(Pause, first_seconds=STARTING_SECONDS), repr=False)
    _missing_pause: Pause = field(default_factory=partial(Pause, first_seconds=NO_POD_SECONDS), repr=False)

    def note_progress(self, tracked: TrackedJob, job: JobStatus) -> None:
        """Remember that cells which need the same nodes get on, if the Job runs or has ended."""
        if job.num_ready or job.end:
            self._last_progress[tracked.node_kind] = time.monotonic()

    def check(self) -> list[tuple[TrackedJob, Verdict | None]]:
        """Return the Jobs in flight that are waited for no longer, and why; to be called about once a second.

        None in place of a reason: the Job was created, and never reported.
        """
        now, ended = time.monotonic(), list[tuple[TrackedJob, Verdict | None]]()
        in_flight = [tracked for tracked in self.run.jobs.list_unfinished() if tracked.state == "in-flight"]
        self._check_starts((pod for tracked in in_flight for pod in tracked.pods.values()), now)
        for tracked in in_flight:
            if tracked.job is not None:
                self.note_progress(tracked, tracked.job)
        lacking = []
        for tracked in in_flight:
            seconds = _measure_lack(tracked, now)
            if tracked.job is None:
                if seconds >= UNSEEN_SECONDS:
                    tracked.forget_no_pod()
                    ended.append((tracked, None))
                continue
            if seconds >= NO_POD_SECONDS:
                lacking.append(tracked)
            verdict = self._find_reason(tracked, tracked.job)
            if verdict is None:
                tracked.forget_waiting()
            elif self._has_waited(tracked, verdict, now):
                ended.append((tracked, verdict))
        if self._missing_pause.is_over(now, is_needed=bool(lacking)):
            self._ask_for_missing(lacking)
        return ended

    def _find_reason(self, tracked: TrackedJob, job: JobStatus) -> Verdict | None:
        """Return why the pod of a Job does not run; None if it does, is not to run yet, or nobody says why."""
        if job.num_ready or job.is_suspended:
            return None
        verdict = explain_waiting(tracked, unschedulable_seconds=self.run.unschedulable_seconds)
        pod = find_pending_pod(tracked)
        if verdict is not None or pod is None or pod.uid not in self._start_problems:
            return verdict
        return Verdict(
            kind="infrastructure",
            message=self._start_problems[pod.uid],
            patience=self.run.renderer.profile.start_seconds,
            since=self._starting_since.get(pod.uid),
        )

    def _has_waited(self, tracked: TrackedJob, verdict: Verdict, now: float) -> bool:
        """Return whether a Job has waited for too long for the same; warn before that."""
        if verdict.kind != tracked.waiting_for or tracked.waiting_since is None:
            tracked.waiting_for, tracked.waiting_since = verdict.kind, verdict.since or now
        # While others run that need the same nodes, a pod that no node takes merely waits for its turn.
        is_in_turn = verdict.kind == "unschedulable"
        since = max(tracked.waiting_since, self._last_progress[tracked.node_kind] if is_in_turn else 0.0)
        if now - since >= min(WARN_SECONDS, verdict.patience):
            slug = tracked.repeat.planned.cell.slug
            message = f"{verdict.to_failure().message} (waiting: {slug}, for example)"
            self.run.dispatcher.warn(message, verdict.dedup_key)
        return now - since >= verdict.patience

    def _check_starts(self, pods: Iterable[PodStatus], now: float) -> None:
        """Note the pods that are being started now, and ask for their events if one takes long."""
        self._starting_since = {pod.uid: self._starting_since.get(pod.uid, now) for pod in pods if is_starting(pod)}
        is_slow = any(now - since >= STARTING_SECONDS for since in self._starting_since.values())
        if self._start_pause.is_over(now, is_needed=is_slow):
            read = partial(read_start_problems, self.run.connection, self.run.namespace)
            self.run.dispatcher.request(read, self._keep_start_problems)
        elif not is_slow:
            self._start_problems = {}

    def _keep_start_problems(self, problems: dict[str, str]) -> None:
        self._start_problems = problems

    def _ask_for_missing(self, lacking: Sequence[TrackedJob]) -> None:
        """Ask why these Jobs have no pod: the Job controller, or of a pod that is being deleted its node."""
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
            self.is_room_needed |= any("exceeded quota" in each and COUNTED_PODS in each for each in reasons.values())

        run = self.run
        if ending:
            read = partial(read_overdue_pods, run.connection, run.namespace, run.labels)
            run.dispatcher.request(read, keep_terminations)
        if others:
            run.dispatcher.request(partial(read_missing_pod_reasons, run.connection, run.namespace), keep_reasons)


def _measure_lack(tracked: TrackedJob, now: float) -> float:
    """Return for how many seconds a Job has been seen to have no pod, or not been seen at all."""
    job = tracked.job
    if job is not None and (job.num_active or job.num_ready or job.is_suspended):
        tracked.forget_no_pod()
        return 0.0
    if tracked.no_pod_since is None:
        tracked.no_pod_since = now
    return now - tracked.no_pod_since
