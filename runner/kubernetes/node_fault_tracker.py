"""Count the faults of nodes in a run: store them, keep later Jobs off such nodes, stop where all fail."""

from collections.abc import Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import partial

from bench.errors import UserError
from bench.schema import InvalidDocumentError, NodeFault, Result, read_node_fault
from bench.store import Store, node_fault_key, node_faults_prefix
from runner.kubernetes.api_errors import ApiError
from runner.kubernetes.connection import SHORT_PATIENCE_SECONDS, Connection
from runner.kubernetes.dispatcher import Dispatcher
from runner.kubernetes.node_health import NodeHealth
from runner.kubernetes.object_status import JobStatus, PodStatus
from runner.kubernetes.pod_ends import explain_node_fault, find_last_line
from runner.kubernetes.rendering.avoided_nodes import HOSTNAME_LABEL, AvoidedNodes
from runner.kubernetes.tracked_jobs import TrackedJob, TrackedJobs


class NodesAtFaultError(UserError):
    """No node of a pool can measure anything, so the run was stopped."""

    def __init__(self, pool: str, reason: str) -> None:
        super().__init__(
            f"the run was stopped: {reason}. Mend the nodes, the images or the profile, then give the same command "
            "again: what was measured is kept, and no repeat was recorded as failed for it"
        )
        self.pool = pool


def read_node_faults(store: Store, run_id: str) -> list[NodeFault]:
    """Return the node faults of a run that can be read, the oldest first. StoreError if the store cannot be used."""
    found = []
    for _, data in store.get_listed(store.list_keys(node_faults_prefix(run_id))):
        with suppress(InvalidDocumentError):  # one fault less is counted; the next writes its own document
            if isinstance(data, bytes):
                found.append(read_node_fault(data))
    return sorted(found, key=lambda fault: fault.at)


@dataclass(kw_only=True)
class NodeFaultRecorder:
    """Stores node faults; its methods block, so call them in threads."""

    connection: Connection
    store: Store
    hostnames: dict[str, str] = field(default_factory=dict)
    """The label `kubernetes.io/hostname` of the nodes that were asked for, by their name."""

    def write(self, fault: NodeFault) -> None:
        """Store a fault, with the host name of its node. StoreError if the store cannot be used."""
        if fault.node_name is not None:
            fault = fault.model_copy(update={"hostname": self._find_hostname(fault.node_name)})
        self.store.put(node_fault_key(fault.run_id, fault.cell_id, fault.repeat, fault.attempt), fault.to_json())

    def _find_hostname(self, node: str) -> str | None:
        if node not in self.hostnames:
            try:
                found = self.connection.get_object(f"/api/v1/nodes/{node}", patience_seconds=SHORT_PATIENCE_SECONDS)
            except ApiError:  # it may not be read, or is gone
                return None
            self.hostnames[node] = str(found["metadata"].get("labels", {}).get(HOSTNAME_LABEL, node))
        return self.hostnames[node]


@dataclass(kw_only=True)
class NodeFaultTracker:
    """Knows which nodes fail, on the main thread."""

    dispatcher: Dispatcher
    recorder: NodeFaultRecorder
    jobs: TrackedJobs
    can_avoid_nodes: bool
    """The cluster accepts affinity to `kubernetes.io/hostname`: `avoid_faulty_nodes` of the profile."""
    health: NodeHealth = field(default_factory=NodeHealth)
    stop: NodesAtFaultError | None = None
    """Why the run has to stop, once it has to."""
    _failed_before: set[str] = field(default_factory=set, repr=False)
    """The Jobs, by uid, that had failed when this runner began."""

    def load(self, faults: Iterable[NodeFault]) -> None:
        """Count the faults that earlier runners of the run have stored."""
        for fault in (known := list(faults)):
            if fault.node_name is not None and fault.hostname is not None:
                self.recorder.hostnames[fault.node_name] = fault.hostname
        self.health.load(known)

    def begin(self, jobs: Iterable[JobStatus]) -> None:
        """Note which Jobs exist as this runner begins: what they failed for was before it, and may be mended by now."""
        self._failed_before = {job.uid for job in jobs if job.end == "failed"}

    def note_pod(self, tracked: TrackedJob, pod: PodStatus) -> None:
        """Record on which node a pod is, and record a fault of that node if the pod's end shows one."""
        if not pod.node:
            return
        tracked.node = pod.node
        if pod.phase in ("Pending", "Running"):
            self.health.note_seen(pod.pool, pod.node, datetime.now(UTC))
        elif reason := explain_node_fault(pod):
            fault = self._count(make_node_fault(tracked, reason, pod=pod), tracked.job)
            self.dispatcher.record(partial(self.recorder.write, fault), _ignore)

    def note_job(self, tracked: TrackedJob, job: JobStatus, pods: Sequence[PodStatus]) -> list[NodeFault]:
        """Return the faults for which a Job ended, to be stored before it is deleted."""
        found = [(pod, reason) for pod in pods if (reason := explain_node_fault(pod))]
        if not found:
            return [self._count(make_node_fault(tracked, find_last_line(job.message), job=job), job)]
        return [self._count(make_node_fault(tracked, reason, pod=pod), job) for pod, reason in found]

    def note_result(self, tracked: TrackedJob, result: Result) -> None:
        """Note that a node is sound if an attempt ended ok there."""
        if result.status == "ok":
            self.health.note_ok(tracked.pool, tracked.node, datetime.now(UTC))

    def count_faults(self, tracked: TrackedJob) -> int:
        """Return how many attempts at a repeat ended by a fault of their node, earlier runners' included."""
        return self.health.count_faults(*tracked.repeat.key, tracked.key.retry_round)

    def has_sound_node(self, tracked: TrackedJob) -> bool:
        """Return whether a node of the repeat's pool is known that may measure it."""
        return self.health.has_sound_node(tracked.repeat.planned.cell.device, datetime.now(UTC))

    def find_avoided(self, tracked: TrackedJob) -> AvoidedNodes:
        """Return the nodes that a new Job keeps off; their names alone if the cluster takes no affinity to them."""
        pool = tracked.repeat.planned.cell.device
        avoided = self.health.find_avoided(pool, datetime.now(UTC), self.recorder.hostnames)
        return avoided if self.can_avoid_nodes else AvoidedNodes(names=avoided.names)

    def _count(self, fault: NodeFault, job: JobStatus | None) -> NodeFault:
        now = datetime.now(UTC)
        for tracked in self.jobs.list_unfinished():  # a cell may take longer than what was seen of its node counts
            if tracked.node and tracked.job is not None and tracked.job.num_ready:
                self.health.note_seen(tracked.pool, tracked.node, now)
        is_earlier = job is not None and job.uid in self._failed_before
        fault = self.health.add(fault, now, is_earlier=is_earlier)
        name = fault.node_name or "of unknown name"
        if fault.is_left_out and self.can_avoid_nodes:
            self.dispatcher.warn(
                f"node {name} is left out of later Jobs for an hour: {fault.num_in_a_row} attempts in a row could not "
                f"begin there, and other nodes measure ({fault.reason})",
                f"left out {name}",
            )
        else:
            self.dispatcher.warn(
                f"node {name} is at fault, the cell is measured again: {fault.reason}", f"at fault {name}"
            )
        if reason := self.health.explain_stop(fault.pool, now):
            self.stop = NodesAtFaultError(fault.pool, reason)
        return fault


def make_node_fault(
    tracked: TrackedJob, reason: str, *, pod: PodStatus | None = None, job: JobStatus | None = None
) -> NodeFault:
    """Return the fault that ended an attempt at a repeat: of its pod, or of its Job where no pod is left."""
    source = pod or job
    assert source is not None
    return NodeFault(
        run_id=tracked.key.run_id,
        cell_id=tracked.key.cell_id,
        repeat=tracked.key.number,
        attempt=source.uid,
        retry_round=tracked.key.retry_round,
        pool=tracked.repeat.planned.cell.device,
        node_name=pod.node or None if pod else None,
        reason=reason,
        at=source.ended_at or source.created_at,
    )


def _ignore(_: None) -> None:
    pass
