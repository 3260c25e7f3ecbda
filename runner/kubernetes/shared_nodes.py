"""Keep the cells of a comparison on one node, one after the other.

A block is what the report compares within a round: the same work in other frameworks, modes and precisions. Its first
cell goes to any node. As soon as that is known, the next one is submitted, and its pod waits for this node; and so on.
A cell that waits too long while no cell of the run is on its node goes to any node, of the same machine type if
possible. docs/decisions/0024-own-jobs-and-shared-nodes.md has the reasons.
"""

import time
from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass, field
from functools import partial

from bench.schema import Cell
from runner.kubernetes.dispatcher import Dispatcher
from runner.kubernetes.object_status import JobStatus, PodStatus
from runner.kubernetes.rendering.avoided_nodes import NONE_AVOIDED, AvoidedNodes
from runner.kubernetes.rendering.node_wish import NodeWish
from runner.kubernetes.tracked_jobs import TrackedJob
from runner.profiles.gpus import is_shared

BLOCK_FIELDS = (
    "model",
    "device",
    "phase",
    "num_gpus",
    "batch_size",
    "input_size",
    "num_classes",
    "data_dir",
    "seed",
)
"""What the cells of a block have in common: all that is no protocol, but framework, mode and precision. A test holds
it against the comparisons of the report. GPU against CPU and scaling are not in it: a CPU cell's node has no GPU."""
END_PHASES = ("Succeeded", "Failed")
BlockKey = tuple[object, ...]
"""What identifies a block: the number of the round and the values of BLOCK_FIELDS."""


@dataclass(frozen=True, kw_only=True)
class FormerNode:
    """Where cells of a block ran under an earlier runner."""

    name: str
    """Empty: the cluster has this node no longer."""
    instance_type: str
    """Empty: unknown."""


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
    """Holds back cells until it is known where the cell before them runs, and tells where they go. On the main thread.

    With a `patience_seconds` of 0 every cell is submitted at once and goes to any node.
    """

    dispatcher: Dispatcher
    submit_next: Callable[[TrackedJob], None]
    """Called for a cell that is no longer held back: it goes before those that have waited for no node."""
    delete_job: Callable[[str], None]
    """Deletes a Job, by name; blocks."""
    find_instance_type: Callable[[str], str | None]
    """Returns the machine type of a node if it is known."""
    patience_seconds: float
    find_former_nodes: Callable[[Collection[BlockKey]], Mapping[BlockKey, FormerNode]] = lambda _: {}
    """Returns where cells of these blocks ran under an earlier runner, of those for which that is known; blocks."""
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

    def begin(self, jobs: Iterable[TrackedJob]) -> list[TrackedJob]:
        """Return the missing repeats to submit at once: the first of each block, in their order; hold the others."""
        tracked_jobs = list(jobs)
        if not self.patience_seconds:
            return tracked_jobs
        blocks: dict[BlockKey, Block] = {}
        first = []
        for tracked in tracked_jobs:
            key = identify_block(tracked.repeat.planned.cell, tracked.repeat.number)
            if key in blocks:
                blocks[key].held.append(tracked)
            else:
                blocks[key] = Block(held=[])
                first.append(tracked)
            self._block_by_job[tracked.name] = blocks[key]
        for key, former in self.find_former_nodes(blocks.keys()).items():
            blocks[key].node, blocks[key].instance_type = former.name, former.instance_type
        return first

    def find_wish(self, tracked: TrackedJob, avoided: AvoidedNodes = NONE_AVOIDED) -> NodeWish:
        """Return where a Job that is about to be created should run: never bound to a node at fault."""
        block = self._block_by_job.get(tracked.name)
        if block is None:
            return NodeWish(avoided=avoided)
        if not block.node or tracked.is_released or block.node in self._given_up or block.node in avoided.names:
            instance_type = self.find_instance_type(block.node) or block.instance_type
            return NodeWish(instance_type=instance_type, avoided=avoided)
        self._bound[tracked.name] = tracked, block.node
        return NodeWish(node=block.node, avoided=avoided)

    def note_job(self, tracked: TrackedJob, job: JobStatus) -> None:
        """Note which node a Job is bound to, whichever runner created it: the others of its block belong there too."""
        block = self._block_by_job.get(tracked.name)
        if block is not None and not block.node:
            block.node = job.required_node
        if not job.required_node:
            self._bound.pop(tracked.name, None)
        elif (
            self.patience_seconds and not tracked.is_released
        ):  # after that, only a profile's overlay can have bound it
            self._bound[tracked.name] = tracked, job.required_node

    def note_pod(self, tracked: TrackedJob | None, pod: PodStatus, *, is_deleted: bool) -> None:
        """Record on which node a pod is, so that the next cell of its block can be submitted for the same node.

        `tracked`: the repeat that the pod measures; None if its Job is not one that this runner follows.
        """
        if not pod.node:
            return
        if is_deleted or pod.is_deleted or pod.phase in END_PHASES:  # on a lost node it stays
            self._pods_by_node[pod.node].discard(pod.uid)
        else:
            self._pods_by_node[pod.node].add(pod.uid)
            self._given_up.discard(pod.node)
        block = None if tracked is None else self._block_by_job.get(tracked.name)
        if tracked is not None and block is not None and tracked.name not in self._passed:
            block.node, block.instance_type = pod.node, ""
            self._let_next_go(tracked, block)

    def forget_pods(self) -> None:
        """Forget which pods the nodes have: all that exist are about to be noted again."""
        self._pods_by_node.clear()

    def note_end(self, tracked: TrackedJob) -> None:
        """Note that a repeat has its record. If its block has no node, nothing is to be waited for: all others go."""
        block = self._block_by_job.get(tracked.name)
        self._bound.pop(tracked.name, None)
        if block is None or tracked.name in self._passed:
            return
        self._let_next_go(tracked, block)
        while block.held and not block.node:
            self.submit_next(block.held.pop(0))

    def check(self) -> None:
        """Release the Jobs that have waited too long for their node; to be called about once a second."""
        now = time.monotonic()
        for name, (tracked, node) in list(self._bound.items()):
            is_waiting = tracked.state == "in-flight" and any(pod.unschedulable for pod in tracked.pods.values())
            if not is_waiting or self._pods_by_node.get(node):
                self._waiting_since.pop(name, None)
            elif now - self._waiting_since.setdefault(name, now) >= self.patience_seconds:
                self._release(tracked, node)

    def _let_next_go(self, tracked: TrackedJob, block: Block) -> None:
        self._passed.add(tracked.name)
        while block.held:
            following = block.held.pop(0)
            if following.state == "to-submit":  # otherwise an earlier runner, or another one, has submitted it
                self.submit_next(following)
                return

    def _release(self, tracked: TrackedJob, node: str) -> None:
        """Delete the Job; it is created again, as one that somebody deleted is, for any node."""
        del self._bound[tracked.name], self._waiting_since[tracked.name]
        tracked.is_released = True
        self._given_up.add(node)
        self.dispatcher.warn(
            f"node {node} has not taken a cell for {self.patience_seconds:g} s that is compared with one that ran "
            f"there; such cells go to other nodes now (the first: {tracked.repeat.planned.cell.slug})",
            f"shared node {node}",
        )
        self.dispatcher.request(partial(self.delete_job, tracked.name), lambda _: None)


def identify_block(cell: Cell, number: int) -> BlockKey:
    """Return what the repeats of a block have in common: `number` is that of the repeat."""
    # With device plugins, each way of sharing a GPU and each number of clients has nodes of its own.
    shares = (cell.sharing, cell.tenants) if is_shared(cell) else ()
    return number, *(getattr(cell, name) for name in BLOCK_FIELDS), *shares
