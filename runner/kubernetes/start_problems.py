"""Find what keeps pods that have a node from starting, in the kubelet's words: sandbox, network, volumes, devices.

While a pod is in `ContainerCreating`, its status says nothing more; its events do (`FailedCreatePodSandBox`,
`FailedMount`, `FailedAttachVolume`, `FailedPrepareDynamicResources`, ...: pkg/kubelet/events/event.go).
"""

import time
from collections.abc import Iterable
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from runner.kubernetes.connection import Connection
from runner.kubernetes.dispatcher import Dispatcher
from runner.kubernetes.object_status import PodStatus

STARTING_SECONDS = 10.0
"""A pod that is being started for so long is worth asking about, and telling of."""
MAX_PAUSE_SECONDS = 60.0
"""Between two requests for events, which are STARTING_SECONDS apart at first."""
STARTING_REASONS = frozenset({"", "ContainerCreating", "PodInitializing"})
# Those of other moments of a pod's life. `Pulling` stays: what came before it is over.
_OTHER_REASONS = ("FailedScheduling", "Scheduled", "Pulled", "Created", "Started", "Killing")
# Warnings that the kubelet gives at every start of a pod on nodes that have more name servers or search domains than it
# passes on, or no cluster DNS; the pod starts (pkg/kubelet/network/dns/dns.go,
# https://github.com/kubernetes/kubernetes/issues/126585). Given again at each attempt, they would hide why it failed.
_HARMLESS_REASONS = ("DNSConfigForming", "MissingClusterDNS")


def is_starting(pod: PodStatus) -> bool:
    """Return whether a pod has a node and its kubelet says no more than that it is being started."""
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
