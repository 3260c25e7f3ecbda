"""Explain why a pod ended from outside: taken down, refused by its kubelet, or on a faulty node.

A Job's podFailurePolicy sees the exit code and the condition DisruptionTarget alone. The condition says that a pod was
preempted, drained, evicted since its node ran short, lost with its node, or ended by a graceful shutdown of the node:
https://kubernetes.io/docs/concepts/workloads/pods/disruptions/#pod-disruption-conditions
A kubelet sets it for none of these (k8s.io/kubernetes, pkg/kubelet): a pod that exceeds its own limit of local storage
(localStorageEviction in eviction/eviction_manager.go, `Evicted`), a pod past its activeDeadlineSeconds
(active_deadline.go, `DeadlineExceeded`), a pod that it does not admit (lifecycle/predicate.go, `OutOfcpu`,
`UnexpectedAdmissionError`, ...). So `status.reason` of the pod is read too.
"""

import re
from collections.abc import Sequence

from bench.exit_codes import EXIT_NODE_FAULT, EXIT_SIGKILL, INTERRUPTED_EXIT_CODES
from runner.kubernetes.object_status import JobStatus, PodStatus

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


def explain_interruption(pod: PodStatus) -> str:
    """Return why a pod that had been admitted was ended from outside, in the words of who did it; empty if it was not.

    A pod that exceeded a limit of its own is not among these: see `explain_own_limit`.
    """
    if pod.disruption:
        return pod.disruption
    if pod.phase != "Failed" or explain_own_limit(pod) or explain_node_fault(pod):
        return ""
    if pod.pod_reason in TAKEN_DOWN:
        return f"{pod.pod_reason}: {pod.pod_message}".rstrip(": ")
    if pod.exit_code in INTERRUPTED_EXIT_CODES:
        return "the pod was deleted" if pod.is_deleted else "SIGTERM, from whom is not known"
    if pod.exit_code == EXIT_SIGKILL and pod.is_deleted and pod.end_reason != OUT_OF_MEMORY:
        return "the pod was deleted, and killed when its grace period was over"
    return ""


def explain_own_limit(pod: PodStatus) -> str:
    """Return the kubelet's words about a pod that took more local storage than it may; empty if it did not."""
    if pod.pod_reason == EVICTED and not pod.disruption and _OWN_LIMIT.search(pod.pod_message):
        return pod.pod_message.strip()
    return ""


def explain_node_fault(pod: PodStatus) -> str:
    """Return in one line why the pod's node could not have measured any cell; empty if the node was not at fault."""
    if pod.phase == "Pending" and pod.waiting_reason == NOT_CREATED and _GPU_RUNTIME.search(pod.waiting_message):
        return f"{NOT_CREATED}: {find_last_line(pod.waiting_message)}"
    # An evicted pod can have lost the status of its container (ContainerStatusUnknown), as if it had not run.
    if pod.phase != "Failed" or pod.disruption or explain_own_limit(pod):
        return ""
    if pod.exit_code == EXIT_NODE_FAULT:
        return find_last_error(pod.end_message) or "the log of its container says nothing"
    if pod.end_reason in NOT_STARTED and _GPU_RUNTIME.search(pod.end_message):
        return f"{pod.end_reason}: {find_last_line(pod.end_message)}"
    # A kubelet may be short of something just for a moment. No container was begun.
    if not pod.has_run and pod.node and pod.pod_reason and pod.pod_reason not in TAKEN_DOWN - {EVICTED, "NodeShutdown"}:
        return f"the kubelet refused the pod: {pod.pod_reason}: {pod.pod_message}".rstrip(": ")
    return ""


def was_ended_by_node_fault(job: JobStatus, pod: PodStatus | None) -> bool:
    """Return whether a Job failed since a node was at fault. `pod`: the one that decided; None: none is left."""
    if job.end != "failed" or job.reason == DEADLINE:
        return False
    if pod is None:
        return _NODE_FAULT_CODE.search(job.message) is not None
    return bool(explain_node_fault(pod))


def was_ended_by_interruption(job: JobStatus, pod: PodStatus | None) -> bool:
    """Return whether a Job failed since its last pod was ended from outside, in a way that its rules do not see."""
    if job.end != "failed" or job.reason == DEADLINE or pod is None or pod.pod_reason == DEADLINE:
        return False
    return bool(explain_interruption(pod))


def choose_decisive_pod(pods: Sequence[PodStatus]) -> PodStatus | None:
    """Return the newest pod that was not disrupted and whose container ended, else the newest of all, or None."""
    return max(pods, key=lambda pod: (not pod.disruption, pod.exit_code is not None, pod.created_at), default=None)


def find_last_error(tail: str) -> str:
    """Return the message of `python -m bench` about an error that ended it, else the last line of its log, if any."""
    found = _ERROR_LINE.findall(tail)
    return found[-1] if found else find_last_line(tail)


def find_last_line(text: str) -> str:
    """Return the last line of a text; empty if it has none."""
    lines = text.strip().splitlines()
    return lines[-1] if lines else ""
