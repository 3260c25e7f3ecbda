"""Find the nodes of a pool that fail cells which others measure, and notice when all of them do.

Counted from the node faults of the run, those of earlier runners of it included. What ended ok is known from this
runner's time alone: without it a node merely stays left out for its hour.
"""

from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta

from bench.schema import NodeFault
from runner.kubernetes.rendering.avoided_nodes import AvoidedNodes

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
    """What is known of the nodes of one pool."""

    faults: dict[str, list[NodeFault]] = field(default_factory=lambda: defaultdict(list))
    """By node, since the last attempt there that ended ok, the oldest first."""
    seen_at: dict[str, datetime] = field(default_factory=dict)
    """When a node last took a pod, measured a cell or ended one ok, as far as that was noted."""
    num_in_a_row: int = 0
    """Faults since the last attempt in the pool that ended ok."""
    last: NodeFault | None = None

    def has_fault(self, node: str, now: datetime) -> bool:
        """Return whether the last attempt on a node that ended was a fault, not longer ago than LEFT_OUT_TIME."""
        faults = self.faults.get(node, [])
        return bool(faults) and now - faults[-1].at < LEFT_OUT_TIME

    def has_sound_node(self, now: datetime) -> bool:
        """Return whether another node took pods within LEFT_OUT_TIME and its last attempt was no fault."""
        return any(now - at < LEFT_OUT_TIME and not self.has_fault(node, now) for node, at in self.seen_at.items())

    def is_left_out(self, node: str, now: datetime) -> bool:
        """Return whether a node fails cells that others can measure."""
        return self.has_fault(node, now) and len(self.faults[node]) >= MIN_FAULTS and self.has_sound_node(now)


@dataclass(kw_only=True)
class NodeHealth:
    """Counts the faults and successes of nodes, by pool."""

    _pools: dict[str, PoolHealth] = field(default_factory=lambda: defaultdict(PoolHealth), repr=False)
    _attempts: set[str] = field(default_factory=set, repr=False)
    _num_by_repeat: dict[tuple[str, int, int], int] = field(default_factory=lambda: defaultdict(int), repr=False)

    def load(self, faults: Iterable[NodeFault]) -> None:
        """Count the faults that an earlier runner has stored."""
        for fault in sorted(faults, key=lambda fault: fault.at):
            self._count(fault, is_earlier=True)

    def add(self, fault: NodeFault, now: datetime, *, is_earlier: bool = False) -> NodeFault:
        """Count a fault, once for each attempt, and return it with what follows from it for its node.

        `is_earlier`: it happened before this runner began. Whether the run stops is for what this runner sees.
        """
        pool = self._pools[fault.pool]
        if fault.attempt not in self._attempts:
            self._count(fault, is_earlier=is_earlier)
        if fault.node_name is None:
            return fault
        return fault.model_copy(
            update={
                "num_in_a_row": max(1, len(pool.faults[fault.node_name])),
                "is_left_out": pool.is_left_out(fault.node_name, now),
            }
        )

    def note_seen(self, pool: str, node: str, now: datetime) -> None:
        """Note that a node has taken a pod, or measures a cell."""
        self._pools[pool].seen_at[node] = now

    def note_ok(self, pool: str, node: str | None, now: datetime) -> None:
        """Note that an attempt ended ok; None: it is not known on which node."""
        self._pools[pool].num_in_a_row = 0
        if node is not None:
            self._pools[pool].faults.pop(node, None)
            self.note_seen(pool, node, now)

    def count_faults(self, cell_id: str, repeat: int, retry_round: int) -> int:
        """Return how many attempts at a repeat ended by a fault of their node."""
        return self._num_by_repeat.get((cell_id, repeat, retry_round), 0)

    def find_avoided(self, pool: str, now: datetime, hostnames: Mapping[str, str]) -> AvoidedNodes:
        """Return the nodes that new Jobs of a pool keep off. `hostnames`: labels by node, where they are not its name.

        A node with a single fault is avoided where another is free; so are all where no sound node is known.
        """
        health = self._pools[pool]
        suspects = sorted(node for node in health.faults if health.has_fault(node, now))
        excluded = [node for node in suspects if health.is_left_out(node, now)]
        return AvoidedNodes(
            excluded=tuple(hostnames.get(node, node) for node in excluded),
            disliked=tuple(hostnames.get(node, node) for node in suspects if node not in excluded),
            names=frozenset(suspects),
        )

    def has_sound_node(self, pool: str, now: datetime) -> bool:
        """Return whether a node of a pool took pods lately and its last attempt was no fault."""
        return self._pools[pool].has_sound_node(now)

    def explain_stop(self, pool: str, now: datetime) -> str:
        """Return why no node of a pool can measure anything; empty if one may."""
        health = self._pools[pool]
        if health.num_in_a_row < MAX_FAULTS or health.has_sound_node(now):
            return ""
        names = ", ".join(sorted(node for node, faults in health.faults.items() if faults)) or "names unknown"
        assert health.last is not None
        last = f"{health.last.node_name or 'an unknown node'}: {health.last.reason}"
        return (
            f"every node of the pool '{pool}' that took a cell is at fault ({names}): {health.num_in_a_row} attempts "
            f"in a row could not begin, the last on {last}"
        )

    def _count(self, fault: NodeFault, *, is_earlier: bool) -> None:
        pool = self._pools[fault.pool]
        self._attempts.add(fault.attempt)
        self._num_by_repeat[fault.cell_id, fault.repeat, fault.retry_round] += 1
        pool.num_in_a_row += 0 if is_earlier else 1
        pool.last = fault
        if fault.node_name is not None:
            pool.faults[fault.node_name].append(fault)
