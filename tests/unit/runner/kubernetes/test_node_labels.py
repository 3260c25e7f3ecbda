"""runner.kubernetes.objects: what nodes of clouds say of their machines."""

from typing import Any

import pytest

from bench.schema import Node
from runner.kubernetes.objects import describe_node, find_capacity_type

GKE = {"cloud.google.com/gke-nodepool": "t4"}
AKS = {"kubernetes.azure.com/cluster": "mc"}
EKS, KARPENTER = "eks.amazonaws.com/capacityType", "karpenter.sh/capacity-type"
SCALE_SET = "kubernetes.azure.com/scalesetpriority"


@pytest.mark.parametrize(
    ("labels", "is_spot", "label"),
    [
        ({}, None, None),
        ({"kubernetes.io/hostname": "a"}, None, None),
        (GKE, False, None),
        (GKE | {"cloud.google.com/gke-spot": "true"}, True, "cloud.google.com/gke-spot=true"),
        (GKE | {"cloud.google.com/gke-preemptible": "true"}, True, "cloud.google.com/gke-preemptible=true"),
        ({EKS: "SPOT"}, True, f"{EKS}=SPOT"),
        ({EKS: "ON_DEMAND"}, False, f"{EKS}=ON_DEMAND"),
        ({EKS: "CAPACITY_BLOCK"}, False, f"{EKS}=CAPACITY_BLOCK"),
        ({KARPENTER: "spot"}, True, f"{KARPENTER}=spot"),
        ({KARPENTER: "on-demand"}, False, f"{KARPENTER}=on-demand"),
        ({KARPENTER: "reserved"}, False, f"{KARPENTER}=reserved"),
        (AKS, False, None),
        (AKS | {SCALE_SET: "spot"}, True, f"{SCALE_SET}=spot"),
        ({EKS: "ON_DEMAND", KARPENTER: "spot"}, True, f"{KARPENTER}=spot"),
    ],
)
def test_labels_say_whether_a_machine_is_spot(labels: dict[str, str], is_spot: bool | None, label: str | None) -> None:
    assert find_capacity_type(labels) == (is_spot, label)


def make_object(labels: dict[str, str], **status: Any) -> dict[str, Any]:
    return {"metadata": {"name": "node-1", "labels": labels}, "status": status}


def test_a_node_says_its_machine_its_place_and_its_gpus() -> None:
    labels = GKE | {
        "node.kubernetes.io/instance-type": "n1-standard-8",
        "topology.kubernetes.io/region": "europe-west4",
        "topology.kubernetes.io/zone": "europe-west4-a",
        "cloud.google.com/gke-accelerator": "nvidia-tesla-t4",
        "team": "a",
    }
    info = {"kubeletVersion": "v1.36.2-gke.100", "containerRuntimeVersion": "containerd://2.1.4", "osImage": "COS"}
    assert describe_node(make_object(labels, capacity={"cpu": "8", "memory": "30Gi"}, nodeInfo=info)) == Node(
        instance_type="n1-standard-8",
        region="europe-west4",
        zone="europe-west4-a",
        is_spot=False,
        kubelet_version="v1.36.2-gke.100",
        container_runtime="containerd://2.1.4",
        os_image="COS",
        num_cpus=8,
        gpu_labels={"cloud.google.com/gke-accelerator": "nvidia-tesla-t4"},
    )


def test_what_a_node_does_not_say_is_unknown() -> None:
    assert describe_node({"metadata": {"name": "node-1"}}) == Node()
    assert describe_node(make_object({}, nodeInfo={"kubeletVersion": ""}, capacity={})) == Node()
