"""Why pods and Jobs ended, or do not start, in the words of who says so, and what follows for the repeat.

A Job's podFailurePolicy sees the exit code and the condition DisruptionTarget alone. The condition says that a pod was
preempted, drained, evicted since its node ran short, lost with its node, or ended by a graceful shutdown of the node:
https://kubernetes.io/docs/concepts/workloads/pods/disruptions/#pod-disruption-conditions
A kubelet sets it for none of these (k8s.io/kubernetes, pkg/kubelet): a pod that exceeds its own limit of local storage
(localStorageEviction in eviction/eviction_manager.go, `Evicted`), a pod past its activeDeadlineSeconds
(active_deadline.go, `DeadlineExceeded`), a pod that it does not admit (lifecycle/predicate.go, `OutOfcpu`,
`UnexpectedAdmissionError`, ...). So `status.reason` of the pod is read too.

Which ends of a pod are final is decided by the Job's podFailurePolicy: see session.py.
"""

import math
import re
import time
from collections.abc import Sequence
from dataclasses import dataclass

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
from runner.kubernetes.objects import JobStatus, PodStatus
from runner.kubernetes.tracked_jobs import TrackedJob
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
    "have changed, and at the Job controller"
)
KEPT = (
    "its Job was deleted and is still there, kept by its finalizers ({finalizers}); its repeat is measured again when "
    "it is gone"
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
    if job.end == "complete":
        message = f"the container ended well but left no result in {store_url}; does it write to the same store?"
        return "failed", Failure(kind="exit", message=message, exit_code=0, stderr_tail=_tail(pod))
    verdict = None if pod is None else classify(pod)
    if pod is not None and verdict is not None and verdict.kind == "killed":
        message = verdict.message
        return "failed", Failure(kind="killed", message=message, exit_code=pod.exit_code, stderr_tail=_tail(pod))
    if pod is not None and pod.end_reason == OUT_OF_MEMORY:
        message = "killed by the kernel's OOM killer: the cell needs more memory than its container may take"
        return "oom", Failure(kind="out-of-memory", message=message, exit_code=pod.exit_code, stderr_tail=_tail(pod))
    if pod is not None and pod.pod_reason == DEADLINE and not pod.has_run:
        message = f"the pod did not start before its deadline: {start_problem or pod.pod_message}"
        return "failed", Failure(kind="infrastructure", message=message)
    if DEADLINE in (job.reason, pod.end_reason if pod else ""):
        message = pod.end_message if pod and pod.end_reason == DEADLINE else job.message
        return "timeout", Failure(kind="timeout", message=f"ended by its deadline: {message}", stderr_tail=_tail(pod))
    if pod is None or pod.exit_code is None:
        return "failed", Failure(kind="infrastructure", message=_describe_job(job, pod), stderr_tail=_tail(pod))
    return _explain_exit(pod, pod.exit_code)


def has_only_waited(job: JobStatus, pods: Sequence[PodStatus], timeout_seconds: float) -> bool:
    """Return whether a Job was ended by its deadline before its cell had its `timeout_seconds` to itself.

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


def _explain_exit(pod: PodStatus, code: int) -> JobOutcome:
    tail = _tail(pod)
    if BAD_ALLOC in tail:
        message = f"C++ got no memory ({BAD_ALLOC}), and the framework ended the process"
        return "oom", Failure(kind="out-of-memory", message=message, exit_code=code, stderr_tail=tail)
    if code == EXIT_USER_ERROR:
        message = find_last_error(tail) or "the order or the store is wrong; the log says nothing more"
        return "failed", Failure(kind="bad-configuration", message=message, exit_code=code, stderr_tail=tail)
    if code == EXIT_TRY_AGAIN:
        message = f"not measured, however often it was tried: {find_last_error(tail) or 'the log says nothing'}"
        return "failed", Failure(kind="infrastructure", message=message, exit_code=code, stderr_tail=tail)
    if code == EXIT_RESULT_IN_LOG:
        message = "the record could not be stored, and its pod's log cannot be read or no longer has it"
        return "failed", Failure(kind="infrastructure", message=message, exit_code=code, stderr_tail=tail)
    if code in (EXIT_COMMAND_NOT_EXECUTABLE, EXIT_COMMAND_NOT_FOUND) or pod.end_reason in NOT_STARTED:
        message = f"the image could not be run: {find_last_line(tail) or pod.end_reason}"
        return "failed", Failure(kind="bad-image", message=message, exit_code=code, stderr_tail=tail)
    if code > SIGNAL_BASE:
        name = name_signal(code - SIGNAL_BASE)
        hint = ", perhaps by the kernel for lack of memory" if code == EXIT_SIGKILL else ""
        cause = find_interruption(pod)
        message = f"ended by {name}{f': {cause}' if cause else hint}"
        return "failed", Failure(kind="killed", message=message, exit_code=code, signal=name, stderr_tail=tail)
    message = f"ended with exit code {code} and left no result"
    return "failed", Failure(kind="exit", message=message, exit_code=code, stderr_tail=tail)


def _describe_job(job: JobStatus, pod: PodStatus | None) -> str:
    message = f"the Job failed ({job.reason or 'no reason given'}): {job.message or 'no message'}"
    if pod is None:
        return f"{message}; none of its pods is left"
    last = pod.disruption or f"{pod.end_reason} {pod.end_message}".strip() or pod.phase
    return f"{message}; its last pod: {find_last_line(last)}"


def _tail(pod: PodStatus | None) -> str:
    return hide_secrets(pod.end_message) if pod else ""


def find_pending_pod(tracked: TrackedJob) -> PodStatus | None:
    pending = (pod for pod in tracked.pods.values() if pod.phase == "Pending")
    return max(pending, key=lambda pod: pod.created_at, default=None)


def explain_waiting(tracked: TrackedJob, *, unschedulable_seconds: float) -> Verdict | None:
    """Return why the pod of a Job does not start; None if it does or its status and its Job give no reason yet."""
    pod = find_pending_pod(tracked)
    if pod is None:
        return _explain_no_pod(tracked, unschedulable_seconds)
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


def _explain_no_pod(tracked: TrackedJob, unschedulable_seconds: float) -> Verdict | None:
    """Return why a Job has no pod. One that a finalizer keeps, or of which nobody says why, is not given up for that.

    None where it had pods: the Job controller pauses before it replaces one that failed, and awaits the end of another.
    """
    job, reason = tracked.job, tracked.missing_pod_reason
    if tracked.termination_message:
        return Verdict(kind="preempted", message=tracked.termination_message)
    if reason and "exceeded quota" in reason:
        return Verdict(kind="unschedulable", message=reason, patience=unschedulable_seconds)
    if reason:
        return Verdict(kind="bad-configuration", message=reason, patience=CONFIGURATION_SECONDS)
    if job is not None and job.kept_by and not job.num_terminating:
        return Verdict(kind="bad-configuration", message=KEPT.format(finalizers=job.kept_by))
    has_had_pods = job is not None and bool(job.num_failed_pods or job.num_terminating)
    if has_had_pods or tracked.no_pod_since is None:
        return None
    if time.monotonic() - tracked.no_pod_since < UNEXPLAINED_SECONDS:
        return None
    return Verdict(kind="bad-configuration", message=UNEXPLAINED)
