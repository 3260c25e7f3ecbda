"""The nodes of a run: where attempts ran, which fail cells, and which node the cells of a comparison share."""

import threading
import time
from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from functools import partial
from http import HTTPStatus

from bench.errors import UserError
from bench.schema import Cell, InvalidDocumentError, Node, NodeFault, Placement, Result, read_node_fault, read_placement
from bench.store import (
    ResultKey,
    Store,
    node_fault_key,
    node_faults_prefix,
    parse_placement_key,
    parse_result_key,
    placement_key,
    placements_prefix,
    results_prefix,
)
from runner.kubernetes.connection import SHORT_PATIENCE_SECONDS, ApiError
from runner.kubernetes.failures import find_last_line, find_node_fault
from runner.kubernetes.names import select_run
from runner.kubernetes.objects import END_PHASES, JobStatus, PodStatus, describe_node, read_pod_status, read_quantity
from runner.kubernetes.rendering import ANY_NODE, NodeWish
from runner.kubernetes.tracked_jobs import OngoingRun, TrackedJob
from runner.profiles.model import is_shared

REFUSALS = (HTTPStatus.FORBIDDEN, HTTPStatus.NOT_FOUND)


@dataclass(kw_only=True)
class Placements:
    """Writes where the attempts of a run ran: a document for each pod, and one request for each node.

    `note` is for the main thread; the other methods block.
    """

    run: OngoingRun
    placed: set[str] = field(default_factory=set)
    """Attempts whose placement is written, or being written."""
    num_pending: int = 0
    """Placements that are being written."""
    _nodes: dict[str, Node | None] = field(default_factory=dict, repr=False)
    """By name. None: it may not be read, or was gone."""
    _lock: threading.Lock = field(default_factory=threading.Lock, repr=False)

    def note(self, pod: PodStatus) -> None:
        if pod.has_run and pod.node and pod.uid not in self.placed:
            self.placed.add(pod.uid)
            self.num_pending += 1
            self.run.dispatcher.record(partial(self.write, pod), self._finish)
            if pod.other_containers or pod.qos_class not in ("Guaranteed", ""):
                self._tell_of_policy(pod)

    def _tell_of_policy(self, pod: PodStatus) -> None:
        """Warn, once for each way, that the cluster changed a pod: the report says so of each attempt."""
        change = f"its QoS class is {pod.qos_class}: other pods may use its cores and memory"
        if pod.other_containers:
            names = ", ".join(pod.other_containers)
            change = f"the container {names} was added, which takes CPU and memory beside the measurement"
        words = f"an admission webhook or policy of the cluster changed pod {pod.name}: {change}"
        self.run.dispatcher.warn(words, f"changed pods {change}")

    def _finish(self, problem: str) -> None:
        self.num_pending -= 1
        if problem:
            self.run.dispatcher.warn(problem)

    def list_placed(self) -> set[str]:
        keys = map(parse_placement_key, self.run.store.list_keys(placements_prefix(self.run.run_id)))
        return {key.attempt for key in keys if key is not None}

    def write(self, pod: PodStatus) -> str:
        """Write where a pod runs or ran; return in words why that cannot be recorded, else an empty text."""
        try:
            placement = self._make_placement(pod)
        except ValueError as error:
            return f"where pod {pod.name} runs is not recorded: {error}"
        self.run.store.put(placement_key(*ResultKey.of(placement)), placement.to_json())
        return ""

    def _make_placement(self, pod: PodStatus) -> Placement:
        cores = float(read_quantity(pod.cpu_request)) if pod.cpu_request else 0.0
        return Placement(
            run_id=self.run.run_id,
            cell_id=pod.cell_id,
            repeat=pod.number,
            attempt=pod.uid,
            pod=pod.name,
            node_name=pod.node,
            image_id=pod.image_id or None,
            qos_class=pod.qos_class or None,
            cpu_request_cores=cores if cores > 0 else None,  # a policy may have set it to 0: none is requested
            other_containers=pod.other_containers,
            node=self._find_node(pod.node),
        )

    def find_instance_type(self, node: str) -> str | None:
        """Return the machine type of a node that was asked for already; None: unknown. Sends no request."""
        known = self._nodes.get(node)
        return None if known is None else known.instance_type

    def complete(self) -> None:
        """Write the placements that results lack and whose pods still exist: an earlier runner may have been killed."""
        keys = map(parse_result_key, self.run.store.list_keys(results_prefix(self.run.run_id)))
        lacking = {key.attempt for key in keys if key is not None} - self.list_placed()
        if lacking:
            self.write_wanted(select_run(self.run.run_id), lambda attempt: attempt in lacking)

    def write_wanted(self, labels: str, is_wanted: Callable[[str], bool]) -> None:
        """Write the placements of the pods with these labels that still exist; `is_wanted` is asked with their uids."""
        query, patience = {"labelSelector": labels}, SHORT_PATIENCE_SECONDS
        path = self.run.path("pods")
        for pod in self.run.connection.read_items(path, read_pod_status, query, patience_seconds=patience):
            if pod.has_run and is_wanted(pod.uid):
                self.write(pod)

    def _find_node(self, name: str) -> Node | None:
        with self._lock:  # many pods of one node are placed at once: one asks for it
            if name not in self._nodes:
                path = f"/api/v1/nodes/{name}"
                try:
                    found = self.run.connection.get_object(path, patience_seconds=SHORT_PATIENCE_SECONDS)
                    self._nodes[name] = describe_node(found)
                except ApiError as error:
                    if error.status not in REFUSALS:  # the server is away: asked again for the next pod
                        return None
                    self._nodes[name] = None
            return self._nodes[name]


# Which nodes fail cells and are left out.
# Faults are counted from the whole run, what ended ok from this runner's time alone: without that a node merely stays
# left out for its hour.
MIN_FAULTS = 2
"""Faults of a node in a row, with nothing ended ok between them, after which it is left out. One may be a passing one:
a device plugin that starts again, a kubelet that had no room for a moment. A third would cost another start of a pod
and tell no more."""
LEFT_OUT_TIME = timedelta(hours=1)
"""How long a node is left out after its last fault. Clouds repair nodes under the same name: GKE acts when a node is
unhealthy for about ten minutes, and drains it for at most an hour,
https://cloud.google.com/kubernetes-engine/docs/how-to/node-auto-repair. If it was not repaired, it fails one cell in
seconds and is left out again."""
MAX_FAULTS = 6
"""Faults of a pool in a row, on whatever nodes, after which the run stops if none of its nodes is known to be sound:
each of three nodes could have failed as often as leaves it out."""


@dataclass(kw_only=True)
class PoolHealth:
    """Counts the node faults of one pool, and says which of its nodes have some and whether one is sound."""

    pool: str
    faults: defaultdict[str, list[NodeFault]] = field(default_factory=lambda: defaultdict(list))
    """By node, since the last attempt there that ended ok, the oldest first."""
    seen_at: dict[str, datetime] = field(default_factory=dict)
    """When a node last took a pod, measured a cell or ended one ok, as far as that was noted."""
    num_in_a_row: int = 0
    """Faults since the last attempt in the pool that ended ok, those left out that were before this runner began."""
    last: NodeFault | None = None

    def add(self, fault: NodeFault, *, is_earlier: bool) -> None:
        """Count a fault. `is_earlier`: before this runner began; such faults do not stop the run."""
        self.num_in_a_row += not is_earlier
        self.last = fault
        if fault.node_name is not None:
            self.faults[fault.node_name].append(fault)

    def add_ok(self, node: str | None, now: datetime) -> None:
        """Note that an attempt ended ok; None: it is not known on which node."""
        self.num_in_a_row = 0
        if node is not None:
            self.faults.pop(node, None)
            self.seen_at[node] = now

    def has_fault(self, node: str, now: datetime) -> bool:
        """Return whether the last attempt on a node that ended was a fault, not longer ago than LEFT_OUT_TIME."""
        faults = self.faults.get(node, [])
        return bool(faults) and now - faults[-1].at < LEFT_OUT_TIME

    def has_sound_node(self, now: datetime) -> bool:
        """Return whether a node took pods within LEFT_OUT_TIME and its last attempt was no fault."""
        return any(now - at < LEFT_OUT_TIME and not self.has_fault(node, now) for node, at in self.seen_at.items())

    def is_left_out(self, node: str, now: datetime) -> bool:
        """Return whether a node fails cells that others can measure."""
        return self.has_fault(node, now) and len(self.faults[node]) >= MIN_FAULTS and self.has_sound_node(now)

    def find_avoided(self, now: datetime) -> NodeWish:
        """Return the wish of a new Job to keep off nodes at fault.

        A node with a single fault is avoided only if another is free, and so are all if no sound node is known.
        """
        suspects = sorted(node for node in self.faults if self.has_fault(node, now))
        excluded = [node for node in suspects if self.is_left_out(node, now)]
        return NodeWish(excluded=tuple(excluded), disliked=tuple(node for node in suspects if node not in excluded))

    def explain_stop(self, now: datetime) -> str:
        """Return why no node of the pool can measure anything; empty if one may."""
        if self.last is None or self.num_in_a_row < MAX_FAULTS or self.has_sound_node(now):
            return ""
        names = ", ".join(sorted(node for node, faults in self.faults.items() if faults)) or "names unknown"
        return (
            f"every node of the pool '{self.pool}' that took a cell is at fault ({names}): {self.num_in_a_row} "
            f"attempts in a row could not begin, the last on {self.last.node_name or 'an unknown node'}: "
            f"{self.last.reason}"
        )


class NodesAtFaultError(UserError):
    """No node of a pool can measure anything, so the run was stopped."""

    def __init__(self, pool: str, reason: str) -> None:
        super().__init__(
            f"the run was stopped: {reason}. Mend the nodes, the images or the profile, then give the same command "
            "again: what was measured is kept, and no repeat was recorded as failed for it"
        )
        self.pool = pool


def read_node_faults(store: Store, run_id: str) -> list[NodeFault]:
    """Return the node faults of a run that can be read, the oldest first."""
    found = []
    for _, data in store.get_listed(store.list_keys(node_faults_prefix(run_id))):
        with suppress(InvalidDocumentError):  # one fault less is counted; the next writes its own document
            if isinstance(data, bytes):
                found.append(read_node_fault(data))
    return sorted(found, key=lambda fault: fault.at)


@dataclass(kw_only=True)
class NodeFaults:
    """Counts and stores the faults of nodes, on the main thread; `write` blocks."""

    run: OngoingRun
    stop: NodesAtFaultError | None = None
    """Why the run has to stop, once it has to."""
    pools: dict[str, PoolHealth] = field(default_factory=dict, repr=False)
    _attempts: set[str] = field(default_factory=set, repr=False)
    """Those whose fault was counted."""
    _num_by_repeat: Counter[tuple[str, int, int]] = field(default_factory=Counter, repr=False)
    _failed_before: set[str] = field(default_factory=set, repr=False)
    """The Jobs, by uid, that had failed when this runner began."""

    def load(self, faults: Iterable[NodeFault]) -> None:
        """Count the faults that earlier runners of the run have stored, the oldest first."""
        for fault in faults:
            self._add(fault, is_earlier=True)

    def begin(self, jobs: Iterable[JobStatus]) -> None:
        """Note which Jobs exist as this runner begins: what they failed for was before it, and may be mended by now."""
        self._failed_before = {job.uid for job in jobs if job.end == "failed"}

    def find_pool(self, pool: str) -> PoolHealth:
        return self.pools.setdefault(pool, PoolHealth(pool=pool))

    def note_pod(self, tracked: TrackedJob, pod: PodStatus) -> None:
        """Record on which node a pod is, and record a fault of that node if the pod's end shows one."""
        if not pod.node:
            return
        tracked.node = pod.node
        if pod.phase in ("Pending", "Running"):
            self.find_pool(pod.pool).seen_at[pod.node] = datetime.now(UTC)
        elif reason := find_node_fault(pod):
            fault = self._judge(make_node_fault(tracked, reason, pod), tracked.job)
            self.run.dispatcher.record(partial(self.write, fault), lambda _: None)

    def note_job(self, tracked: TrackedJob, job: JobStatus, pods: Sequence[PodStatus]) -> list[NodeFault]:
        """Return the faults for which a Job ended, to be stored before it is deleted."""
        found = [make_node_fault(tracked, reason, pod) for pod in pods if (reason := find_node_fault(pod))]
        found = found or [make_node_fault(tracked, find_last_line(job.message), job)]
        return [self._judge(fault, job) for fault in found]

    def note_result(self, tracked: TrackedJob, result: Result) -> None:
        if result.status == "ok":
            self.find_pool(tracked.pool).add_ok(tracked.node, datetime.now(UTC))

    def count_faults(self, tracked: TrackedJob) -> int:
        """Return how many attempts at a repeat ended by a fault of their node, earlier runners' included."""
        return self._num_by_repeat[(*tracked.repeat.key, tracked.key.retry_round)]

    def find_avoided(self, tracked: TrackedJob) -> NodeWish:
        return self.find_pool(tracked.pool).find_avoided(datetime.now(UTC))

    def write(self, fault: NodeFault) -> None:
        self.run.store.put(node_fault_key(*ResultKey.of(fault)), fault.to_json())

    def _add(self, fault: NodeFault, *, is_earlier: bool) -> None:
        if fault.attempt not in self._attempts:
            self._attempts.add(fault.attempt)
            self._num_by_repeat[fault.cell_id, fault.repeat, fault.retry_round] += 1
            self.find_pool(fault.pool).add(fault, is_earlier=is_earlier)

    def _judge(self, fault: NodeFault, job: JobStatus | None) -> NodeFault:
        """Count a fault, say what follows from it, and return it with that."""
        now, dispatcher = datetime.now(UTC), self.run.dispatcher
        for tracked in self.run.jobs.list_unfinished():  # a cell may take longer than what was seen of its node counts
            if tracked.node and tracked.job is not None and tracked.job.num_ready:
                self.find_pool(tracked.pool).seen_at[tracked.node] = now
        self._add(fault, is_earlier=job is not None and job.uid in self._failed_before)
        pool, name = self.find_pool(fault.pool), fault.node_name or "of unknown name"
        if fault.node_name is not None:
            number, is_left_out = len(pool.faults[name]), pool.is_left_out(name, now)
            fault = fault.model_copy(update={"num_in_a_row": max(1, number), "is_left_out": is_left_out})
        if fault.is_left_out and self.run.renderer.profile.avoid_faulty_nodes:
            dispatcher.warn(
                f"node {name} is left out of later Jobs for an hour: {fault.num_in_a_row} attempts in a row could not "
                f"begin there, and other nodes measure ({fault.reason})",
                f"left out {name}",
            )
        else:
            dispatcher.warn(f"node {name} is at fault, the cell is measured again: {fault.reason}", f"at fault {name}")
        if reason := pool.explain_stop(now):
            self.stop = NodesAtFaultError(fault.pool, reason)
        return fault


def make_node_fault(tracked: TrackedJob, reason: str, source: PodStatus | JobStatus) -> NodeFault:
    """Return the fault that ended an attempt at a repeat: of its pod, or of its Job where no pod is left."""
    return NodeFault(
        run_id=tracked.key.run_id,
        cell_id=tracked.key.cell_id,
        repeat=tracked.key.number,
        attempt=source.uid,
        retry_round=tracked.key.retry_round,
        pool=tracked.pool,
        node_name=source.node or None if isinstance(source, PodStatus) else None,
        reason=reason,
        at=source.ended_at or source.created_at,
    )


# Which node the cells of a comparison share.
# A block is what the report compares within a round: the same work in other frameworks, modes and precisions. Its first
# cell goes to any node. As soon as that is known, the next one is submitted, and its pod waits for this node; and so
# on. A cell that waits too long while no cell of the run is on its node goes to any node, of the same machine type if
# possible. docs/decisions/0020-nodes.md has the reasons.
BLOCK_FIELDS = ("model", "device", "phase", "num_gpus", "batch_size", "input_size", "num_classes", "data_dir", "seed")
"""What the cells of a block have in common: all that is no protocol, but framework, mode and precision. A test holds
it against the comparisons of the report. GPU against CPU and scaling are not in it: a CPU cell's node has no GPU."""
BlockKey = tuple[object, ...]
"""What identifies a block: the number of the round and the values of BLOCK_FIELDS."""


@dataclass(kw_only=True, slots=True)
class Block:
    """The repeats of one number of the cells that are compared, as far as they are missing: a few dozen at most."""

    held: list[TrackedJob]
    """Not submitted yet, in the order of the run. A list, since an empty deque takes 600 bytes."""
    node: str = ""
    """Where the last of them ran that has a node; empty: none has, or the node is gone."""
    instance_type: str = ""
    """Of the node where they ran under an earlier runner; empty: unknown."""


@dataclass(kw_only=True)
class SharedNodes:
    """Holds back cells until it is known where the one before runs, and tells where they go. On the main thread."""

    run: OngoingRun
    find_instance_type: Callable[[str], str | None]
    """Returns the machine type of a node if it is known."""
    _block_by_job: dict[str, Block] = field(default_factory=dict, repr=False)
    _passed: set[str] = field(default_factory=set, repr=False)
    """Jobs that have let the next of their block go."""
    _waiting_since: dict[str, float] = field(default_factory=dict, repr=False)
    """When (time.monotonic) a Job was first seen to wait for its node, or a cell of the run last ended there."""
    _bound: dict[str, tuple[TrackedJob, str]] = field(default_factory=dict, repr=False)
    """Jobs without a record whose pods have to run on a node, with its name: a pod that replaces another one too."""
    _given_up: set[str] = field(default_factory=set, repr=False)
    """Nodes that one cell waited for in vain, and that have taken no cell of the run since: no other waits for them."""
    _pods_by_node: defaultdict[str, set[str]] = field(default_factory=lambda: defaultdict(set), repr=False)
    """The pods of the run that a node has at present, by uid."""

    @property
    def patience_seconds(self) -> float:
        """How long a cell waits for its node; 0: every cell is submitted at once and goes to any node."""
        if self.run.renderer.queue is not None:  # cells that wait for their node would use up its quota
            return 0.0
        # A cell that waits for a node of its own choice must not be given up as one that no node can take.
        return min(self.run.renderer.profile.same_node_patience_seconds, self.run.bounds.unschedulable_seconds / 2)

    def begin(self, jobs: Iterable[TrackedJob]) -> list[TrackedJob]:
        """Return the missing repeats to submit at once: the first of each block, in their order; hold the others."""
        if not self.patience_seconds:
            return list(jobs)
        blocks: dict[BlockKey, Block] = {}
        first = []
        for tracked in jobs:
            key = identify_block(tracked.repeat.planned.cell, tracked.repeat.number)
            if key in blocks:
                blocks[key].held.append(tracked)
            else:
                blocks[key] = Block(held=[])
                first.append(tracked)
            self._block_by_job[tracked.name] = blocks[key]
        for key, former in find_former_nodes(self.run, blocks.keys()).items():
            blocks[key].node, blocks[key].instance_type = former
        return first

    def find_wish(self, tracked: TrackedJob, avoided: NodeWish = ANY_NODE) -> NodeWish:
        """Return where a Job that is about to be created should run, besides what it avoids: no node at fault."""
        block = self._block_by_job.get(tracked.name)
        if block is None:
            return avoided
        shunned = {*avoided.excluded, *avoided.disliked, *self._given_up}
        if not block.node or tracked.is_released or block.node in shunned:
            instance_type = self.find_instance_type(block.node) or block.instance_type
            return replace(avoided, instance_type=instance_type)
        self._bound[tracked.name] = tracked, block.node
        return replace(avoided, node=block.node)

    def note_job(self, tracked: TrackedJob, job: JobStatus) -> None:
        """Note which node a Job is bound to, whichever runner created it: the others of its block belong there too."""
        block = self._block_by_job.get(tracked.name)
        if block is not None and not block.node:
            block.node = job.required_node
        if not job.required_node:
            self._bound.pop(tracked.name, None)
        elif block is not None and not tracked.is_released:  # else a profile's overlay alone can have bound it
            self._bound[tracked.name] = tracked, job.required_node

    def note_pod(self, tracked: TrackedJob | None, pod: PodStatus, *, is_deleted: bool) -> list[TrackedJob]:
        """Note on which node a pod is; return the next cell of its block, if it can now be submitted for that node.

        `tracked`: the repeat that the pod measures; None if this runner does not follow its Job.
        """
        if not pod.node:
            return []
        if is_deleted or pod.is_deleted or pod.phase in END_PHASES:  # on a lost node it stays
            self._pods_by_node[pod.node].discard(pod.uid)
        else:
            self._pods_by_node[pod.node].add(pod.uid)
            self._given_up.discard(pod.node)
        block = None if tracked is None else self._block_by_job.get(tracked.name)
        if tracked is None or block is None or tracked.name in self._passed:
            return []
        block.node, block.instance_type = pod.node, ""
        return self._let_next_go(tracked, block)

    def forget_pods(self) -> None:
        """Forget which pods the nodes have: all that exist are about to be noted again."""
        self._pods_by_node.clear()

    def note_end(self, tracked: TrackedJob) -> list[TrackedJob]:
        """Note that a repeat has its record; return those to submit: all, if its block has no node to wait for."""
        block = self._block_by_job.get(tracked.name)
        self._bound.pop(tracked.name, None)
        if block is None or tracked.name in self._passed:
            return []
        following = self._let_next_go(tracked, block)
        if not block.node:
            following, block.held = [*following, *block.held], []
        return following

    def check(self) -> list[TrackedJob]:
        """Return the Jobs that have waited too long for their node, to be deleted; to be called about once a second.

        They are created again for any node, as if somebody had deleted them.
        """
        now, released = time.monotonic(), []
        for name, (tracked, node) in list(self._bound.items()):
            is_waiting = tracked.state == "in-flight" and any(pod.unschedulable for pod in tracked.pods.values())
            if not is_waiting or self._pods_by_node.get(node):
                self._waiting_since.pop(name, None)
            elif now - self._waiting_since.setdefault(name, now) >= self.patience_seconds:
                del self._bound[name], self._waiting_since[name]
                tracked.is_released = True
                self._given_up.add(node)
                self.run.dispatcher.warn(
                    f"node {node} has not taken a cell for {self.patience_seconds:g} s that is compared with one that "
                    f"ran there; such cells go to other nodes now (the first: {tracked.repeat.planned.cell.slug})",
                    f"shared node {node}",
                )
                released.append(tracked)
        return released

    def _let_next_go(self, tracked: TrackedJob, block: Block) -> list[TrackedJob]:
        self._passed.add(tracked.name)
        while block.held:
            following = block.held.pop(0)
            if following.state == "to-submit":  # otherwise an earlier runner, or another one, has submitted it
                return [following]
        return []


def identify_block(cell: Cell, number: int) -> BlockKey:
    # With device plugins, each way of sharing a GPU and each number of clients has nodes of its own.
    shares = (cell.sharing, cell.tenants) if is_shared(cell) else ()
    return number, *(getattr(cell, name) for name in BLOCK_FIELDS), *shares


def find_former_nodes(run: OngoingRun, blocks: Collection[BlockKey]) -> dict[BlockKey, tuple[str, str]]:
    """Return the node of each of these blocks that ran under an earlier runner, and its machine type.

    The node is that where most of the block's attempts ran, of several the first in the alphabet; empty: the cluster
    has it no longer. The type is empty where it is unknown. A placement that is damaged counts as none.
    """
    cells = {planned.cell.cell_id: planned.cell for planned in run.plan.cells}
    wanted: dict[str, BlockKey] = {}
    for key in run.store.list_keys(placements_prefix(run.run_id)):
        parts = parse_placement_key(key)
        if parts is not None and parts.cell_id in cells:
            block = identify_block(cells[parts.cell_id], parts.repeat)
            if block in blocks:
                wanted[key] = block
    counts: defaultdict[BlockKey, Counter[str]] = defaultdict(Counter)
    types: dict[str, str] = {}
    for key, data in run.store.get_listed(wanted):
        with suppress(InvalidDocumentError):
            if isinstance(data, bytes):
                placement = read_placement(data)
                counts[wanted[key]][placement.node_name] += 1
                if placement.node is not None:
                    types[placement.node_name] = placement.node.instance_type or ""
    names = {block: min(found, key=lambda name: (-found[name], name)) for block, found in counts.items()}
    gone: set[str] = set()
    if names:
        with suppress(ApiError):  # nodes that may not be listed may still be there
            read, patience = (lambda node: str(node["metadata"]["name"])), SHORT_PATIENCE_SECONDS
            gone = {*names.values()} - {*run.connection.read_items("/api/v1/nodes", read, patience_seconds=patience)}
    return {block: ("" if name in gone else name, types.get(name, "")) for block, name in names.items()}
