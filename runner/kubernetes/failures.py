"""Why pods and Jobs ended, or do not start, in the words of who says so, and what follows for the repeat.

A Job's podFailurePolicy sees the exit code and the condition DisruptionTarget alone. The condition says that a pod was
preempted, drained, evicted since its node ran short, lost with its node, or ended by a graceful shutdown of the node:
https://kubernetes.io/docs/concepts/workloads/pods/disruptions/#pod-disruption-conditions
A kubelet sets it for none of these (k8s.io/kubernetes, pkg/kubelet): a pod that exceeds its own limit of local storage
(localStorageEviction in eviction/eviction_manager.go, `Evicted`), a pod past its activeDeadlineSeconds
(active_deadline.go, `DeadlineExceeded`), a pod that it does not admit (lifecycle/predicate.go, `OutOfcpu`,
`UnexpectedAdmissionError`, ...). So `status.reason` of the pod is read too.

Which ends of a pod are final is decided by the Job's podFailurePolicy: see session.py.

While a pod is in `ContainerCreating`, its status says nothing more; its events do (`FailedCreatePodSandBox`,
`FailedMount`, `FailedAttachVolume`, `FailedPrepareDynamicResources`, ...: pkg/kubelet/events/event.go). Jobs without a
pod are explained in the words of the Job controller, or of the node that does not let a pod go: all of them by one list
of events and one of pods, however many they are.
"""

import math
import re
import time
from collections import defaultdict
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import partial
from typing import Any

from bench.exit_codes import (
    EXIT_COMMAND_NOT_EXECUTABLE,
    EXIT_COMMAND_NOT_FOUND,
    EXIT_NODE_FAULT,
    EXIT_RESULT_IN_LOG,
    EXIT_SIGKILL,
    EXIT_TRY_AGAIN,
    EXIT_USER_ERROR,
    INTERRUPTED_EXIT_CODES,
)
from bench.redaction import hide_secrets
from bench.schema import Failure, FailureKind, Status
from runner.kubernetes.connection import Connection
from runner.kubernetes.objects import JobStatus, PodStatus
from runner.kubernetes.tracked_jobs import OngoingRun, TrackedJob
from runner.processes import BAD_ALLOC, name_signal

EVICTED = "Evicted"
DEADLINE = "DeadlineExceeded"
OUT_OF_MEMORY = "OOMKilled"
# The reasons with which a kubelet, or the controller of a lost node, ends a pod that it had admitted:
# pkg/kubelet/nodeshutdown (`Terminated`; `Shutdown` before 1.22), preemption/preemption.go, pkg/controller/util/node.
TAKEN_DOWN = frozenset({EVICTED, DEADLINE, "Terminated", "Shutdown", "NodeShutdown", "Preempting", "NodeLost"})
# Of localStorageEviction: pkg/kubelet/eviction/helpers.go, emptyDirMessageFmt and its neighbours.
_OWN_LIMIT = re.compile(r"exceeds the (total )?limit|exceeded its local ephemeral storage limit")
# The reasons that a container runtime gives if the program could not be started.
NOT_STARTED = frozenset({"StartError", "ContainerCannotRun"})
# What the runtime says where NVIDIA's part of it fails: NVIDIA/nvidia-container-toolkit#183, #223 ("initialization
# error: nvml error: driver not loaded", "device error: ...: unknown device"), and its CDI hooks.
# Where devices are injected by CDI (Container Device Interface), the node lacks the description of a device that its
# device plugin has given to the pod: "unresolvable CDI devices" and "failed to inject devices" are of
# cncf-tags/container-device-interface, pkg/cdi/cache.go, and "CDI device injection failed" stands before them in
# containerd (pkg/cdi/oci_opt.go) and CRI-O (internal/factory/container/device.go), "failed to inject CDI devices" in
# NVIDIA's runtime (NVIDIA/nvidia-container-toolkit#1239, #1537, seen with RKE2; gpustack/gpustack#4130 with kubeadm).
_CDI = r"unresolvable CDI devices|CDI device injection failed|failed to inject CDI devices"
_GPU_RUNTIME = re.compile(rf"nvidia-container-(cli|runtime)|nvidia-ctk|nvml error|{_CDI}", re.IGNORECASE)
# The kubelet's reason for a container that its runtime did not create; the pod stays pending, and it tries again:
# ErrCreateContainer in pkg/kubelet/kuberuntime/kuberuntime_container.go. containerd and CRI-O inject CDI devices then.
NOT_CREATED = "CreateContainerError"
_NODE_FAULT_CODE = re.compile(rf"failed with exit code {EXIT_NODE_FAULT} ")
_ERROR_LINE = re.compile(r"^error: (.*)$", re.MULTILINE)

SIGNAL_BASE = 128
"""Exit codes above it are those of programs that a signal ended: 128 plus its number."""
IMAGE_SECONDS = 300.0
"""How long a registry that does not answer is waited for."""
CONFIGURATION_SECONDS = 30.0
"""How long something is waited for that a pod names and that does not exist, such as a Secret."""
UNEXPLAINED_SECONDS = 60.0
"""A Job without a pod for so long, and without an event that says why, is worth a warning."""
# https://kubernetes.io/docs/concepts/containers/images/, and the kubelet's errors in pkg/kubelet/images/types.go
WAITING: dict[str, tuple[FailureKind, float]] = {
    "InvalidImageName": ("bad-image", 0.0),
    "ErrImageNeverPull": ("bad-image", 0.0),
    **dict.fromkeys(
        ("ErrImagePull", "ImagePullBackOff", "ImageInspectError", "RegistryUnavailable"), ("bad-image", IMAGE_SECONDS)
    ),
    **dict.fromkeys(("CreateContainerConfigError", NOT_CREATED), ("bad-configuration", CONFIGURATION_SECONDS)),
}
"""Why a container waits: the kind of failure that it becomes, and for how long it is waited. Others pass."""
# In a message about an image: every later attempt ends the same way.
PERMANENT_IMAGE_ERROR = re.compile(r"not found|unauthorized|denied|forbidden|manifest unknown", re.IGNORECASE)
_PARTICULARS = re.compile(r'pods? "?[^" ]+"?|\d+')
UNEXPLAINED = (
    "its Job has no pod, and no event says why; look at the Job's `parallelism` and `managedBy`, which somebody may "
    "have changed, at its finalizers if it was deleted, and at the Job controller"
)
_TITLES: dict[FailureKind, str] = {
    "unschedulable": "no node took the pod",
    "preempted": "its node may be lost",
    "bad-image": "the image cannot be pulled",
    "bad-configuration": "the pod cannot be created",
    "infrastructure": "the node does not start the pod",
}

JobOutcome = tuple[Status, Failure]


@dataclass(frozen=True, kw_only=True)
class Verdict:
    """Why a pod ended, or does not start, where that is not the cell's own end."""

    kind: FailureKind
    message: str
    """In the words of the scheduler, the kubelet, the runtime or the Job controller."""
    retry: bool = False
    """The repeat is measured again, by another pod or Job, rather than given up."""
    node_fault: bool = False
    """Its node could not have measured any cell."""
    patience: float = math.inf
    """For how many seconds a pod that does not start is waited for."""
    since: float | None = None
    """When (time.monotonic) it began. None: when it was first reported."""

    def to_failure(self) -> Failure:
        return Failure(kind=self.kind, message=f"{_TITLES[self.kind]}: {self.message}")

    @property
    def dedup_key(self) -> str:
        """The message without the names and numbers that differ from pod to pod and from moment to moment."""
        if self.kind == "bad-image":  # its name and version matter
            return f"{self.kind} {self.message}"
        words = _PARTICULARS.sub("", self.message).split()
        return f"{self.kind} {' '.join(sorted(word.strip('[],.;') for word in words))}"  # a list has no order


def classify(pod: PodStatus) -> Verdict | None:
    """Return why a pod did not end by itself, or why its node cannot create it; None otherwise.

    It exceeded a limit of its own (`killed`, no retry), its node was at fault (`infrastructure`), or it was ended from
    outside (`preempted`).
    """
    if pod.phase == "Pending" and pod.waiting_reason == NOT_CREATED and _GPU_RUNTIME.search(pod.waiting_message):
        return _blame_node(f"{NOT_CREATED}: {find_last_line(pod.waiting_message)}")
    if pod.disruption:
        return Verdict(kind="preempted", message=pod.disruption, retry=True)
    if pod.phase != "Failed":
        return None
    # An evicted pod can have lost the status of its container (ContainerStatusUnknown), as if it had not run.
    if pod.pod_reason == EVICTED and _OWN_LIMIT.search(pod.pod_message):
        return Verdict(kind="killed", message=f"evicted by the kubelet: {pod.pod_message.strip()}")
    if pod.exit_code == EXIT_NODE_FAULT:
        return _blame_node(find_last_error(pod.end_message) or "the log of its container says nothing")
    if pod.end_reason in NOT_STARTED and _GPU_RUNTIME.search(pod.end_message):
        return _blame_node(f"{pod.end_reason}: {find_last_line(pod.end_message)}")
    # A kubelet may be short of something just for a moment. No container was begun.
    if not pod.has_run and pod.node and pod.pod_reason and pod.pod_reason not in TAKEN_DOWN - {EVICTED, "NodeShutdown"}:
        return _blame_node(f"the kubelet refused the pod: {pod.pod_reason}: {pod.pod_message}".rstrip(": "))
    cause = _explain_taking_down(pod)
    return Verdict(kind="preempted", message=cause, retry=True) if cause else None


def _explain_taking_down(pod: PodStatus) -> str:
    """Return who ended a pod that failed, and that its node could run; empty if nobody did."""
    if pod.pod_reason in TAKEN_DOWN:
        return f"{pod.pod_reason}: {pod.pod_message}".rstrip(": ")
    if pod.exit_code in INTERRUPTED_EXIT_CODES:
        return "the pod was deleted" if pod.is_deleted else "SIGTERM, from whom is not known"
    if pod.exit_code == EXIT_SIGKILL and pod.is_deleted and pod.end_reason != OUT_OF_MEMORY:
        return "the pod was deleted, and killed when its grace period was over"
    return ""


def _blame_node(reason: str) -> Verdict:
    # Its runtime may only wait for a device plugin that starts again.
    return Verdict(kind="infrastructure", message=reason, retry=True, node_fault=True, patience=CONFIGURATION_SECONDS)


def find_node_fault(pod: PodStatus) -> str:
    """Return in one line why the pod's node could not have measured any cell; empty if the node was not at fault."""
    verdict = classify(pod)
    return verdict.message if verdict is not None and verdict.node_fault else ""


def find_interruption(pod: PodStatus) -> str:
    """Return why a pod was ended from outside, in the words of who did it; empty if it was not."""
    verdict = classify(pod)
    return verdict.message if verdict is not None and verdict.retry and not verdict.node_fault else ""


def judge_job(job: JobStatus, pod: PodStatus | None) -> Verdict | None:
    """Return why a Job failed that does not speak against its cell: the repeat is to be measured again.

    Its node was at fault, or its last pod was ended from outside in a way that its rules do not see. `pod`: the one
    that decided; None: none is left.
    """
    if job.end != "failed" or job.reason == DEADLINE:
        return None
    if pod is None:
        return _blame_node(find_last_line(job.message)) if _NODE_FAULT_CODE.search(job.message) else None
    verdict = classify(pod)
    if verdict is None or not verdict.retry or (pod.pod_reason == DEADLINE and not verdict.node_fault):
        return None
    return verdict


def choose_decisive_pod(pods: Sequence[PodStatus]) -> PodStatus | None:
    """Return the newest pod that was not disrupted and whose container ended, else the newest of all, or None."""
    return max(pods, key=lambda pod: (not pod.disruption, pod.exit_code is not None, pod.created_at), default=None)


def find_last_error(tail: str) -> str:
    """Return the message of `python -m bench` about an error that ended it, else the last line of its log, if any."""
    found = _ERROR_LINE.findall(tail)
    return found[-1] if found else find_last_line(tail)


def find_last_line(text: str) -> str:
    lines = text.strip().splitlines()
    return lines[-1] if lines else ""


def explain_job(job: JobStatus, pods: Sequence[PodStatus], store_url: str, start_problem: str = "") -> JobOutcome:
    """Return status and reason of a finished Job whose repeat has no record in the store.

    `start_problem`: what the kubelet said last of a pod that never ran.
    """
    pod = choose_decisive_pod(pods)
    code, tail = (pod.exit_code, hide_secrets(pod.end_message)) if pod else (None, "")

    def fail(kind: FailureKind, message: str, status: Status = "failed", **fields: Any) -> JobOutcome:
        return status, Failure(kind=kind, message=message, **({"exit_code": code, "stderr_tail": tail} | fields))

    if job.end == "complete":
        message = f"the container ended well and left no result that counts in {store_url}; is it the same store?"
        return fail("exit", message, exit_code=0)
    verdict = None if pod is None else classify(pod)
    if verdict is not None and verdict.kind == "killed":
        return fail("killed", verdict.message)
    if pod is not None and pod.end_reason == OUT_OF_MEMORY:
        message = "killed by the kernel's OOM killer: the cell needs more memory than its container may take"
        return fail("out-of-memory", message, "oom")
    if pod is not None and pod.pod_reason == DEADLINE and not pod.has_run:
        message = f"the pod did not start before its deadline: {start_problem or pod.pod_message}"
        return fail("infrastructure", message, stderr_tail="")
    if DEADLINE in (job.reason, pod.end_reason if pod else ""):
        message = pod.end_message if pod and pod.end_reason == DEADLINE else job.message
        return fail("timeout", f"ended by its deadline: {message}", "timeout", exit_code=None)
    if pod is None or code is None:
        return fail("infrastructure", _describe_job(job, pod))
    if code > SIGNAL_BASE and BAD_ALLOC not in tail and pod.end_reason not in NOT_STARTED:
        name = name_signal(code - SIGNAL_BASE)
        hint = ", perhaps by the kernel for lack of memory" if code == EXIT_SIGKILL else ""
        cause = find_interruption(pod)
        return fail("killed", f"ended by {name}{f': {cause}' if cause else hint}", signal=name)
    kind, message = _explain_exit(pod, code, tail)
    return fail(kind, message, "oom" if kind == "out-of-memory" else "failed")


def _explain_exit(pod: PodStatus, code: int, tail: str) -> tuple[FailureKind, str]:
    if BAD_ALLOC in tail:
        return "out-of-memory", f"C++ got no memory ({BAD_ALLOC}), and the framework ended the process"
    if code == EXIT_USER_ERROR:
        return "bad-configuration", find_last_error(
            tail
        ) or "the order or the store is wrong; the log says nothing more"
    if code == EXIT_TRY_AGAIN:
        last = find_last_error(tail) or "the log says nothing"
        return "infrastructure", f"not measured, however often it was tried: {last}"
    if code == EXIT_RESULT_IN_LOG:
        return "infrastructure", "the record could not be stored, and its pod's log cannot be read or no longer has it"
    if code in (EXIT_COMMAND_NOT_EXECUTABLE, EXIT_COMMAND_NOT_FOUND) or pod.end_reason in NOT_STARTED:
        return "bad-image", f"the image could not be run: {find_last_line(tail) or pod.end_reason}"
    return "exit", f"ended with exit code {code} and left no result"


def _describe_job(job: JobStatus, pod: PodStatus | None) -> str:
    message = f"the Job failed ({job.reason or 'no reason given'}): {job.message or 'no message'}"
    if pod is None:
        return f"{message}; none of its pods is left"
    last = pod.disruption or f"{pod.end_reason} {pod.end_message}".strip() or pod.phase
    return f"{message}; its last pod: {find_last_line(last)}"


def has_only_waited(job: JobStatus, pods: Sequence[PodStatus], timeout_seconds: float) -> bool:
    """Return whether a Job's deadline ended it before its pod had run for `timeout_seconds`, as the pod had to wait.

    The Job's `activeDeadlineSeconds` counts from its start, with the time that its pods wait for a node or were
    preempted; the pod's counts from when its node took it. Only the latter is a deadline of the cell.
    https://kubernetes.io/docs/concepts/workloads/controllers/job/#job-termination-and-cleanup
    """
    if job.reason != DEADLINE:
        return False
    pod = choose_decisive_pod(pods)
    if pod is None or pod.started_at is None or job.ended_at is None:
        return True
    return pod.end_reason != DEADLINE and (job.ended_at - pod.started_at).total_seconds() < timeout_seconds


def find_pending_pod(tracked: TrackedJob) -> PodStatus | None:
    pending = (pod for pod in tracked.pods.values() if pod.phase == "Pending")
    return max(pending, key=lambda pod: pod.created_at, default=None)


def explain_waiting(
    tracked: TrackedJob, *, unschedulable_seconds: float, overdue: str = "", refusal: str = ""
) -> Verdict | None:
    """Return why the pod of a Job does not start; None if it does or its status and its Job give no reason yet.

    `overdue`: why a former pod that should have ended by now is still there. `refusal`: why none could be created.
    """
    pod = find_pending_pod(tracked)
    if pod is None:
        return _explain_no_pod(tracked, unschedulable_seconds, overdue, refusal)
    if pod.unschedulable:
        return Verdict(kind="unschedulable", message=pod.unschedulable, patience=unschedulable_seconds)
    if (verdict := classify(pod)) is not None and verdict.node_fault:
        return verdict
    if pod.waiting_reason not in WAITING:
        return None
    kind, patience = WAITING[pod.waiting_reason]
    if kind == "bad-image" and PERMANENT_IMAGE_ERROR.search(pod.waiting_message):
        patience = 0.0
    message = f"{pod.waiting_reason}: {pod.waiting_message}".rstrip(": ")
    return Verdict(kind=kind, message=message, patience=patience)


def _explain_no_pod(tracked: TrackedJob, unschedulable_seconds: float, overdue: str, refusal: str) -> Verdict | None:
    """Return why a Job has no pod. One of which nobody says why is not given up for that.

    None where it had pods: the Job controller pauses before it replaces one that failed, and awaits the end of another.
    """
    job = tracked.job
    if overdue:
        return Verdict(kind="preempted", message=overdue)
    if refusal and "exceeded quota" in refusal:
        return Verdict(kind="unschedulable", message=refusal, patience=unschedulable_seconds)
    if refusal:
        return Verdict(kind="bad-configuration", message=refusal, patience=CONFIGURATION_SECONDS)
    has_had_pods = job is not None and bool(job.num_failed_pods or job.num_terminating)
    if has_had_pods or tracked.no_pod_since is None:
        return None
    if time.monotonic() - tracked.no_pod_since < UNEXPLAINED_SECONDS:
        return None
    return Verdict(kind="bad-configuration", message=UNEXPLAINED)


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
class Inquiry:
    """Asks about something that lasts, of all at once and twice as far apart each time, and keeps the answers."""

    run: OngoingRun
    first_seconds: float
    read: Callable[[], dict[str, str]]
    answers: dict[str, str] = field(default_factory=dict)
    """The last ones, by what was asked about; empty while there is nothing to ask."""
    _seconds: float = 0.0
    _until: float = 0.0

    def ask(self, now: float, *, is_needed: bool) -> None:
        if not is_needed:
            self.answers, self._seconds = {}, 0.0
        elif not self._seconds or now >= self._until:
            self._seconds = min(2 * self._seconds or self.first_seconds, MAX_PAUSE_SECONDS)
            self._until = now + self._seconds
            self.run.dispatcher.request(self.read, self._keep)

    def _keep(self, answers: dict[str, str]) -> None:
        self.answers = answers


class PendingPods:
    """Watches the Jobs in flight whose pod does not run; asks about all at once, and only while there are such."""

    def __init__(self, run: OngoingRun) -> None:
        self.run = run
        self._last_progress: defaultdict[str, float] = defaultdict(time.monotonic)
        """When a cell last ran or ended, by the kind of nodes that it needs."""
        self._starting_since: dict[str, float] = {}
        """When (time.monotonic) a pod was first seen being started, by its uid."""
        place = run.connection, run.namespace
        starts, refusals = partial(read_start_problems, *place), partial(read_missing_pod_reasons, *place)
        overdue = partial(read_overdue_pods, *place, run.labels)
        self._starts = Inquiry(run=run, first_seconds=STARTING_SECONDS, read=starts)
        self._refusals = Inquiry(run=run, first_seconds=NO_POD_SECONDS, read=refusals)
        self._overdue = Inquiry(run=run, first_seconds=NO_POD_SECONDS, read=overdue)

    @property
    def is_room_needed(self) -> bool:
        """Whether a quota counts pods that have ended, and leaves no room for one: finished Jobs are to be deleted."""
        return any("exceeded quota" in each and COUNTED_PODS in each for each in self._refusals.answers.values())

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
        starting = [pod.uid for tracked in in_flight for pod in tracked.pods.values() if is_starting(pod)]
        self._starting_since = {uid: self._starting_since.get(uid, now) for uid in starting}
        is_slow = any(now - since >= STARTING_SECONDS for since in self._starting_since.values())
        self._starts.ask(now, is_needed=is_slow)
        for tracked in in_flight:
            if tracked.job is not None:
                self.note_progress(tracked, tracked.job)
        lacking: list[JobStatus] = []
        for tracked in in_flight:
            seconds = _measure_lack(tracked, now)
            if tracked.job is None:
                if seconds >= UNSEEN_SECONDS:
                    tracked.no_pod_since = None
                    ended.append((tracked, None))
                continue
            if seconds >= NO_POD_SECONDS:
                lacking.append(tracked.job)
            verdict = self._find_reason(tracked, tracked.job)
            if verdict is None:
                tracked.forget_waiting()
            elif self._has_waited(tracked, verdict, now):
                ended.append((tracked, verdict))
        self._overdue.ask(now, is_needed=any(job.num_terminating for job in lacking))
        self._refusals.ask(now, is_needed=not all(job.num_terminating for job in lacking))
        return ended

    def _find_reason(self, tracked: TrackedJob, job: JobStatus) -> Verdict | None:
        """Return why the pod of a Job does not run; None if it does, is not to run yet, or nobody says why."""
        if job.num_ready or job.is_suspended:
            return None
        is_lacking = tracked.no_pod_since is not None
        verdict = explain_waiting(
            tracked,
            unschedulable_seconds=self.run.unschedulable_seconds,
            overdue=self._overdue.answers.get(tracked.name, "") if is_lacking else "",
            refusal=self._refusals.answers.get(tracked.name, "") if is_lacking else "",
        )
        pod = find_pending_pod(tracked)
        if verdict is not None or pod is None or pod.uid not in self._starts.answers:
            return verdict
        return Verdict(
            kind="infrastructure",
            message=self._starts.answers[pod.uid],
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


def _measure_lack(tracked: TrackedJob, now: float) -> float:
    """Return for how many seconds a Job has been seen to have no pod, or not been seen at all."""
    job = tracked.job
    if job is not None and (job.num_active or job.num_ready or job.is_suspended):
        tracked.no_pod_since = None
        return 0.0
    if tracked.no_pod_since is None:
        tracked.no_pod_since = now
    return now - tracked.no_pod_since
