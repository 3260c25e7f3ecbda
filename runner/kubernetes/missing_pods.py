"""Explain why Jobs in flight have no pod, in the words of the Job controller or of the node that does not let a pod go.

All of them are explained by one list of events and one of pods, however many they are.
"""

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import partial
from typing import Any

from runner.kubernetes.connection import Connection
from runner.kubernetes.dispatcher import Dispatcher
from runner.kubernetes.object_status import read_pod_status
from runner.kubernetes.tracked_jobs import TrackedJob

NO_POD_SECONDS = 20.0
"""A Job that has been without a pod for so long is worth asking about."""
MAX_PAUSE_SECONDS = 60.0
"""Between two requests, which are NO_POD_SECONDS apart at first."""
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
