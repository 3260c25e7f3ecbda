"""Checks of what adds nodes: Karpenter's NodePools, and how many Jobs of a pool a run would submit at once."""

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from http import HTTPStatus
from typing import Any

from runner.kubernetes.api_errors import ApiError
from runner.kubernetes.autoscaler_limits import (
    count_cells_within_limits,
    explain_unready,
    list_node_pool_misfits,
    read_node_pools,
)
from runner.kubernetes.doctor.cluster_inventory import ClusterInventory
from runner.kubernetes.doctor.context import CellKind, DoctorContext
from runner.kubernetes.doctor.findings import Finding, explain_unchecked
from runner.kubernetes.pool_capacity import PoolNodes, count_any_cells, find_limit
from runner.kubernetes.tracked_jobs import name_node_kind

NodePool = Mapping[str, Any]


def check_growth(context: DoctorContext, inventory: ClusterInventory) -> Iterator[Finding]:
    """Find whether a NodePool can make nodes for each kind of cell, and how far the runner lets each pool grow."""
    node_pools: Sequence[NodePool] | None = []
    try:
        node_pools = read_node_pools(context.connection)
    except ApiError as error:
        if error.status != HTTPStatus.NOT_FOUND:
            node_pools = None
            yield explain_unchecked("NodePools", error)
    else:
        for kind in {kind.place: kind for kind in context.kinds}.values():
            yield describe_node_pools(kind, node_pools)
    if context.target.queue is not None:  # the queue's quota decides how many Jobs have pods
        return
    by_nodes: defaultdict[str, list[CellKind]] = defaultdict(list)
    for kind in context.kinds:
        by_nodes[name_node_kind(kind.cell)].append(kind)
    for place, kinds in by_nodes.items():
        pods, pool = [kind.pod_spec for kind in kinds], kinds[0].cell.device
        nodes = PoolNodes(
            num_fitting=count_any_cells(pods, inventory.nodes),
            num_allowed=max(count_cells_within_limits(pod, node_pools or ()) for pod in pods),
        )
        maximum = context.profile.pools[pool].max_parallel
        yield describe_growth(place, nodes, maximum, pool=pool, autoscaler=inventory.autoscaler)


def describe_node_pools(kind: CellKind, node_pools: Sequence[NodePool]) -> Finding:
    """Return which NodePools can make a node for this kind of cell, and why others cannot."""
    check = f"NodePools for cells on {kind.place}"
    if not node_pools:
        message = "Karpenter is there, and has no NodePool: it makes no nodes"
        hint = "make one; docs/kubernetes.md has an example (EKS, Auto Mode)"
        return Finding(check=check, state="warning", message=message, hint=hint)
    reasons = {
        str(pool["metadata"]["name"]): ", ".join(list_node_pool_misfits(kind.pod_spec, pool)) for pool in node_pools
    }
    unready = {str(pool["metadata"]["name"]): explain_unready(pool) for pool in node_pools}
    fitting = [name for name, reason in reasons.items() if not reason]
    ready = [name for name in fitting if not unready[name]]
    details = tuple(
        f"{name}: {reasons[name] or unready[name] or 'can, by its labels and taints'}" for name in sorted(reasons)
    )
    if ready:
        message = (
            f"{', '.join(ready)} can make nodes for one, by labels and taints; the size of its machines is unknown"
        )
        return Finding(check=check, state="ok", message=message, details=details)
    if fitting:
        message = f"{', '.join(fitting)} could make nodes for one, and is not ready"
        hint = "mend what its condition names: kubectl describe nodepool"
    else:
        message = f"none of {len(node_pools)} NodePools makes a node that can take one"
        hint = "change the labels or taints of a NodePool, or `node_selector` and `tolerations` of the profile's pool"
    return Finding(check=check, state="warning", message=message, hint=hint, details=details)


def describe_growth(place: str, nodes: PoolNodes, maximum: int | None, *, pool: str, autoscaler: str) -> Finding:
    """Return how many Jobs a run would submit at once that need the nodes `place` of a pool, and what it rests on."""
    check = f"Jobs at once in the pool {place}"
    if maximum is not None:
        return Finding(check=check, state="ok", message=f"{maximum}, as pools.{pool}.max_parallel of the profile says")
    limit = find_limit(nodes, nodes.num_fitting)
    message = f"{limit}, since {nodes.num_fitting} fit on the nodes now"
    if nodes.num_allowed:
        return Finding(check=check, state="ok", message=f"{message} and Karpenter's limits allow {nodes.num_allowed}")
    hint = (
        f"an autoscaler will not be asked for more nodes than that, since how far it may grow the pool is not known: "
        f"set pools.{pool}.max_parallel in the profile to the most nodes that it should have"
    )
    if nodes.num_fitting:
        return Finding(check=check, state="ok", message=message, hint=hint if autoscaler else "")
    return Finding(check=check, state="warning", message=message, hint=hint)
