"""Read what labels and the status of a Node object say of its machine.

Machine type, region and zone: https://kubernetes.io/docs/reference/labels-annotations-taints/
"""

from collections.abc import Mapping
from decimal import Decimal
from typing import Any

from kubernetes.utils.quantity import parse_quantity

from bench.schema import Node

MAX_QUANTITY, MIN_QUANTITY = 2**63, Decimal("1e-9")
"""The API server holds quantities in 64 bits and rounds fractions up to nanos:
https://kubernetes.io/docs/reference/kubernetes-api/common-definitions/quantity/"""
INSTANCE_TYPE = "node.kubernetes.io/instance-type"
REGION = "topology.kubernetes.io/region"
ZONE = "topology.kubernetes.io/zone"
SPOT_VALUES: Mapping[str, frozenset[str]] = {
    # https://cloud.google.com/kubernetes-engine/docs/concepts/spot-vms
    "cloud.google.com/gke-spot": frozenset({"true"}),
    # https://cloud.google.com/kubernetes-engine/docs/how-to/preemptible-vms
    "cloud.google.com/gke-preemptible": frozenset({"true"}),
    # https://docs.aws.amazon.com/eks/latest/userguide/managed-node-groups.html
    "eks.amazonaws.com/capacityType": frozenset({"SPOT"}),
    # https://karpenter.sh/docs/concepts/scheduling/
    "karpenter.sh/capacity-type": frozenset({"spot"}),
    # https://learn.microsoft.com/azure/aks/spot-node-pool
    "kubernetes.azure.com/scalesetpriority": frozenset({"spot"}),
}
"""Labels that say whether a machine is spot, with the values that mean yes."""
MARKED_ONLY_WHEN_SPOT = ("cloud.google.com/gke-nodepool", "kubernetes.azure.com/cluster")
"""Labels of every node of GKE and AKS, which label spot machines only: without such a label a machine is none."""
GPU_LABELS = (
    # https://github.com/NVIDIA/k8s-device-plugin/blob/main/docs/gpu-feature-discovery/README.md
    "nvidia.com/gpu.product",
    "nvidia.com/gpu.count",
    "nvidia.com/gpu.memory",
    "nvidia.com/gpu.sharing-strategy",
    "nvidia.com/mig.strategy",
    "nvidia.com/cuda.driver-version.full",
    "cloud.google.com/gke-accelerator",
    "cloud.google.com/gke-gpu-driver-version",
    "k8s.amazonaws.com/accelerator",
    "karpenter.k8s.aws/instance-gpu-name",
    "eks.amazonaws.com/instance-gpu-name",
)


def describe_node(node: Mapping[str, Any]) -> Node:
    """Return what a Node object says of its machine; what it does not say is unknown."""
    labels: Mapping[str, str] = node["metadata"].get("labels") or {}
    status: Mapping[str, Any] = node.get("status") or {}
    info: Mapping[str, str] = status.get("nodeInfo") or {}
    is_spot, capacity_label = find_capacity_type(labels)
    cpus = (status.get("capacity") or {}).get("cpu")
    return Node(
        instance_type=labels.get(INSTANCE_TYPE),
        region=labels.get(REGION),
        zone=labels.get(ZONE),
        is_spot=is_spot,
        capacity_label=capacity_label,
        kubelet_version=info.get("kubeletVersion") or None,
        container_runtime=info.get("containerRuntimeVersion") or None,
        os_image=info.get("osImage") or None,
        num_cpus=int(read_quantity(cpus)) or None if cpus else None,
        gpu_labels={name: labels[name] for name in GPU_LABELS if name in labels},
    )


def find_capacity_type(labels: Mapping[str, str]) -> tuple[bool | None, str | None]:
    """Return whether the machine is spot, None if no label says, and the label that says so, `KEY=VALUE`."""
    found = [name for name in SPOT_VALUES if name in labels]
    spot = [name for name in found if labels[name] in SPOT_VALUES[name]]
    for name in (*spot, *found):
        return bool(spot), f"{name}={labels[name]}"
    return (False if any(name in labels for name in MARKED_ONLY_WHEN_SPOT) else None), None


def read_quantity(text: str | float) -> Decimal:
    """Return a quantity of Kubernetes, such as `500m` or `4Gi`, in cores, bytes or pieces; ValueError if it is none."""
    try:
        amount: Decimal = parse_quantity(text)  # type: ignore[no-untyped-call]
        is_right = amount.is_finite() and (not amount or MIN_QUANTITY <= abs(amount) <= MAX_QUANTITY)
    except (ValueError, ArithmeticError):
        is_right = False
    if not is_right:
        raise ValueError(f"{str(text)[:40]!r} is no quantity such as 500m or 4Gi")
    return amount
