"""Limit how many Jobs of a pool are unfinished at once: what the profile says, else twice what its nodes can hold.

Nodes with whole GPUs and those that share them are counted apart, by the way of sharing: cells of one kind do not hold
up others.

A pod that waits for a node makes an autoscaler add one. So no more Jobs are submitted than give every node its next
cell: twice the cells that fit on the nodes that the runner finds at its start. Nodes that are added later count once;
otherwise the pods that wait would add nodes, which would let more pods wait, without end.

How far an autoscaler may grow a pool is read where the Kubernetes API says so.

Karpenter says so, also in EKS Auto Mode and AKS node auto-provisioning, which are made of it: its NodePools are
objects with labels, taints and limits of resources, so that it is known which of them a cell can use.
https://karpenter.sh/docs/concepts/nodepools/
https://docs.aws.amazon.com/eks/latest/userguide/create-node-pool.html
https://learn.microsoft.com/en-us/azure/aks/node-autoprovision

The cluster autoscaler does not: its ConfigMap `cluster-autoscaler-status` has the largest size of each node group under
the cloud's name of the group, without labels, so that it is unknown which cells it is for; and where the cloud runs the
autoscaler, as GKE does, there may be none.
https://github.com/kubernetes/autoscaler/blob/master/cluster-autoscaler/clusterstate/api/types.go
"""

import json
import time
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property, partial
from typing import Any

from bench.errors import UserError
from bench.schema import Result, measure_attempt
from runner.kubernetes.connection import SHORT_PATIENCE_SECONDS, ApiError, Connection
from runner.kubernetes.fit import (
    NodeStatus,
    fit_pod,
    list_label_misfits,
    list_untolerated,
    read_node_status,
    sum_requests,
)
from runner.kubernetes.objects import list_required_terms, read_quantity
from runner.kubernetes.tracked_jobs import UNFINISHED, Cost, OngoingRun, TrackedJob
from runner.matrix.plan import RepeatKey
from runner.profiles.model import NodePools, Profile

NODE_POOL_LABEL = "karpenter.sh/nodepool"
"""The name of its NodePool, on every node that Karpenter makes: https://karpenter.sh/docs/concepts/scheduling/"""
NODE_POOLS = "/apis/karpenter.sh/v1/nodepools"
CHOSEN_PREFIXES = (
    "kubernetes.io/",
    "node.kubernetes.io/",
    "topology.kubernetes.io/",
    "karpenter",
    "eks.amazonaws.com/",
)
"""Of the keys of labels that Karpenter sets itself, to a value that fits the pod."""


def list_node_pools(connection: Connection) -> list[dict[str, Any]]:
    """Return Karpenter's NodePools; none where there is no Karpenter, or they may not be listed."""
    try:
        return connection.read_items(NODE_POOLS, lambda item: item, patience_seconds=SHORT_PATIENCE_SECONDS)
    except ApiError:
        return []


def count_cells_within_limits(pod: Mapping[str, Any], node_pools: Iterable[Mapping[str, Any]]) -> int:
    """Return how many pods like this one may run at once within the limits of the NodePools that fit it.

    0 where no NodePool that may has a limit on something that the pod requests: then nothing is known. Of the
    requirements of a NodePool, only those with `In` are read; one whose nodes might lack a label that the pod asks for
    does not count.
    """
    return sum(_count_in_node_pool(pod, node_pool) for node_pool in node_pools)


def list_node_pool_misfits(pod: Mapping[str, Any], node_pool: Mapping[str, Any]) -> Iterator[str]:
    """Yield why no node that this NodePool makes would take the pod, by labels and taints; sizes are not known."""
    template = node_pool["spec"]["template"]
    allowed = {
        rule["key"]: [str(value) for value in rule.get("values") or ()]
        for rule in template["spec"].get("requirements") or ()
        if rule.get("operator") == "In"
    }
    fixed = {key: values[0] for key, values in allowed.items() if len(values) == 1}
    named = dict((template.get("metadata") or {}).get("labels") or {})
    node = NodeStatus(
        name="",
        labels=_choose_labels(pod, allowed) | fixed | named | {NODE_POOL_LABEL: node_pool["metadata"]["name"]},
        taints=tuple(template["spec"].get("taints") or ()),
        is_cordoned=False,
        is_ready=True,
        free={},
    )
    yield from list_label_misfits(pod, node)
    yield from list_untolerated(pod.get("tolerations", ()), node)


def _count_in_node_pool(pod: Mapping[str, Any], node_pool: Mapping[str, Any]) -> int:
    if any(list_node_pool_misfits(pod, node_pool)):
        return 0
    limits = {name: read_quantity(str(amount)) for name, amount in (node_pool["spec"].get("limits") or {}).items()}
    requests = {name: amount for name, amount in sum_requests(pod).items() if amount and name in limits}
    return min((int(limits[name] // amount) for name, amount in requests.items()), default=0)


def _choose_labels(pod: Mapping[str, Any], allowed: Mapping[str, Sequence[str]]) -> dict[str, str]:
    """Return the labels that the nodes made for this pod would get, of those that Karpenter chooses a value for.

    Those are architecture, system, machine type and the like: it takes one that the pod asks for, of those that the
    NodePool allows, or any if it says nothing of that label.
    https://karpenter.sh/docs/concepts/scheduling/#well-known-labels
    """
    families = allowed.get("karpenter.k8s.aws/instance-family") or allowed.get("eks.amazonaws.com/instance-family")
    rules = [rule for term in list_required_terms(pod) for rule in term.get("matchExpressions", ())]
    wanted = [(key, (value,)) for key, value in pod.get("nodeSelector", {}).items()]
    wanted += [(rule["key"], rule["values"]) for rule in rules if rule["operator"] == "In"]
    chosen = {}
    for key, values in wanted:
        if key.startswith(CHOSEN_PREFIXES) or key in allowed:
            fitting = [value for value in values if value in allowed.get(key, values)]
            if families is not None:
                fitting = [value for value in fitting if "." not in value or value.partition(".")[0] in families]
            if fitting:
                chosen[key] = fitting[0]
    return chosen


JOBS_PER_CELL = 2
"""Unfinished Jobs for each cell that fits: one that runs, and one whose pod takes its place at once."""
MIN_PARALLEL = 2
"""Unfinished Jobs of a pool without nodes, as for one node: an autoscaler adds the first node for a pod that waits."""
UNKNOWN_PARALLEL = 20
"""Unfinished Jobs of a pool whose nodes the runner may not list: enough for ten nodes. The user is told."""
REFRESH_SECONDS = 120.0
"""How often nodes are listed: cluster autoscalers need about as long to add one."""


@dataclass(kw_only=True)
class PoolCapacity:
    """Knows how many Jobs of each kind of nodes may be unfinished at once, on the main thread."""

    run: OngoingRun
    is_known: bool = False
    """Whether the limits are known, so that Jobs may be submitted."""
    _pods: dict[str, Sequence[Mapping[str, Any]]] = field(default_factory=dict, repr=False)
    """By the kind of nodes, for those that are counted: the spec of a pod of each size."""
    _pools: dict[str, str] = field(default_factory=dict, repr=False)
    """The pool that each kind of nodes is of."""
    _num_at_start: dict[str, int] = field(default_factory=dict, repr=False)
    _limits: dict[str, int] = field(default_factory=dict, repr=False)
    """By the kind of nodes."""
    _next_refresh: float = 0.0

    def begin(self) -> None:
        samples: defaultdict[str, dict[tuple[int, int], TrackedJob]] = defaultdict(dict)
        # A queue admits Jobs as its quota allows: until then they have no pods.
        for tracked in self.run.jobs if self.run.renderer.queue is None else ():
            if self._find_maximum(tracked.pool) is None:
                cell = tracked.repeat.planned.cell
                samples[tracked.node_kind].setdefault((cell.num_gpus, cell.tenants), tracked)
                self._pools[tracked.node_kind] = tracked.pool
        for kind, by_size in samples.items():
            jobs = (json.loads(self.run.renderer.render(each.repeat.planned, each.key)) for each in by_size.values())
            self._pods[kind] = [job["spec"]["template"]["spec"] for job in jobs]
        self.is_known = not self._pods
        self.refresh()

    def refresh(self) -> None:
        """Look for nodes that came or went, if that was not done lately; to be called about once a second."""
        now = time.monotonic()
        if self._pods and now >= self._next_refresh:
            self._next_refresh = now + REFRESH_SECONDS
            self.run.dispatcher.request(self._count_nodes, self._handle_nodes)

    def has_room(self, tracked: TrackedJob) -> bool:
        """Return whether the pool and the nodes that a Job needs have room for it; without a limit a queue decides."""
        maximum, limit = self._find_maximum(tracked.pool), self._limits.get(tracked.node_kind)
        if maximum is not None and self.run.jobs.count(*UNFINISHED, pool=tracked.pool) >= maximum:
            return False
        return limit is None or self.run.jobs.count(*UNFINISHED, node_kind=tracked.node_kind) < limit

    def _find_maximum(self, pool: NodePools) -> int | None:
        return self.run.renderer.profile.pools[pool].max_parallel

    def _count_nodes(self) -> Mapping[str, tuple[int, int]] | None:
        """Return by kind of nodes how many cells they hold, and how many an autoscaler may make room for.

        The latter is 0 where it does not say. None if the nodes cannot be listed.
        """
        read = partial(read_node_status, taken={})
        try:
            nodes = self.run.connection.read_items("/api/v1/nodes", read, patience_seconds=SHORT_PATIENCE_SECONDS)
        except ApiError:
            return None
        node_pools = list_node_pools(self.run.connection)
        return {
            kind: (count_cells(pods, nodes), max(count_cells_within_limits(pod, node_pools) for pod in pods))
            for kind, pods in self._pods.items()
        }

    def _handle_nodes(self, found: Mapping[str, tuple[int, int]] | None) -> None:
        for kind in self._pods:
            key = f"pools.{self._pools[kind]}.max_parallel"
            if found is not None:
                num_fitting, num_allowed = found[kind]
                at_start = self._num_at_start.setdefault(kind, num_fitting)
                self._limits[kind] = find_limit(num_fitting, at_start, num_allowed)
                if not (self.is_known or num_fitting or num_allowed):
                    self.run.dispatcher.warn(
                        f"no node can take a cell of the pool {kind} at present: {MIN_PARALLEL} of its Jobs are "
                        f"submitted at once; if an autoscaler is to add more nodes than that, set {key} in the profile"
                    )
            elif kind not in self._limits:
                self._limits[kind] = UNKNOWN_PARALLEL
                self.run.dispatcher.warn(
                    f"the nodes of the pool {kind} are unknown, since they cannot be listed: at most "
                    f"{UNKNOWN_PARALLEL} of its Jobs are unfinished at once; set {key} in the profile, or grant `list` "
                    "on `nodes` (`benchmatrix doctor` says how)"
                )
        self.is_known = True


def find_limit(num_fitting: int, num_at_start: int, num_allowed: int) -> int:
    """Return how many Jobs may be unfinished at once. `num_at_start`: what fitted when the runner began."""
    return max(MIN_PARALLEL, JOBS_PER_CELL * num_at_start, num_fitting, num_allowed)


def count_cells(pods: Sequence[Mapping[str, Any]], nodes: Sequence[NodeStatus]) -> int:
    """Return how many pods like any of these the nodes can hold at once, if nothing else runs on them.

    Pods that keep others like them off their node (`is_alone_on_node`) have one node each.
    """
    if all("podAntiAffinity" in pod.get("affinity", {}) for pod in pods):
        return len({node.name for pod in pods for node in fit_pod(pod, nodes).fitting})
    return max(_count_sharing(pod, fit_pod(pod, nodes).fitting) for pod in pods)


def _count_sharing(pod: Mapping[str, Any], fitting: Sequence[NodeStatus]) -> int:
    requests = {name: amount for name, amount in sum_requests(pod).items() if amount}
    return sum(
        min((int(node.free[name] // amount) for name, amount in requests.items()), default=1) for node in fitting
    )


# Estimate what a run costs, and whether its caps on nodes and on money leave room for another Job.
#
# The estimate, of the whole run, whichever runners handled it:
#
#     sum over pools of  price_per_hour * (seconds of its records + seconds that its running cells have run) / 3600
#
# The seconds of a record are from `started_at` to `finished_at`, none where a clock was set between them. It is a lower
# bound: booting nodes, pulling images, nodes that are idle before, between and after cells, attempts that left no
# terminal record, disks, traffic and the control plane are not in it. For cells that share a node it is too high: each
# counts as a whole node.

SECONDS_PER_HOUR = 3600.0


@dataclass(kw_only=True)
class Spending:
    """Adds up what the cells of a run take, on the main thread."""

    run: OngoingRun
    _ended_seconds: defaultdict[str, float] = field(default_factory=lambda: defaultdict(float), repr=False)
    """By pool: what its terminal records took."""
    _num_ended: Counter[str] = field(default_factory=Counter, repr=False)
    _running: dict[str, tuple[str, float]] = field(default_factory=dict, repr=False)
    """The pool of each cell that runs, and when (time.monotonic) it was first seen to, by the name of its Job."""

    @cached_property
    def prices(self) -> Mapping[str, float]:
        """Of a node, per hour, by pool. A pool that is missing has no known price."""
        pools = self.run.renderer.profile.pools
        return {name: pool.price_per_hour for name, pool in pools.items() if pool.price_per_hour is not None}

    def add_records(self, seconds: Mapping[RepeatKey, float]) -> None:
        """Add what the records took that the store had at the start."""
        pools = {planned.cell.cell_id: planned.cell.device for planned in self.run.plan.cells}
        for (cell_id, _), duration in seconds.items():
            if cell_id in pools:
                self._add(pools[cell_id], duration)

    def add(self, tracked: TrackedJob, result: Result) -> None:
        self._running.pop(tracked.name, None)
        self._add(tracked.pool, measure_attempt(result.started_at, result.finished_at) or 0.0)

    def _add(self, pool: str, seconds: float) -> None:
        self._ended_seconds[pool] += seconds
        self._num_ended[pool] += 1

    def update(self) -> None:
        """Take note of what runs now; to be called about once a second."""
        now = time.monotonic()
        self._running = {
            tracked.name: self._running.get(tracked.name, (tracked.pool, now))
            for tracked in self.run.jobs.list_unfinished()
            if tracked.state == "in-flight" and tracked.job and tracked.job.num_ready
        }
        if self.prices:
            self.run.jobs.cost = self.cost

    @property
    def cost(self) -> Cost:
        """The estimate so far, for the pools whose price is known."""
        seconds, now = defaultdict(float, self._ended_seconds), time.monotonic()
        for pool, since in self._running.values():
            seconds[pool] += now - since
        amount = sum(price * seconds[pool] / SECONDS_PER_HOUR for pool, price in self.prices.items())
        return Cost(amount=amount, currency=self.run.renderer.profile.currency)

    def has_room(self, tracked: TrackedJob) -> bool:
        """Return whether the caps allow this Job on top of those that are unfinished.

        Every unfinished Job may take a node of its own. A cell that has not ended is expected to cost what those of its
        pool that have ended cost on average; as long as none has, its whole timeout. While no Job is unfinished, one is
        allowed until the estimate has reached the cap.
        """
        num_unfinished, max_cost = self.run.jobs.count(*UNFINISHED), self.run.max_cost
        if self.run.max_nodes is not None and num_unfinished >= self.run.max_nodes:
            return False
        if max_cost is None:
            return True
        if not num_unfinished and not self._num_ended[tracked.pool]:
            return self.cost.amount < max_cost
        seconds = {pool: self._expect_seconds(pool) for pool in self.prices}
        if self._num_ended[tracked.pool]:
            seconds[tracked.pool] += self._ended_seconds[tracked.pool] / self._num_ended[tracked.pool]
        else:
            seconds[tracked.pool] += tracked.repeat.planned.timeout_seconds
        return sum(price * seconds[pool] / SECONDS_PER_HOUR for pool, price in self.prices.items()) <= max_cost

    def _expect_seconds(self, pool: str) -> float:
        """Return what the cells of a pool will have taken when all that are unfinished have ended."""
        ended, number = self._ended_seconds[pool], self._num_ended[pool]
        if number:
            return ended + self.run.jobs.count(*UNFINISHED, pool=pool) * ended / number
        unfinished = (tracked for tracked in self.run.jobs.list_unfinished() if tracked.pool == pool)
        return ended + sum(tracked.repeat.planned.timeout_seconds for tracked in unfinished)


def check_prices(profile: Profile, pools: Iterable[NodePools], max_cost: float | None) -> None:
    """Raise UserError if the cost is to be capped and a pool that the run needs has no price."""
    for name in sorted(set(pools)) if max_cost is not None else ():
        if name in profile.pools and profile.pools[name].price_per_hour is None:
            raise UserError(
                f"--max-cost: profile {profile.name}: pools.{name}.price_per_hour: is missing; write what a node of "
                f"this pool costs per hour in {profile.currency}, name its machine type (--machine {name}=MACHINE), or "
                "leave --max-cost out (--max-nodes needs no price)"
            )
