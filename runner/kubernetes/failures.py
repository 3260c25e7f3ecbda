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
pod are explained in the words of the Job controller: all of them by one list of events, however many they are.
"""

import math
import re
import time
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import partial
from http import HTTPStatus
from typing import Any

from bench.errors import (
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
from runner.kubernetes.connection import ApiError, Connection
from runner.kubernetes.names import make_path
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

STATUSES: dict[FailureKind, Status] = {"out-of-memory": "oom", "timeout": "timeout", "preempted": "preempted"}
"""Of the record of a cell that failed so; `failed` for every other kind."""


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
    waits_for: str = ""
    """What the Job waits for, where the kind does not say it: the start of a pod, by its uid, NO_POD and the like."""
    ask_after: float = math.inf
    """After how many seconds it is asked whether anybody gives a reason."""

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
    """Return in one line why the pod's node could not have measured any cell; empty if it could."""
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


def explain_job(job: JobStatus, pods: Sequence[PodStatus], store_url: str, start_problem: str = "") -> Failure:
    """Return why a finished Job has no record; `start_problem`: what the kubelet said last of a pod that never ran."""
    pod = choose_decisive_pod(pods)
    code, tail = (pod.exit_code, hide_secrets(pod.end_message)) if pod else (None, "")

    def fail(kind: FailureKind, message: str, **fields: Any) -> Failure:
        return Failure(kind=kind, message=message, **({"exit_code": code, "stderr_tail": tail} | fields))

    if job.end == "complete":
        message = f"the container ended well and left no result that counts in {store_url}; is it the same store?"
        return fail("exit", message, exit_code=0)
    verdict = None if pod is None else classify(pod)
    if verdict is not None and verdict.kind == "killed":
        return fail("killed", verdict.message)
    if pod is not None and pod.end_reason == OUT_OF_MEMORY:
        message = "killed by the kernel's OOM killer: the cell needs more memory than its container may take"
        return fail("out-of-memory", message)
    if pod is not None and pod.pod_reason == DEADLINE and not pod.has_run:
        message = f"the pod did not start before its deadline: {start_problem or pod.pod_message}"
        return fail("infrastructure", message, stderr_tail="")
    if DEADLINE in (job.reason, pod.end_reason if pod else ""):
        message = pod.end_message if pod and pod.end_reason == DEADLINE else job.message
        return fail("timeout", f"ended by its deadline: {message}", exit_code=None)
    if pod is None or code is None:
        return fail("infrastructure", _describe_job(job, pod))
    if code > SIGNAL_BASE and BAD_ALLOC not in tail and pod.end_reason not in NOT_STARTED:
        name = name_signal(code - SIGNAL_BASE)
        hint = ", perhaps by the kernel for lack of memory" if code == EXIT_SIGKILL else ""
        cause = find_interruption(pod)
        return fail("killed", f"ended by {name}{f': {cause}' if cause else hint}", signal=name)
    return fail(*_explain_exit(pod, code, tail))


def _explain_exit(pod: PodStatus, code: int, tail: str) -> tuple[FailureKind, str]:
    if BAD_ALLOC in tail:
        return "out-of-memory", f"C++ got no memory ({BAD_ALLOC}), and the framework ended the process"
    if code == EXIT_USER_ERROR:
        last = find_last_error(tail) or "the order or the store is wrong; the log says nothing more"
        return "bad-configuration", last
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


ASK_SECONDS = 10.0
"""What nobody gives a reason of for so long is worth asking about: a pod that is being started, a Job without a pod."""
MAX_PAUSE_SECONDS = 60.0
"""Between two requests, which are ASK_SECONDS apart at first."""
UNSEEN_SECONDS = 60.0
"""A Job that was created and that the informer has not reported for so long counts as missing."""
WARN_SECONDS = 10.0
"""A pod that waits for so long, while no cell of its pool runs, is worth a warning."""
NO_POD = "a pod"
FAILED_CREATE = "FailedCreate"
"""The reason of the Job controller's events about pods that it could not create."""
COUNTED_PODS = "count/pods"
"""The resource of a quota on pods of all phases; `pods` are those that have not ended."""
JOB_NAME_LABEL = "batch.kubernetes.io/job-name"
STARTING_REASONS = frozenset({"", "ContainerCreating", "PodInitializing"})
# Those of other moments of a pod's life, and of a Job's. `Pulling` stays: what came before it is over.
_OTHER_REASONS = (
    *("FailedScheduling", "Scheduled", "Pulled", "Created", "Started", "Killing"),
    *("SuccessfulCreate", "SuccessfulDelete", "Completed"),
)
# Warnings that the kubelet gives at every start of a pod on nodes that have more name servers or search domains than it
# passes on, or no cluster DNS; the pod starts (pkg/kubelet/network/dns/dns.go,
# https://github.com/kubernetes/kubernetes/issues/126585). Given again at each attempt, they would hide why it failed.
_HARMLESS_REASONS = ("DNSConfigForming", "MissingClusterDNS")


def is_starting(pod: PodStatus) -> bool:
    return pod.phase == "Pending" and bool(pod.node) and pod.waiting_reason in STARTING_REASONS


def read_reasons(connection: Connection, namespace: str) -> dict[str, str]:
    """Return what was said last of pods that do not start (by the pod's uid) or were not created (by the Job's name).

    What was said of a pod counts only if it was a warning. Return nothing if the user may not read events.
    """
    selector = ",".join(f"reason!={reason}" for reason in _OTHER_REASONS + _HARMLESS_REASONS)
    try:
        events = connection.list_items(make_path(namespace, "events"), fieldSelector=selector)
    except ApiError as error:
        if error.status == HTTPStatus.FORBIDDEN:
            return {}
        raise
    said: dict[str, str] = {}
    for event in sorted(events, key=_find_time):
        about, reason, message = event["involvedObject"], event.get("reason", ""), str(event.get("message", ""))
        if about.get("kind") == "Pod":
            words = f"{reason}: {' '.join(message.split())}".strip(": ")
            said[about.get("uid", "")] = words if event.get("type") == "Warning" else ""
        elif reason == FAILED_CREATE:
            said[about.get("name", "")] = message
    return {name: words for name, words in said.items() if words}


def _find_time(event: dict[str, Any]) -> str:
    """Return when something was last seen to happen; a series of events has a time of its own."""
    series = event.get("series") or {}
    times = (series.get("lastObservedTime"), event.get("lastTimestamp"), event.get("eventTime"))
    return max(str(time or "") for time in times)


class PendingPods:
    """Watches the Jobs in flight whose pod does not run; asks about all at once, and less often with time."""

    def __init__(self, run: OngoingRun) -> None:
        self.run = run
        self._last_progress: defaultdict[str, float] = defaultdict(time.monotonic)
        """When a cell last ran or ended, by the kind of nodes that it needs."""
        self._said: dict[str, str] = {}
        """The last answer of read_reasons; empty while there is nothing to ask."""
        self._pause_seconds = self._next_request = 0.0

    @property
    def is_room_needed(self) -> bool:
        """Whether a quota counts pods that have ended, and leaves no room for one: finished Jobs are to be deleted."""
        return any("exceeded quota" in each and COUNTED_PODS in each for each in self._said.values())

    def note_progress(self, tracked: TrackedJob, job: JobStatus) -> None:
        """Remember that cells which need the same nodes get on, if the Job runs or has ended."""
        if job.num_ready or job.end:
            self._last_progress[tracked.node_kind] = time.monotonic()

    def check(self) -> list[tuple[TrackedJob, Verdict]]:
        """Return the Jobs in flight that are waited for no longer, and why; to be called about once a second."""
        now, ended, is_asked = time.monotonic(), list[tuple[TrackedJob, Verdict]](), False
        in_flight = [tracked for tracked in self.run.jobs.list_unfinished() if tracked.state == "in-flight"]
        for tracked in in_flight:
            if tracked.job is not None:
                self.note_progress(tracked, tracked.job)
        for tracked in in_flight:
            verdict = self.explain(tracked)
            waiting_for = "" if verdict is None else verdict.waits_for or verdict.kind
            if waiting_for != tracked.waiting_for:
                tracked.waiting_for, tracked.waiting_since = waiting_for, now
            if verdict is not None:
                seconds = now - tracked.waiting_since
                is_asked |= seconds >= verdict.ask_after or tracked.name in self._said
                if self._has_waited(tracked, verdict, seconds):
                    ended.append((tracked, verdict))
        self._ask(now, is_needed=is_asked)
        return ended

    def explain(self, tracked: TrackedJob) -> Verdict | None:
        """Return why no pod of a Job runs, without a message where nobody says why; None: it waits for nothing."""
        job = tracked.job
        pending = (pod for pod in tracked.pods.values() if pod.phase == "Pending")
        pod = max(pending, key=lambda pod: pod.created_at, default=None)
        if job is None:
            return Verdict(kind="infrastructure", message="", patience=UNSEEN_SECONDS, waits_for="the Job")
        if job.num_ready or job.is_suspended:
            return None
        if pod is None:
            return None if job.num_active else self._explain_no_pod(tracked, job)
        if pod.unschedulable:
            patience = self.run.bounds.unschedulable_seconds
            return Verdict(kind="unschedulable", message=pod.unschedulable, patience=patience)
        if (verdict := classify(pod)) is not None and verdict.node_fault:
            return verdict
        if is_starting(pod):
            message = self._said.get(pod.uid, "")
            patience = self.run.renderer.profile.start_seconds if message else math.inf
            return Verdict(
                kind="infrastructure", message=message, patience=patience, waits_for=pod.uid, ask_after=ASK_SECONDS
            )
        if pod.waiting_reason not in WAITING:
            return None
        kind, patience = WAITING[pod.waiting_reason]
        if kind == "bad-image" and PERMANENT_IMAGE_ERROR.search(pod.waiting_message):
            patience = 0.0
        message = f"{pod.waiting_reason}: {pod.waiting_message}".rstrip(": ")
        return Verdict(kind=kind, message=message, patience=patience)

    def _explain_no_pod(self, tracked: TrackedJob, job: JobStatus) -> Verdict:
        """Return why a Job has no pod. One of which nobody says why is not given up for that."""
        pod = tracked.running_pod
        if job.num_terminating and pod and pod.deleted_at and pod.deleted_at < datetime.now(UTC):
            message = (
                f"pod {pod.name} should have ended by {pod.deleted_at:%Y-%m-%dT%H:%M:%SZ}, but node {pod.node} does "
                f"not say that it has; if that machine is lost, `kubectl delete node {pod.node}`"
            )
            return Verdict(kind="preempted", message=message)
        refusal = self._said.get(tracked.name, "")
        if "exceeded quota" in refusal:
            return Verdict(kind="unschedulable", message=refusal, patience=self.run.bounds.unschedulable_seconds)
        if refusal:
            return Verdict(kind="bad-configuration", message=refusal, patience=CONFIGURATION_SECONDS)
        if job.num_failed_pods or job.num_terminating:
            # The Job controller pauses before the next pod, or awaits the end of the first.
            return Verdict(kind="infrastructure", message="", waits_for="the next pod", ask_after=UNEXPLAINED_SECONDS)
        return Verdict(kind="bad-configuration", message=UNEXPLAINED, waits_for=NO_POD, ask_after=ASK_SECONDS)

    def _has_waited(self, tracked: TrackedJob, verdict: Verdict, seconds: float) -> bool:
        """Return whether a Job has waited for too long for the same; warn before that."""
        if verdict.kind == "unschedulable":
            # While others run that need the same nodes, a pod that no node takes merely waits for its turn.
            seconds = min(seconds, time.monotonic() - self._last_progress[tracked.node_kind])
        warn_after = UNEXPLAINED_SECONDS if verdict.waits_for == NO_POD else WARN_SECONDS
        if verdict.message and seconds >= min(warn_after, verdict.patience):
            slug = tracked.repeat.planned.cell.slug
            message = f"{verdict.to_failure().message} (waiting: {slug}, for example)"
            self.run.dispatcher.warn(message, verdict.dedup_key)
        return seconds >= verdict.patience

    def _ask(self, now: float, *, is_needed: bool) -> None:
        if not is_needed:
            self._said, self._pause_seconds = {}, 0.0
        elif not self._pause_seconds or now >= self._next_request:
            self._pause_seconds = min(2 * self._pause_seconds or ASK_SECONDS, MAX_PAUSE_SECONDS)
            self._next_request = now + self._pause_seconds
            read = partial(read_reasons, self.run.connection, self.run.namespace)
            self.run.dispatcher.request(read, self._keep)

    def _keep(self, said: dict[str, str]) -> None:
        self._said = said
