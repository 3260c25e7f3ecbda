"""Nodes labelled and tainted as GKE, EKS, AKS and others do it.

Labels and taints: https://cloud.google.com/kubernetes-engine/docs/how-to/gpus (GKE),
https://docs.aws.amazon.com/eks/latest/userguide/automode-nodepool-reference.html (Auto Mode),
https://karpenter.sh/docs/concepts/scheduling/ (Karpenter), https://learn.microsoft.com/azure/aks/use-labels (AKS),
https://github.com/NVIDIA/gpu-feature-discovery (`nvidia.com/gpu.*`).
"""

import uuid
from dataclasses import dataclass, field

FOUR_GPUS = {"nvidia.com/gpu": "4"}


@dataclass(frozen=True, kw_only=True)
class Machine:
    """A kind of node. `pool`: whose cells may land on it; None: nobody's."""

    pool: str | None
    labels: dict[str, str] = field(default_factory=dict)
    taint: str | None = None
    """Value of the taint `nvidia.com/gpu`."""
    gpus: dict[str, str] = field(default_factory=lambda: dict(FOUR_GPUS))


def make_gke(pool: str | None, accelerator: str | None, taint: str | None = "present", **labels: str) -> Machine:
    own = {"cloud.google.com/gke-nodepool": f"pool-{uuid.uuid4().hex[:4]}", "cloud.google.com/gke-boot-disk": "pd-ssd"}
    if accelerator is None:
        return Machine(pool=pool, labels=own | {FAMILY: "n2"} | labels, gpus={})
    own["cloud.google.com/gke-accelerator"] = accelerator
    return Machine(pool=pool, labels=own | labels, taint=taint)


def make_autopilot(pool: str | None, accelerator: str | None) -> Machine:
    machine = make_gke(pool, accelerator)
    added = {"cloud.google.com/gke-provisioning": "standard", FAMILY: "n1"}
    if accelerator:
        added["cloud.google.com/gke-accelerator-count"] = "4"
    elif pool:
        added |= {FAMILY: "c3", "cloud.google.com/compute-class": "Performance"}
    return Machine(pool=pool, labels=machine.labels | added, taint=machine.taint, gpus=machine.gpus)


def make_managed(pool: str | None, instance_type: str, **labels: str) -> Machine:
    own = {"node.kubernetes.io/instance-type": instance_type, "eks.amazonaws.com/nodegroup": "mine"}
    has_gpus = not instance_type.startswith("m6i")
    return Machine(pool=pool, labels=own | labels, gpus=dict(FOUR_GPUS) if has_gpus else {})


def make_karpenter(pool: str | None, instance_type: str, gpu: str | None, prefix: str) -> Machine:
    own = {"node.kubernetes.io/instance-type": instance_type, f"{prefix}/instance-family": instance_type.split(".")[0]}
    own |= {"karpenter.sh/nodepool": "mine"} | ({f"{prefix}/compute-type": "auto"} if prefix == AUTO_MODE else {})
    if gpu is None:
        return Machine(pool=pool, labels=own, gpus={})
    own |= {f"{prefix}/instance-gpu-name": gpu, f"{prefix}/instance-gpu-manufacturer": "nvidia"}
    # A GPU that no list of instance types knows yet is recognised by its name alone; Karpenter's pools need no taint.
    return Machine(pool=pool, labels=own, taint="true" if pool else None)


def make_discovered(pool: str | None, product: str | None, **labels: str) -> Machine:
    if product is None:
        return Machine(pool=pool, labels=labels, gpus={})
    own = {"nvidia.com/gpu.present": "true", "nvidia.com/gpu.product": product}
    return Machine(pool=pool, labels=own | labels)


def make_aks(pool: str | None, size: str, **labels: str) -> Machine:
    own = {"node.kubernetes.io/instance-type": size, "kubernetes.azure.com/cluster": "mine"}
    if not size.startswith("Standard_N"):
        return Machine(pool=pool, labels=own | labels, gpus={})
    return Machine(pool=pool, labels=own | {"kubernetes.azure.com/accelerator": "nvidia"} | labels)


KARPENTER, AUTO_MODE = "karpenter.k8s.aws", "eks.amazonaws.com"
FAMILY = "cloud.google.com/machine-family"
ARM = {"kubernetes.io/arch": "arm64"}
SHARED = {"nvidia.com/gpu.sharing-strategy": "time-slicing"}
"""Of GPU feature discovery. GKE has labels of its own."""
ACCELERATOR = "k8s.amazonaws.com/accelerator"
OWN_CLUSTER = """\
extends: kind
gpu: {name: Tesla T4, compute_capability: [7, 5], max_per_node: 4}
pools:
  gpu:
    node_affinity:
      - - {key: nvidia.com/gpu.product, operator: In, values: [Tesla-T4]}
    cpus: 3
    memory: 12Gi
"""
LAYOUTS: dict[str, tuple[str, list[Machine]]] = {
    "gke-standard": (
        "gke",
        [
            make_gke("gpu", "nvidia-tesla-t4"),
            make_gke("gpu", "nvidia-tesla-t4", **{"cloud.google.com/gke-spot": "true"}),
            make_gke(None, "nvidia-l4"),
            make_gke(None, "nvidia-tesla-v100"),
            make_gke(None, "nvidia-tesla-a100", taint=None),
            make_gke(None, "nvidia-tesla-t4", **{"cloud.google.com/gke-gpu-sharing-strategy": "time-sharing"}),
            make_gke(None, "nvidia-tesla-t4", **{"cloud.google.com/gke-gpu-partition-size": "1g.5gb"}),
            make_gke("cpu", None),
            make_gke("cpu", None),
            make_gke(None, None, **{FAMILY: "e2"}),
            make_gke(None, None, **{FAMILY: "c4a"}, **ARM),
        ],
    ),
    "gke-autopilot": (
        "gke-autopilot",
        [
            make_autopilot("gpu", "nvidia-tesla-t4"),
            make_autopilot(None, "nvidia-l4"),
            make_autopilot(None, "nvidia-tesla-a100"),
            make_autopilot("cpu", None),
            make_autopilot(None, None),
        ],
    ),
    "eks-managed": (
        "eks",
        [
            make_managed("gpu", "g4dn.xlarge"),
            make_managed("gpu", "g4dn.12xlarge", **{ACCELERATOR: "nvidia-tesla-t4"}),
            make_managed(None, "p3.8xlarge", **{ACCELERATOR: "nvidia-tesla-v100"}),
            make_managed(None, "g6.xlarge"),
            make_managed(None, "p4d.24xlarge"),
            make_managed(None, "g5g.xlarge", **ARM),
            make_managed(None, "g4dn.xlarge", **SHARED),
            make_managed("cpu", "m6i.2xlarge"),
            make_managed("cpu", "m6i.4xlarge"),
            make_managed(None, "m7g.2xlarge", **ARM),
        ],
    ),
    "eks-karpenter": (
        "eks",
        [
            make_karpenter("gpu", "g4dn.xlarge", "t4", KARPENTER),
            make_karpenter(None, "g6.xlarge", "l4", KARPENTER),
            make_karpenter(None, "p4d.24xlarge", "a100", KARPENTER),
            make_karpenter(None, "g99.xlarge", "x999", KARPENTER),
            make_karpenter("cpu", "m6i.2xlarge", None, KARPENTER),
            make_karpenter(None, "c5.2xlarge", None, KARPENTER),
        ],
    ),
    "eks-auto-mode": (
        "eks-auto",
        [
            make_karpenter("gpu", "g4dn.2xlarge", "t4", AUTO_MODE),
            make_karpenter(None, "p3.2xlarge", "v100", AUTO_MODE),
            make_karpenter(None, "g5g.xlarge", "t4g", AUTO_MODE),
            make_karpenter(None, "g99.xlarge", "x999", AUTO_MODE),
            make_karpenter("cpu", "m6i.2xlarge", None, AUTO_MODE),
            make_karpenter(None, "c6g.2xlarge", None, AUTO_MODE),
        ],
    ),
    "aks": (
        "aks",
        [
            make_aks("gpu", "Standard_NC4as_T4_v3"),
            make_aks(None, "Standard_NC24ads_A100_v4"),
            make_aks(None, "Standard_NC4as_T4_v3", **SHARED),
            make_aks("cpu", "Standard_D8s_v5"),
            make_aks(None, "Standard_D8ps_v5", **ARM),
        ],
    ),
    "openshift": (
        "openshift",
        [
            make_discovered("gpu", "Tesla-T4", **{"nvidia.com/gpu.sharing-strategy": "none"}),
            make_discovered(None, "Tesla-T4", **SHARED),
            make_discovered(None, "Tesla-T4-SHARED"),
            make_discovered("cpu", None),
        ],
    ),
    "eks-a100": (
        "extends: eks\ngpu: A100\n",
        [make_managed("gpu", "p4d.24xlarge"), make_managed(None, "g4dn.xlarge"), make_managed("cpu", "m6i.2xlarge")],
    ),
    "k3s-a100": (
        "extends: k3s\ngpu: A100\npools: {gpu: {runtime_class_name: null}}\n",
        [
            make_discovered("gpu", "NVIDIA-A100-SXM4-80GB", **{"nvidia.com/mig.strategy": "mixed"}),
            make_discovered(None, "NVIDIA-A100-SXM4-80GB", **{"nvidia.com/gpu.slices.gi": "1"}),
            make_discovered(None, "NVIDIA-A100-SXM4-80GB-MIG-1g.10gb", **{"nvidia.com/gpu.slices.gi": "1"}),
            make_discovered("cpu", None),
            make_discovered(None, None, **ARM),
        ],
    ),
    "kind": ("kind", [make_discovered("cpu", None), make_discovered(None, "Tesla-T4"), make_discovered("cpu", None)]),
    "own": (
        OWN_CLUSTER,
        [
            make_discovered("gpu", "Tesla-T4"),
            make_discovered(None, "NVIDIA-L4"),
            make_discovered(None, "NVIDIA-A100-SXM4-40GB"),
            make_discovered(None, "Tesla-V100-SXM2-16GB"),
            make_discovered("cpu", None),
        ],
    ),
}
