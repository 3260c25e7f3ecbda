"""A task whose pod does not start comes in; why, in the cluster's own words, and whether to give it up, goes out."""

import math
import re
from dataclasses import dataclass

from bench.schema import Failure, FailureKind
from runner.kubernetes.object_status import PodStatus
from runner.kubernetes.tasks import Task

# https://kubernetes.io/docs/concepts/containers/images/, and the kubelet's errors in pkg/kubelet/images/types.go
HOPELESS_IMAGE = frozenset({"InvalidImageName", "ErrImageNeverPull"})
WAITING_IMAGE = frozenset({"ErrImagePull", "ImagePullBackOff", "ImageInspectError", "RegistryUnavailable"})
BAD_CONFIGURATION = frozenset({"CreateContainerConfigError", "CreateContainerError"})
# In a message about an image: no later attempt ends otherwise.
HOPELESS_WORDS = re.compile(r"not found|unauthorized|denied|forbidden|manifest unknown", re.IGNORECASE)
_PARTICULARS = re.compile(r'pods? "?[^" ]+"?|\d+')

IMAGE_SECONDS = 300.0
"""How long a registry that does not answer is waited for."""
CONFIGURATION_SECONDS = 30.0
"""How long something that a pod names and that is not there, a Secret for one, is waited for."""


@dataclass(frozen=True, kw_only=True)
class PodFailure:
    """Why a task's pod does not start."""

    kind: FailureKind
    words: str
    """Of the scheduler, the kubelet or the Job controller."""
    patience_seconds: float
    """How long it may last before the task is given up."""

    def to_failure(self) -> Failure:
        """Return the reason for the task's record."""
        return Failure(kind=self.kind, message=f"{_TITLES[self.kind]}: {self.words}")

    @property
    def dedup_key(self) -> str:
        """The words without the names and numbers that differ from pod to pod and from moment to moment."""
        if self.kind == "bad-image":  # its name and version matter
            return f"{self.kind} {self.words}"
        return f"{self.kind} {_PARTICULARS.sub('', self.words)}"


def find_pod_failure(task: Task, *, unschedulable_seconds: float) -> PodFailure | None:
    """Return why the task's pod does not start; None where it does, or no reason is known yet."""
    pending = (pod for pod in task.pods.values() if pod.phase == "Pending")
    pod = max(pending, key=lambda pod: pod.created_at, default=None)
    if pod is None and task.leaving_words:
        return PodFailure(kind="preempted", words=task.leaving_words, patience_seconds=math.inf)
    if pod is None:
        return _read_no_pod(task.no_pod_words, unschedulable_seconds) if task.no_pod_words else None
    if pod.unschedulable:
        return PodFailure(kind="unschedulable", words=pod.unschedulable, patience_seconds=unschedulable_seconds)
    return _read_waiting(pod)


def _read_no_pod(words: str, unschedulable_seconds: float) -> PodFailure:
    if "exceeded quota" in words:
        return PodFailure(kind="unschedulable", words=words, patience_seconds=unschedulable_seconds)
    return PodFailure(kind="bad-configuration", words=words, patience_seconds=CONFIGURATION_SECONDS)


def _read_waiting(pod: PodStatus) -> PodFailure | None:
    reason, words = pod.waiting_reason, f"{pod.waiting_reason}: {pod.waiting_message}".rstrip(": ")
    if reason in HOPELESS_IMAGE:
        return PodFailure(kind="bad-image", words=words, patience_seconds=0)
    if reason in WAITING_IMAGE:
        hopeless = HOPELESS_WORDS.search(pod.waiting_message) is not None
        return PodFailure(kind="bad-image", words=words, patience_seconds=0 if hopeless else IMAGE_SECONDS)
    if reason in BAD_CONFIGURATION:
        return PodFailure(kind="bad-configuration", words=words, patience_seconds=CONFIGURATION_SECONDS)
    return None


_TITLES: dict[FailureKind, str] = {
    "unschedulable": "no node took the pod",
    "preempted": "its node may be lost",
    "bad-image": "the image cannot be had",
    "bad-configuration": "the pod cannot be made",
}
