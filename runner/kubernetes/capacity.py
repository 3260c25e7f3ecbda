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
from functools import partial
from typing import Any

from bench.errors import UserError
from bench.schema import Result, Run, measure_attempt
from runner.kubernetes.connection import SHORT_PATIENCE_SECONDS, ApiError, Connection
from runner.kubernetes.dispatcher import Dispatcher
from runner.kubernetes.fit import (
    NodeStatus,
    fit_pod,
    list_label_misfits,
    list_untolerated,
    read_node_status,
    sum_requests,
)
from runner.kubernetes.objects import list_required_terms, read_quantity
from runner.kubernetes.rendering import JobRenderer
from runner.kubernetes.tracked_jobs import Cost, TrackedJob, TrackedJobs
from runner.profiles.model import NodePools, Profile
from runner.records import RepeatKey

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
    name = node_pool["metadata"]["name"]
    node = NodeStatus(
        name="",
        labels=_choose_labels(pod, template) | _read_labels(template) | {NODE_POOL_LABEL: name},
        taints=tuple(template["spec"].get("taints") or ()),
        is_cordoned=False,
        is_ready=True,
        free={},
    )
    yield from list_label_misfits(pod, node)
    yield from list_untolerated(pod.get("tolerations", ()), node)


def _count_in_node_pool(pod: Mapping[str, Any], node_pool: Mapping[str, Any]) -> int:
    spec = node_pool["spec"]
    if any(list_node_pool_misfits(pod, node_pool)):
        return 0
    limits = {name: read_quantity(str(amount)) for name, amount in (spec.get("limits") or {}).items()}
    requests = {name: amount for name, amount in sum_requests(pod).items() if amount and name in limits}
    return min((int(limits[name] // amount) for name, amount in requests.items()), default=0)


def _read_labels(template: Mapping[str, Any]) -> dict[str, str]:
    fixed = {key: values[0] for key, values in _read_allowed(template).items() if len(values) == 1}
    return fixed | dict((template.get("metadata") or {}).get("labels") or {})


def _choose_labels(pod: Mapping[str, Any], template: Mapping[str, Any]) -> dict[str, str]:
    """Return the labels that the nodes made for this pod would get, of those that Karpenter chooses a value for.

    Those are architecture, system, machine type and the like: it takes one that the pod asks for, of those that the
    NodePool allows, or any if it says nothing of that label.
    https://karpenter.sh/docs/concepts/scheduling/#well-known-labels
    """
    allowed = _read_allowed(template)
    chosen = {}
    for key, values in _list_wanted(pod):
        if not key.startswith(CHOSEN_PREFIXES) and key not in allowed:
            continue
        fitting = [value for value in values if value in allowed.get(key, values) and _is_in_family(value, allowed)]
        if fitting:
            chosen[key] = fitting[0]
    return chosen


def _list_wanted(pod: Mapping[str, Any]) -> Iterator[tuple[str, Sequence[str]]]:
    for key, value in pod.get("nodeSelector", {}).items():
        yield key, (value,)
    for term in list_required_terms(pod):
        for rule in term.get("matchExpressions", ()):
            if rule["operator"] == "In":
                yield rule["key"], rule["values"]


def _is_in_family(value: str, allowed: Mapping[str, Sequence[str]]) -> bool:
    families = allowed.get("karpenter.k8s.aws/instance-family") or allowed.get("eks.amazonaws.com/instance-family")
    return families is None or "." not in value or value.partition(".")[0] in families


def _read_allowed(template: Mapping[str, Any]) -> dict[str, list[str]]:
    requirements: Sequence[Mapping[str, Any]] = template["spec"].get("requirements") or ()
    return {
        rule["key"]: [str(value) for value in rule.get("values") or ()]
        for rule in requirements
        if rule.get("operator") == "In"
    }


JOBS_PER_CELL = 2
"""Unfinished Jobs for each cell that fits: one that runs, and one whose pod takes its place at once."""
MIN_PARALLEL = 2
"""Unfinished Jobs of a pool without nodes, as for one node: an autoscaler adds the first node for a pod that waits."""
UNKNOWN_PARALLEL = 20
"""Unfinished Jobs of a pool whose nodes the runner may not list: enough for ten nodes. The user is told."""
REFRESH_SECONDS = 120.0
"""How often nodes are listed: cluster autoscalers need about as long to add one."""


@dataclass(frozen=True, kw_only=True)
class PoolNodes:
    """What the cluster says of the nodes of a pool, or of those of them that share their GPUs in one way."""

    num_fitting: int
    """Cells that the nodes can hold at once, if nothing else runs there."""
    num_allowed: int
    """Cells that the pool's autoscaler may make room for, where it says so; otherwise 0."""


@dataclass(kw_only=True)
class PoolCapacity:
    """Knows the limit of each pool, on the main thread."""

    dispatcher: Dispatcher
    connection: Connection
    renderer: JobRenderer
    is_known: bool = False
    """Whether the limits are known, so that Jobs may be submitted."""
    _pods: dict[str, Sequence[Mapping[str, Any]]] = field(default_factory=dict, repr=False)
    """By the kind of nodes, for those that are counted: the spec of a pod of each size."""
    _pools: dict[str, str] = field(default_factory=dict, repr=False)
    """The pool that each kind of nodes is of."""
    _maxima: dict[str, int] = field(default_factory=dict, repr=False)
    """By pool: what the profile says."""
    _num_at_start: dict[str, int] = field(default_factory=dict, repr=False)
    _limits: dict[str, int] = field(default_factory=dict, repr=False)
    """By the kind of nodes."""
    _next_refresh: float = 0.0

    def begin(self, jobs: Iterable[TrackedJob]) -> None:
        samples: defaultdict[str, dict[tuple[int, int], TrackedJob]] = defaultdict(dict)
        for tracked in jobs:
            cell = tracked.repeat.planned.cell
            samples[tracked.node_kind].setdefault((cell.num_gpus, cell.tenants), tracked)
        for kind, by_size in samples.items():
            cell = next(iter(by_size.values())).repeat.planned.cell
            self._pools[kind] = cell.device
            maximum = self.renderer.profile.pools[cell.device].max_parallel
            if maximum is not None:
                self._maxima[cell.device] = maximum
            elif self.renderer.queue is None:  # a queue admits Jobs as its quota allows: until then they have no pods
                self._pods[kind] = [self._render_pod(tracked) for tracked in by_size.values()]
        self.is_known = not self._pods
        self.refresh()

    def _render_pod(self, tracked: TrackedJob) -> Mapping[str, Any]:
        job = json.loads(self.renderer.render(tracked.repeat.planned, tracked.key))
        pod: Mapping[str, Any] = job["spec"]["template"]["spec"]
        return pod

    def refresh(self) -> None:
        """Look for nodes that came or went, if that was not done lately; to be called about once a second."""
        now = time.monotonic()
        if self._pods and now >= self._next_refresh:
            self._next_refresh = now + REFRESH_SECONDS
            self.dispatcher.request(self._count_nodes, self._handle_nodes)

    def find_maximum(self, pool: str) -> int | None:
        """Return how many Jobs of a pool the profile allows to be unfinished at once; None: it does not say."""
        return self._maxima.get(pool)

    def find_limit(self, node_kind: str) -> int | None:
        """Return how many Jobs that need these nodes may be unfinished at once; None: profile or queue decide."""
        return self._limits.get(node_kind)

    def _count_nodes(self) -> Mapping[str, PoolNodes] | None:
        """Return what the cluster says of each kind of nodes; None if the nodes cannot be listed."""
        read = partial(read_node_status, taken={})
        try:
            nodes = self.connection.read_items("/api/v1/nodes", read, patience_seconds=SHORT_PATIENCE_SECONDS)
        except ApiError:
            return None
        node_pools = list_node_pools(self.connection)
        return {
            kind: PoolNodes(
                num_fitting=count_any_cells(pods, nodes),
                num_allowed=max(count_cells_within_limits(pod, node_pools) for pod in pods),
            )
            for kind, pods in self._pods.items()
        }

    def _handle_nodes(self, found: Mapping[str, PoolNodes] | None) -> None:
        for kind in self._pods:
            if found is not None:
                nodes = found[kind]
                at_start = self._num_at_start.setdefault(kind, nodes.num_fitting)
                self._limits[kind] = find_limit(nodes, at_start)
                if not (self.is_known or nodes.num_fitting or nodes.num_allowed):
                    self._warn_of_empty_pool(kind)
            elif kind not in self._limits:
                self._limits[kind] = UNKNOWN_PARALLEL
                self.dispatcher.warn(
                    f"the nodes of the pool {kind} are unknown, since they cannot be listed: at most "
                    f"{UNKNOWN_PARALLEL} of its Jobs are unfinished at once; set {self._name_key(kind)} in the "
                    "profile, or grant `list` on `nodes` (`benchmatrix doctor` says how)"
                )
        self.is_known = True

    def _warn_of_empty_pool(self, kind: str) -> None:
        self.dispatcher.warn(
            f"no node can take a cell of the pool {kind} at present: {MIN_PARALLEL} of its Jobs are submitted at once; "
            f"if an autoscaler is to add more nodes than that, set {self._name_key(kind)} in the profile"
        )

    def _name_key(self, kind: str) -> str:
        return f"pools.{self._pools[kind]}.max_parallel"


def find_limit(nodes: PoolNodes, num_at_start: int) -> int:
    """Return how many Jobs may be unfinished at once. `num_at_start`: what fitted when the runner began."""
    return max(MIN_PARALLEL, JOBS_PER_CELL * num_at_start, nodes.num_fitting, nodes.num_allowed)


def count_any_cells(pods: Sequence[Mapping[str, Any]], nodes: Sequence[NodeStatus]) -> int:
    if all("podAntiAffinity" in pod.get("affinity", {}) for pod in pods):
        return len({node.name for pod in pods for node in fit_pod(pod, nodes).fitting})
    return max(count_cells(pod, nodes) for pod in pods)


def count_cells(pod: Mapping[str, Any], nodes: Sequence[NodeStatus]) -> int:
    """Return how many pods like this one the nodes can hold at once, if nothing else runs on them.

    Pods that keep others like them off their node (`is_alone_on_node`) have one node each.
    """
    fitting = fit_pod(pod, nodes).fitting
    if "podAntiAffinity" in pod.get("affinity", {}):
        return len(fitting)
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
# bound: booting nodes, pulling images,
# nodes that are idle before, between and after cells, attempts that left no terminal record, disks, traffic and the
# control plane are not in it. For cells that share a node it is too high: each counts as a whole node.

SECONDS_PER_HOUR = 3600.0


@dataclass(kw_only=True)
class Spending:
    """Adds up what the cells of a run take, on the main thread."""

    prices: Mapping[str, float]
    """Of a node, per hour, by pool. A pool that is missing has no known price."""
    currency: str
    max_nodes: int | None = None
    max_cost: float | None = None
    _ended_seconds: defaultdict[str, float] = field(default_factory=lambda: defaultdict(float), repr=False)
    """By pool: what its terminal records took."""
    _num_ended: Counter[str] = field(default_factory=Counter, repr=False)
    _running_since: dict[str, float] = field(default_factory=dict, repr=False)
    """When (time.monotonic) a cell was first seen to run, by the name of its Job."""
    _running_seconds: defaultdict[str, float] = field(default_factory=lambda: defaultdict(float), repr=False)

    @classmethod
    def of(cls, profile: Profile, *, max_nodes: int | None, max_cost: float | None) -> "Spending":
        """Return the spending of a run that has no record yet."""
        prices: dict[str, float] = {
            name: pool.price_per_hour for name, pool in profile.pools.items() if pool.price_per_hour is not None
        }
        return cls(prices=prices, currency=profile.currency, max_nodes=max_nodes, max_cost=max_cost)

    def add_records(self, run: Run, seconds: Mapping[RepeatKey, float]) -> None:
        """Add what the records took that the store had at the start."""
        pools = {planned.cell.cell_id: planned.cell.device for planned in run.cells}
        for (cell_id, _), duration in seconds.items():
            if cell_id in pools:
                self._ended_seconds[pools[cell_id]] += duration
                self._num_ended[pools[cell_id]] += 1

    def add(self, tracked: TrackedJob, result: Result) -> None:
        self._running_since.pop(tracked.name, None)
        self._ended_seconds[tracked.pool] += measure_attempt(result.started_at, result.finished_at) or 0.0
        self._num_ended[tracked.pool] += 1

    def update(self, jobs: TrackedJobs) -> None:
        """Take note of what runs now; to be called about once a second."""
        now = time.monotonic()
        running = [
            tracked
            for tracked in jobs.list_unfinished()
            if tracked.state == "in-flight" and tracked.job and tracked.job.num_ready
        ]
        self._running_since = {tracked.name: self._running_since.get(tracked.name, now) for tracked in running}
        self._running_seconds.clear()
        for tracked in running:
            self._running_seconds[tracked.pool] += now - self._running_since[tracked.name]
        if self.prices:
            jobs.cost = Cost(amount=self.cost, currency=self.currency)

    def __str__(self) -> str:
        return str(Cost(amount=self.cost, currency=self.currency))

    @property
    def cost(self) -> float:
        """The estimate so far, for the pools whose price is known."""
        return sum(
            price * (self._ended_seconds[pool] + self._running_seconds[pool]) / SECONDS_PER_HOUR
            for pool, price in self.prices.items()
        )

    def has_room(self, tracked: TrackedJob, jobs: TrackedJobs) -> bool:
        """Return whether the caps allow this Job on top of those that are unfinished.

        Every unfinished Job may take a node of its own. A cell that has not ended is expected to cost what those of its
        pool that have ended cost on average; as long as none has, its whole timeout. While no Job is unfinished, one is
        allowed until the estimate has reached the cap.
        """
        num_unfinished = jobs.count("submitting", "in-flight")
        if self.max_nodes is not None and num_unfinished >= self.max_nodes:
            return False
        if self.max_cost is None:
            return True
        if not num_unfinished and not self._num_ended[tracked.pool]:
            return self.cost < self.max_cost
        return self._expect_cost(tracked, jobs) <= self.max_cost

    def _expect_cost(self, tracked: TrackedJob, jobs: TrackedJobs) -> float:
        """Return what the run will have cost when this Job and all that are unfinished have ended."""
        expected = self._expect_cell_cost(tracked) + sum(
            price * self._ended_seconds[pool] / SECONDS_PER_HOUR for pool, price in self.prices.items()
        )
        for pool in self.prices:
            num_unfinished = jobs.count_in_pool(pool, "submitting", "in-flight")
            if num_unfinished and self._num_ended[pool]:
                expected += num_unfinished * self._find_mean_cost(pool)
            elif num_unfinished:
                unfinished = (other for other in jobs.list_unfinished() if other.pool == pool)
                expected += sum(map(self._expect_cell_cost, unfinished))
        return expected

    def _expect_cell_cost(self, tracked: TrackedJob) -> float:
        if self._num_ended[tracked.pool]:
            return self._find_mean_cost(tracked.pool)
        return self.prices[tracked.pool] * tracked.repeat.planned.timeout_seconds / SECONDS_PER_HOUR

    def _find_mean_cost(self, pool: str) -> float:
        return self.prices[pool] * self._ended_seconds[pool] / self._num_ended[pool] / SECONDS_PER_HOUR


def check_prices(profile: Profile, pools: Iterable[NodePools], max_cost: float | None) -> None:
    """Raise UserError if the cost is to be capped and a pool that the run needs has no price."""
    if max_cost is None:
        return
    for name in sorted(set(pools)):
        if (
            pool := {str(key): found for key, found in profile.pools.items()}.get(name)
        ) and pool.price_per_hour is None:
            raise UserError(
                f"--max-cost: profile {profile.name}: pools.{name}.price_per_hour: is missing; write what a node of "
                f"this pool costs per hour in {profile.currency}, name its machine type (--machine {name}=MACHINE), or "
                "leave --max-cost out (--max-nodes needs no price)"
            )
