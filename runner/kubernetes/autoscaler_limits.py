"""Read how far an autoscaler may grow a pool, where the Kubernetes API says so.

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

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from runner.kubernetes.api_errors import ApiError
from runner.kubernetes.connection import SHORT_PATIENCE_SECONDS, Connection
from runner.kubernetes.fit import NodeStatus, list_label_misfits, list_untolerated
from runner.kubernetes.node_affinity import list_required_terms
from runner.kubernetes.node_labels import read_quantity
from runner.kubernetes.pod_requests import sum_requests

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
        return read_node_pools(connection)
    except ApiError:
        return []


def read_node_pools(connection: Connection) -> list[dict[str, Any]]:
    """Return Karpenter's NodePools; ApiError where there is no Karpenter (404), or they may not be listed."""
    return connection.read_items(NODE_POOLS, lambda item: item, patience_seconds=SHORT_PATIENCE_SECONDS)


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
    """Return the labels that all nodes of a NodePool have."""
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
    """Yield the labels that a pod asks for, each with the values that it takes."""
    for key, value in pod.get("nodeSelector", {}).items():
        yield key, (value,)
    for term in list_required_terms(pod):
        for rule in term.get("matchExpressions", ()):
            if rule["operator"] == "In":
                yield rule["key"], rule["values"]


def _is_in_family(value: str, allowed: Mapping[str, Sequence[str]]) -> bool:
    """Return whether a machine type, if it is one, is of a family that the NodePool allows."""
    families = allowed.get("karpenter.k8s.aws/instance-family") or allowed.get("eks.amazonaws.com/instance-family")
    return families is None or "." not in value or value.partition(".")[0] in families


def _read_allowed(template: Mapping[str, Any]) -> dict[str, list[str]]:
    """Return the values that a NodePool allows for a label, of those for which it names them."""
    requirements: Sequence[Mapping[str, Any]] = template["spec"].get("requirements") or ()
    return {
        rule["key"]: [str(value) for value in rule.get("values") or ()]
        for rule in requirements
        if rule.get("operator") == "In"
    }
