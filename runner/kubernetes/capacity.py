"""Which nodes can hold a pod, how many Jobs of a pool wait at once, what a run may cost, and what a queue waits for."""

import json
import re
import time
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from decimal import Decimal
from functools import cached_property, partial
from http import HTTPStatus
from operator import attrgetter
from typing import Any

from bench.errors import UserError
from bench.schema import Result
from runner.kubernetes.connection import SHORT_PATIENCE_SECONDS, ApiError, Connection
from runner.kubernetes.failures import WARN_SECONDS
from runner.kubernetes.objects import INSTANCE_TYPE, list_required_terms, read_quantity
from runner.kubernetes.tracked_jobs import UNFINISHED, CellKind, Cost, OngoingRun, TrackedJob
from runner.matrix import RepeatKey
from runner.profiles.model import NodePools, Profile
from runner.runs import measure_attempt

# Which nodes can hold a pod is decided as by the scheduler's TaintToleration, NodeAffinity and NodeResourcesFit, on
# empty nodes: what runs there now will end. Nodes that are cordoned or not ready have taints.
# https://kubernetes.io/docs/reference/scheduling/config/#scheduling-plugins
# https://kubernetes.io/docs/concepts/scheduling-eviction/taint-and-toleration/
KEEPING_AWAY = ("NoSchedule", "NoExecute")
GIB = 2**30
BYTES = ("memory", "ephemeral-storage")
"""Resources that are counted in bytes."""


@dataclass(frozen=True, kw_only=True)
class NodeStatus:
    """The parts of a node that decide which pods it can hold."""

    name: str
    labels: Mapping[str, str]
    taints: tuple[Mapping[str, str], ...]
    allocatable: Mapping[str, Decimal]
    """Bytes, cores, GPUs."""

    @property
    def kind(self) -> str:
        parts = [f"{float(self.allocatable.get('cpu', 0)):.3g} CPUs"]
        parts.append(f"{float(self.allocatable.get('memory', 0)) / GIB:.3g} GiB")
        parts += [f"{amount} {name}" for name, amount in sorted(self.allocatable.items()) if "/" in name and amount]
        return f"{self.labels.get(INSTANCE_TYPE, 'no instance type')}, {', '.join(parts)}"


def read_node_status(node: Mapping[str, Any]) -> NodeStatus:
    allocatable = node.get("status", {}).get("allocatable", {})
    return NodeStatus(
        name=node["metadata"]["name"],
        labels=node["metadata"].get("labels", {}),
        taints=tuple(node.get("spec", {}).get("taints", ())),
        allocatable={name: read_quantity(amount) for name, amount in allocatable.items()},
    )


def fit_pod(spec: Mapping[str, Any], nodes: Sequence[NodeStatus]) -> dict[str, list[NodeStatus]]:
    """Return the nodes by why they could not hold a pod if nothing ran there; empty: they could."""
    groups: defaultdict[str, list[NodeStatus]] = defaultdict(list)
    for node in nodes:
        groups[", ".join(list_misfits(spec, node))].append(node)
    return groups


def describe_fit(groups: Mapping[str, Sequence[NodeStatus]]) -> tuple[str, ...]:
    """Return a line for each group of nodes that `fit_pod` found, those that can hold the pod first."""
    kinds = Counter(node.kind for node in groups.get("", ()))
    lines = [f"{number} can: {kind}" for kind, number in kinds.items()]
    for reasons, nodes in groups.items():
        if reasons:
            words = "; ".join(dict.fromkeys(node.kind for node in nodes))
            more = ", ..." if len(nodes) > 1 else ""
            lines.append(f"{len(nodes)} cannot ({nodes[0].name}{more}: {words}): {reasons}")
    return tuple(lines)


def list_misfits(spec: Mapping[str, Any], node: NodeStatus) -> Iterator[str]:
    for taint in node.taints:
        if taint["effect"] in KEEPING_AWAY and not any(_tolerates(one, taint) for one in spec.get("tolerations", ())):
            value = f"={taint['value']}" if taint.get("value") else ""
            yield f"taint {taint['key']}{value}:{taint['effect']} is not tolerated"
    yield from list_label_misfits(spec, node)
    for name, amount in sum_requests(spec).items():
        free = node.allocatable.get(name, Decimal(0))
        if free < amount:
            there = format_amount(name, free) if free > 0 else "none"
            yield f"{name}: {format_amount(name, amount)} wanted, {there} there"


def list_label_misfits(spec: Mapping[str, Any], node: NodeStatus) -> Iterator[str]:
    for key, value in spec.get("nodeSelector", {}).items():
        if key not in node.labels:
            yield f"no label {key}={value}"
        elif node.labels[key] != value:
            yield f"{key} is {node.labels[key]}, not {value}"
    terms = list_required_terms(spec)
    failures = [[_explain_rule(rule, node.labels) for rule in term["matchExpressions"]] for term in terms]
    if failures and all(map(any, failures)):
        yield " nor ".join(next(filter(None, texts)) for texts in failures)


def _tolerates(toleration: Mapping[str, str], taint: Mapping[str, str]) -> bool:
    if toleration.get("effect") not in (None, taint["effect"]) or toleration.get("key") not in (None, taint["key"]):
        return False
    return toleration.get("operator") == "Exists" or toleration.get("value", "") == taint.get("value", "")


def _explain_rule(rule: Mapping[str, Any], labels: Mapping[str, str]) -> str:
    """Return why a node with these labels does not meet a requirement on them; empty if it does."""
    key, values, found = rule["key"], rule.get("values", ()), labels.get(rule["key"])
    match rule["operator"]:
        case "Exists":
            return "" if found is not None else f"no label {key}"
        case "DoesNotExist":
            return "" if found is None else f"has the label {key}={found}"
        case "NotIn":  # holds without the label too
            return f"has the label {key}={found}" if found in values else ""
    more = f" (or {len(values) - 1} others)" if len(values) > 1 else ""
    return "" if found in values else f"no label {key}={values[0]}{more}"


def format_amount(name: str, amount: Decimal) -> str:
    return f"{float(amount) / GIB:.4g} GiB" if name in BYTES else f"{float(amount):.4g}"


def sum_requests(spec: Mapping[str, Any]) -> dict[str, Decimal]:
    total: defaultdict[str, Decimal] = defaultdict(Decimal)
    for container in spec["containers"]:
        for name, amount in container.get("resources", {}).get("requests", {}).items():
            total[name] += read_quantity(amount)
    return dict(total)


# How many Jobs of a pool are unfinished at once: what the profile says, else twice what its nodes can hold.
# A pod that waits for a node makes an autoscaler add one. So no more Jobs are submitted than give every node its next
# cell: twice the cells that fit on the nodes that the runner finds at its start. Nodes that are added later count once;
# otherwise the pods that wait would add nodes, which would let more pods wait, without end.
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
    """Knows, on the main thread, how many Jobs of each kind of nodes may be unfinished at once.

    Whole GPUs and each way of sharing are counted apart: cells of one kind do not hold up others.
    """

    run: OngoingRun
    is_known: bool = False
    """Whether the limits are known, so that Jobs may be submitted."""
    _pods: dict[tuple[NodePools, str], list[Mapping[str, Any]]] = field(default_factory=dict, repr=False)
    """By pool and kind of nodes, for those that are counted: the spec of a pod of each size."""
    _num_at_start: dict[str, int] = field(default_factory=dict, repr=False)
    _limits: dict[str, int] = field(default_factory=dict, repr=False)
    """By the kind of nodes."""
    _next_refresh: float = 0.0

    def begin(self) -> None:
        samples: dict[tuple[NodePools, str], dict[CellKind, TrackedJob]] = {}
        # A queue admits Jobs as its quota allows: until then they have no pods.
        for tracked in self.run.jobs if self.run.renderer.queue is None else ():
            if self._find_maximum(tracked.pool) is None:
                samples.setdefault((tracked.pool, tracked.node_kind), {}).setdefault(tracked.cell_kind, tracked)
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

    def _count_nodes(self) -> Mapping[str, int] | None:
        """Return by kind of nodes how many cells they hold; None if the nodes cannot be listed."""
        read, patience = read_node_status, SHORT_PATIENCE_SECONDS
        try:
            nodes = self.run.connection.read_items("/api/v1/nodes", read, patience_seconds=patience)
        except ApiError:
            return None
        return {kind: count_cells(pods, nodes) for (_, kind), pods in self._pods.items()}

    def _handle_nodes(self, found: Mapping[str, int] | None) -> None:
        for pool, kind in self._pods:
            key = f"pools.{pool}.max_parallel"
            if found is not None:
                at_start = self._num_at_start.setdefault(kind, found[kind])
                self._limits[kind] = find_limit(found[kind], at_start)
                if not (self.is_known or found[kind]):
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


def find_limit(num_fitting: int, num_at_start: int) -> int:
    """Return how many Jobs may be unfinished at once. `num_at_start`: what fitted when the runner began."""
    return max(MIN_PARALLEL, JOBS_PER_CELL * num_at_start, num_fitting)


def count_cells(pods: Sequence[Mapping[str, Any]], nodes: Sequence[NodeStatus]) -> int:
    """Return how many pods like any of these the nodes can hold at once, if nothing else runs on them.

    Pods that keep others like them off their node (`is_alone_on_node`) have one node each.
    """
    if all("podAntiAffinity" in pod.get("affinity", {}) for pod in pods):
        return len({node.name for pod in pods for node in fit_pod(pod, nodes).get("", ())})
    counts = []
    for pod in pods:
        requests = {name: amount for name, amount in sum_requests(pod).items() if amount}
        fitting = fit_pod(pod, nodes).get("", ())
        counts.append(
            sum(min(int(node.allocatable[name] // amount) for name, amount in requests.items()) for node in fitting)
        )
    return max(counts)


# The estimated cost of a whole run, whichever runners handled it:
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
    """Adds up what the cells of a run cost, and says whether its cap leaves room for a Job; on the main thread."""

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
        self._add(tracked.pool, measure_attempt(result.started_at, result.finished_at))

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
        """What the run has cost so far, about, of the pools whose price is known."""
        seconds, now = defaultdict(float, self._ended_seconds), time.monotonic()
        for pool, since in self._running.values():
            seconds[pool] += now - since
        return Cost(amount=self._price(seconds), currency=self.run.renderer.profile.currency)

    def has_room(self, tracked: TrackedJob) -> bool:
        """Return whether the cap allows this Job on top of those that are unfinished.

        Every unfinished Job may take a node of its own. A cell that has not ended is expected to cost what those of its
        pool that have ended cost on average; as long as none has, its whole timeout. While no Job is unfinished, one is
        allowed until the estimate has reached the cap.
        """
        max_cost = self.run.bounds.max_cost
        if max_cost is None:
            return True
        if not self.run.jobs.count(*UNFINISHED) and not self._num_ended[tracked.pool]:
            return self.cost.amount < max_cost
        expected = defaultdict(float, {pool: self._expect_seconds(pool) for pool in self.prices})
        number = self._num_ended[tracked.pool]
        mean = self._ended_seconds[tracked.pool] / number if number else tracked.repeat.planned.timeout_seconds
        expected[tracked.pool] += mean
        return self._price(expected) <= max_cost

    def _expect_seconds(self, pool: str) -> float:
        """Return what the cells of a pool will have taken when all that are unfinished have ended."""
        ended, number = self._ended_seconds[pool], self._num_ended[pool]
        if number:  # asked for each Job: all are looked at only until a first one has ended
            return ended + self.run.jobs.count(*UNFINISHED, pool=pool) * ended / number
        unfinished = (each for each in self.run.jobs.list_unfinished() if each.pool == pool)
        return ended + sum(each.repeat.planned.timeout_seconds for each in unfinished)

    def _price(self, seconds: Mapping[str, float]) -> float:
        return sum(price * seconds[pool] / SECONDS_PER_HOUR for pool, price in self.prices.items())


def check_prices(profile: Profile, pools: Iterable[NodePools], max_cost: float | None) -> None:
    for name in sorted(set(pools)) if max_cost is not None else ():
        if name in profile.pools and profile.pools[name].price_per_hour is None:
            raise UserError(
                f"--max-cost: profile {profile.name}: pools.{name}.price_per_hour: is missing; write what a node of "
                f"this pool costs per hour in {profile.currency}, name its machine type (--machine {name}=MACHINE), or "
                "leave --max-cost out (--max-in-flight needs no price)"
            )


# Why Kueue does not start a suspended Job.
# Kueue makes a Workload of each Job that it manages, and says in the Workload's conditions what becomes of it:
# https://kueue.sigs.k8s.io/docs/concepts/workload/. Its API version v1beta1 is no longer served from Kueue 0.20 on
# (https://github.com/kubernetes-sigs/kueue/issues/13957); v1beta2 is served from 0.15 on
# (https://github.com/kubernetes-sigs/kueue/blob/main/CHANGELOG/CHANGELOG-0.15.md). What is read here is in both.
# A Job in a queue is never given up: its quota may come back, or its queue be started again, as long as the run lasts.
GROUP = "kueue.x-k8s.io"
JOB_UID_LABEL = "kueue.x-k8s.io/job-uid"
"""What Kueue ties a Workload to its Job by."""
MAX_UIDS = 50
"""How many Jobs one request asks about: their ids are in its URL, which servers on the way may limit to 8 KB."""
NO_KUEUE = f"the cluster has no Kueue ({GROUP}), which would start them"
NO_WORKLOAD = "Kueue has made no Workload of the Job: does it run, and does it manage the Jobs of this namespace?"
NO_REASON = "Kueue has not said why"


def find_api_version(connection: Connection) -> str | None:
    """Return the API version that the cluster prefers, such as `kueue.x-k8s.io/v1beta2`; None: it has no Kueue."""
    found = connection.find_object(f"/apis/{GROUP}")
    return None if found is None else str(found["preferredVersion"]["groupVersion"])


def explain_queued_jobs(connection: Connection, namespace: str, job_uids: Sequence[str]) -> dict[str, str]:
    """Return why Kueue has not started the suspended Jobs, by the Job's uid; Jobs that it has admitted are left out.

    Where the user may not list Workloads, or the server does not answer, that is what is said of each.
    """
    waits = dict.fromkeys(job_uids, NO_WORKLOAD)
    try:
        version = find_api_version(connection)
        if version is None:
            return dict.fromkeys(job_uids, NO_KUEUE)
        for begin in range(0, len(job_uids), MAX_UIDS):
            query = {"labelSelector": f"{JOB_UID_LABEL} in ({','.join(job_uids[begin : begin + MAX_UIDS])})"}
            query["resourceVersion"] = "0"  # from the server's cache
            for workload in connection.list_items(f"/apis/{version}/namespaces/{namespace}/workloads", **query):
                uid, wait = workload["metadata"]["labels"][JOB_UID_LABEL], read_wait(workload)
                if wait is None:
                    waits.pop(uid, None)
                else:
                    waits[uid] = wait
    except ApiError as error:
        hint = "`benchmatrix setup --queue QUEUE --user NAME` by an administrator allows it"
        may = f"; {hint}" if error.status == HTTPStatus.FORBIDDEN else ""
        return dict.fromkeys(job_uids, f"why they wait is not known: {error.message}{may}")
    return waits


def read_wait(workload: Mapping[str, Any]) -> str | None:
    """Return why a Workload waits, in Kueue's words as far as it has any; None if it is admitted or has finished."""
    status = workload.get("status") or {}
    conditions = {item["type"]: item for item in status.get("conditions") or ()}
    if any(conditions.get(name, {}).get("status") == "True" for name in ("Finished", "Admitted")):
        return None
    if workload["spec"].get("active") is False:
        return f"its Workload {workload['metadata']['name']} was deactivated"
    reserved = conditions.get("QuotaReserved", {})
    if reserved.get("status") == "True":
        pending = [item for item in status.get("admissionChecks") or () if item.get("state") != "Ready"]
        texts = [f"{item['name']} is {item.get('state')} {item.get('message', '')}".strip() for item in pending]
        return f"it has its quota and waits for admission checks: {'; '.join(texts) or 'none is named'}"
    return str(reserved.get("message", "")) or NO_REASON


READ_SECONDS = WARN_SECONDS
"""The Workloads of suspended Jobs are read so often: one request, which the API server answers from its cache."""
NUM_SAMPLES = 5
"""So many Jobs of a kind are asked about, the oldest: they request the same, and Kueue explains the one it tried."""
_NUMBERS = re.compile(r"\d+")


@dataclass(kw_only=True)
class QueuedJobs:
    """Tells why the suspended Jobs of a session wait; those of a kind of which others run merely wait their turn."""

    run: OngoingRun
    _waiting_since: dict[CellKind, float] = field(default_factory=dict, repr=False)
    """Since when (time.monotonic) there are suspended Jobs of a kind, and none that Kueue has started."""
    _next_request: float = 0.0

    def check(self) -> None:
        """Read the Workloads of suspended Jobs if it is time to; to be called about once a second."""
        now = time.monotonic()
        suspended: defaultdict[CellKind, list[TrackedJob]] = defaultdict(list)
        started: set[CellKind] = set()
        for tracked in self.run.jobs.list_unfinished():
            if tracked.state == "in-flight" and tracked.job is not None:
                if tracked.job.is_suspended:
                    suspended[tracked.cell_kind].append(tracked)
                else:
                    started.add(tracked.cell_kind)
        self._waiting_since = {kind: self._waiting_since.get(kind, now) for kind in suspended.keys() - started}
        due = [kind for kind, since in self._waiting_since.items() if now - since >= WARN_SECONDS]
        if due and now >= self._next_request:
            self._next_request = now + READ_SECONDS
            samples = [sorted(suspended[kind], key=attrgetter("job.created_at"))[:NUM_SAMPLES] for kind in due]
            uids = [tracked.job.uid for jobs in samples for tracked in jobs if tracked.job is not None]
            explain = partial(explain_queued_jobs, self.run.connection, self.run.namespace, uids)
            self.run.dispatcher.request(explain, partial(self._tell, samples))

    def _tell(self, samples: Sequence[Sequence[TrackedJob]], waits: Mapping[str, str]) -> None:
        for jobs in samples:
            # Some may have been started since.
            found = [each for each in jobs if each.job and each.job.is_suspended and each.job.uid in waits]
            if found and found[0].job:
                slug, message = found[0].repeat.planned.cell.slug, waits[found[0].job.uid]
                words = f"in the queue, not started: {message} (waiting: {slug}, for example)"
                self.run.dispatcher.warn(words, f"queue {found[0].node_kind} {_NUMBERS.sub('', message)}")
