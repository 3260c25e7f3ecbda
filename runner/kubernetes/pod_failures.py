"""Explain why a pod does not start, in the cluster's own words, and how long that may last."""

import math
import re
import time
from dataclasses import dataclass

from bench.schema import Failure, FailureKind
from runner.kubernetes.object_status import PodStatus
from runner.kubernetes.pod_ends import explain_node_fault
from runner.kubernetes.tracked_jobs import TrackedJob

# https://kubernetes.io/docs/concepts/containers/images/, and the kubelet's errors in pkg/kubelet/images/types.go
PERMANENT_IMAGE_REASONS = frozenset({"InvalidImageName", "ErrImageNeverPull"})
PASSING_IMAGE_REASONS = frozenset({"ErrImagePull", "ImagePullBackOff", "ImageInspectError", "RegistryUnavailable"})
CONFIGURATION_REASONS = frozenset({"CreateContainerConfigError", "CreateContainerError"})
# In a message about an image: every later attempt ends the same way.
PERMANENT_IMAGE_ERROR = re.compile(r"not found|unauthorized|denied|forbidden|manifest unknown", re.IGNORECASE)
_PARTICULARS = re.compile(r'pods? "?[^" ]+"?|\d+')

IMAGE_SECONDS = 300.0
"""How long a registry that does not answer is waited for."""
CONFIGURATION_SECONDS = 30.0
"""How long something is waited for that a pod names and that does not exist, such as a Secret."""
UNEXPLAINED_SECONDS = 60.0
"""A Job without a pod for so long, and without an event that says why, is worth a warning."""
UNEXPLAINED = (
    "its Job has no pod, and no event says why; look at the Job's `parallelism` and `managedBy`, which somebody may "
    "have changed, and at the Job controller"
)

KEPT = (
    "its Job was deleted and is still there, kept by its finalizers ({finalizers}); its repeat is measured again when "
    "it is gone"
)


@dataclass(frozen=True, kw_only=True)
class PodFailure:
    """Why a pod does not start."""

    kind: FailureKind
    message: str
    """The message of the scheduler, the kubelet or the Job controller."""
    patience_seconds: float
    """How long it may last before the repeat is given up."""
    is_node_fault: bool = False
    """Another node may start such a pod: the repeat is measured again rather than given up."""
    since: float | None = None
    """When (time.monotonic) it began. None: when it was first reported."""

    def to_failure(self) -> Failure:
        """Return this reason as the Failure that goes into the record of the repeat."""
        return Failure(kind=self.kind, message=f"{_TITLES[self.kind]}: {self.message}")

    @property
    def dedup_key(self) -> str:
        """The message without the names and numbers that differ from pod to pod and from moment to moment."""
        if self.kind == "bad-image":  # its name and version matter
            return f"{self.kind} {self.message}"
        words = _PARTICULARS.sub("", self.message).split()
        return f"{self.kind} {' '.join(sorted(word.strip('[],.;') for word in words))}"  # a list has no order


def find_pending_pod(tracked: TrackedJob) -> PodStatus | None:
    """Return the newest pod that is pending, or None."""
    pending = (pod for pod in tracked.pods.values() if pod.phase == "Pending")
    return max(pending, key=lambda pod: pod.created_at, default=None)


def explain_start_problem(problem: str, since: float, start_seconds: float) -> PodFailure:
    """Return why a node does not start a pod, in the kubelet's words. `since`: when (time.monotonic) it began to."""
    return PodFailure(kind="infrastructure", message=problem, patience_seconds=start_seconds, since=since)


def find_pod_failure(tracked: TrackedJob, *, unschedulable_seconds: float) -> PodFailure | None:
    """Return why the pod does not start, or None if it does or its status and its Job give no reason yet."""
    pod = find_pending_pod(tracked)
    if pod is None and tracked.termination_message:
        return PodFailure(kind="preempted", message=tracked.termination_message, patience_seconds=math.inf)
    if pod is None and tracked.missing_pod_reason:
        return _explain_missing_pod(tracked.missing_pod_reason, unschedulable_seconds)
    if pod is None:
        return _explain_nothing(tracked)
    if pod.unschedulable:
        return PodFailure(kind="unschedulable", message=pod.unschedulable, patience_seconds=unschedulable_seconds)
    return _read_waiting(pod)


def _explain_nothing(tracked: TrackedJob) -> PodFailure | None:
    """Return that a deleted Job stays, or that nobody says why a Job has no pod; it is not given up for that.

    None where it had pods: the Job controller pauses before it replaces one that failed, and awaits the end of another.
    """
    if tracked.job is not None and tracked.job.kept_by and not tracked.job.num_terminating:
        return PodFailure(
            kind="bad-configuration", message=KEPT.format(finalizers=tracked.job.kept_by), patience_seconds=math.inf
        )
    has_had_pods = tracked.job is not None and bool(tracked.job.num_failed_pods or tracked.job.num_terminating)
    if has_had_pods or tracked.no_pod_since is None:
        return None
    if time.monotonic() - tracked.no_pod_since < UNEXPLAINED_SECONDS:
        return None
    return PodFailure(kind="bad-configuration", message=UNEXPLAINED, patience_seconds=math.inf)


def _explain_missing_pod(reason: str, unschedulable_seconds: float) -> PodFailure:
    if "exceeded quota" in reason:
        return PodFailure(kind="unschedulable", message=reason, patience_seconds=unschedulable_seconds)
    return PodFailure(kind="bad-configuration", message=reason, patience_seconds=CONFIGURATION_SECONDS)


def _read_waiting(pod: PodStatus) -> PodFailure | None:
    reason, message = pod.waiting_reason, f"{pod.waiting_reason}: {pod.waiting_message}".rstrip(": ")
    if reason in PERMANENT_IMAGE_REASONS:
        return PodFailure(kind="bad-image", message=message, patience_seconds=0)
    if reason in PASSING_IMAGE_REASONS:
        is_permanent = PERMANENT_IMAGE_ERROR.search(pod.waiting_message) is not None
        return PodFailure(kind="bad-image", message=message, patience_seconds=0 if is_permanent else IMAGE_SECONDS)
    if explain_node_fault(pod):  # its runtime may only wait for a device plugin that starts again
        return PodFailure(
            kind="infrastructure", message=message, patience_seconds=CONFIGURATION_SECONDS, is_node_fault=True
        )
    if reason in CONFIGURATION_REASONS:
        return PodFailure(kind="bad-configuration", message=message, patience_seconds=CONFIGURATION_SECONDS)
    return None


_TITLES: dict[FailureKind, str] = {
    "unschedulable": "no node took the pod",
    "preempted": "its node may be lost",
    "bad-image": "the image cannot be pulled",
    "bad-configuration": "the pod cannot be created",
    "infrastructure": "the node does not start the pod",
}
