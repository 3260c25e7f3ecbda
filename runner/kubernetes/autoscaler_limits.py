"""How far an autoscaler may grow a pool, where the Kubernetes API says so.

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

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from runner.kubernetes.api_errors import ApiError
from runner.kubernetes.connection import Connection
from runner.kubernetes.doctor.node_fit import NodeStatus, list_label_misfits, list_untolerated
from runner.kubernetes.node_labels import read_quantity
from runner.kubernetes.pod_requests import sum_requests

NODE_POOLS = "/apis/karpenter.sh/v1/nodepools"
PATIENCE_SECONDS = 10.0
"""How long the request is tried again: a run goes on without its answer."""


def list_node_pools(connection: Connection) -> list[dict[str, Any]]:
    """Return Karpenter's NodePools; none where there is no Karpenter, or they may not be listed."""
    try:
        return connection.read_items(NODE_POOLS, lambda item: item, patience_seconds=PATIENCE_SECONDS)
    except ApiError:
        return []


def count_cells_within_limits(pod: Mapping[str, Any], node_pools: Iterable[Mapping[str, Any]]) -> int:
    """Return how many pods like this one the limits of the NodePools allow that may make nodes for it.

    0 where no NodePool that may has a limit on something that the pod requests: then nothing is known. Of the
    requirements of a NodePool, only those with `In` and one value are taken for labels of its nodes. A NodePool whose
    nodes might lack a label that the pod asks for does not count.
    """
    return sum(_count_in_node_pool(pod, node_pool["spec"]) for node_pool in node_pools)


def _count_in_node_pool(pod: Mapping[str, Any], spec: Mapping[str, Any]) -> int:
    template = spec["template"]
    node = NodeStatus(
        name="",
        labels=_read_labels(template),
        taints=tuple(template["spec"].get("taints") or ()),
        is_cordoned=False,
        is_ready=True,
        free={},
    )
    if any(list_label_misfits(pod, node)) or any(list_untolerated(pod.get("tolerations", ()), node)):
        return 0
    limits = {name: read_quantity(str(amount)) for name, amount in (spec.get("limits") or {}).items()}
    requests = {name: amount for name, amount in sum_requests(pod).items() if amount and name in limits}
    return min((int(limits[name] // amount) for name, amount in requests.items()), default=0)


def _read_labels(template: Mapping[str, Any]) -> dict[str, str]:
    requirements: Sequence[Mapping[str, Any]] = template["spec"].get("requirements") or ()
    fixed = {
        rule["key"]: str(rule["values"][0])
        for rule in requirements
        if rule.get("operator") == "In" and len(rule.get("values") or ()) == 1
    }
    return fixed | dict((template.get("metadata") or {}).get("labels") or {})
