"""Makes this machine's node one with a T4, as far as Kubernetes and NVML can tell: labels, taint, device plugin."""

import json
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from device_plugin import RESOURCE, Allocation, DevicePlugin
from real_cluster import ROOT, wait_for

from runner.kubernetes.connection import Connection
from stand_in_driver import CARD_VARIABLE, CUDA_VARIABLE, SOURCES

Mounting = Literal["gke", "toolkit"]
"""How the driver's libraries come into a container: as the device plugin of GKE mounts them, a folder that the loader
does not know (https://github.com/GoogleCloudPlatform/container-engine-accelerators/blob/master/cmd/nvidia_gpu/nvidia_gpu.go,
`container-path`); or as NVIDIA's container toolkit does, among the system's libraries."""
GKE_FOLDER = "/usr/local/nvidia"
SYSTEM_FOLDER = "/usr/lib/x86_64-linux-gnu"
# What GKE, and NVIDIA's GPU feature discovery elsewhere, put on a node with a T4: see tests/cluster/machines.py.
LABELS: dict[Mounting, dict[str, str]] = {
    "gke": {"cloud.google.com/gke-accelerator": "nvidia-tesla-t4"},
    "toolkit": {"nvidia.com/gpu.present": "true", "nvidia.com/gpu.product": "Tesla-T4"},
}
# By the number of containers that may share the card. GKE: https://cloud.google.com/kubernetes-engine/docs/how-to/timesharing-gpus
SHARED_LABELS: dict[Mounting, dict[str, str]] = {
    "gke": {"cloud.google.com/gke-gpu-sharing-strategy": "time-sharing"},
    "toolkit": {"nvidia.com/gpu.product": "Tesla-T4-SHARED", "nvidia.com/gpu.sharing-strategy": "time-slicing"},
}
CLIENTS_LABEL: dict[Mounting, str] = {
    "gke": "cloud.google.com/gke-max-shared-clients-per-gpu",
    "toolkit": "nvidia.com/gpu.replicas",
}
TAINT = {"key": "nvidia.com/gpu", "value": "present", "effect": "NoSchedule"}
_T4_BY_DISCOVERY = {
    "gpu": {"name": "Tesla T4", "compute_capability": [7, 5], "max_per_node": 4},
    "pools": {
        "gpu": {
            "node_affinity": [[{"key": "nvidia.com/gpu.product", "operator": "In", "values": ["Tesla-T4"]}]],
            "tolerations": [{"key": TAINT["key"], "operator": "Exists"}],
        }
    },
}
_FRAMEWORKS = "/opt/bench/lib/python3.11/site-packages/bench/frameworks"
ON_CPU = {
    f"{_FRAMEWORKS}/pytorch.py": SOURCES / "cpu_instead.py",
    f"{_FRAMEWORKS}/real_pytorch.py": ROOT / "images" / "bench" / "src" / "bench" / "frameworks" / "pytorch.py",
}
"""What PyTorch's cells compute on the CPU with, whatever their device."""
SIZE = {"cpus": 1, "memory": "3Gi"}
MERGE_PATCH = "application/merge-patch+json"


@dataclass(frozen=True, kw_only=True)
class GpuNode:
    """The node that the device plugin's kubelet belongs to."""

    plugin: DevicePlugin
    driver: Path
    """The folder with the stand-ins for the driver's libraries."""
    mounting: Mounting
    num_clients: int = 1
    """How many containers may share the card."""

    def set_card(
        self, card: str = "healthy", *, cuda: int | None = 0, refusal: str = "", computes_on_cpu: bool = False
    ) -> None:
        """Say what the next containers find.

        `card`: a state of nvml.c. `cuda`: the code with which CUDA's first call ends; None: the library is missing.
        `refusal`: why the plugin refuses them instead. `computes_on_cpu`: PyTorch does, see cpu_instead.py.
        """
        names = ["libnvidia-ml.so.1"] + (["libcuda.so.1"] if cuda is not None else [])
        folder = f"{GKE_FOLDER}/lib64" if self.mounting == "gke" else SYSTEM_FOLDER
        self.plugin.allocation = Allocation(
            variables={CARD_VARIABLE: card, CUDA_VARIABLE: str(cuda or 0)},
            mounts={f"{folder}/{name}": self.driver / name for name in names} | (ON_CPU if computes_on_cpu else {}),
            refusal=refusal,
        )

    def make_profile(self) -> dict[str, Any]:
        """Return what a profile says of this node, in pods that fit beside what else runs on it."""
        base: dict[str, Any] = {"extends": "gke"} if self.mounting == "gke" else {"extends": "kind", **_T4_BY_DISCOVERY}
        pools = base.get("pools", {})
        sharing = {"clients": [self.num_clients], "clients_label": CLIENTS_LABEL[self.mounting]}
        if self.mounting == "toolkit":
            by_strategy = {"key": "nvidia.com/gpu.sharing-strategy", "operator": "In", "values": ["time-slicing"]}
            sharing["node_requirements"] = [by_strategy]
        gpu = base.get("gpu", {"name": "T4"})
        shared = {"gpu": gpu | {"sharing": {"time-slicing": sharing}}} if self.num_clients > 1 else {}
        return base | shared | {"pools": {"gpu": pools.get("gpu", {}) | SIZE}}

    def list_labels(self) -> dict[str, str]:
        """Return the labels that such a node has."""
        shared = SHARED_LABELS[self.mounting] | {CLIENTS_LABEL[self.mounting]: str(self.num_clients)}
        return LABELS[self.mounting] | (shared if self.num_clients > 1 else {})


@contextmanager
def offer_card(connection: Connection, driver: Path, mounting: Mounting, num_clients: int = 1) -> Iterator[GpuNode]:
    """Make the node of this machine's kubelet a GPU node for as long as the context lasts."""
    plugin = DevicePlugin(num_clients)
    plugin.start()
    name = wait_for(lambda: _find_node(connection), f"a node with {RESOURCE}")
    path = f"/api/v1/nodes/{name}"
    before = connection.get_object(path)
    # One that a killed test has left behind is not put back.
    taints = [taint for taint in before["spec"].get("taints", []) if taint["key"] != TAINT["key"]]
    node = GpuNode(plugin=plugin, driver=driver, mounting=mounting, num_clients=num_clients)
    try:
        _patch(connection, path, node.list_labels(), [*taints, TAINT])
        node.set_card()
        yield node
    finally:
        plugin.stop()
        _patch(connection, path, dict.fromkeys(node.list_labels()), taints)


def _find_node(connection: Connection) -> str | None:
    """Return the node whose kubelet has reported the card to the API server."""
    nodes = connection.list_items("/api/v1/nodes")
    found = (node for node in nodes if node["status"].get("allocatable", {}).get(RESOURCE, "0") != "0")
    return next((str(node["metadata"]["name"]) for node in found), None)


def _patch(connection: Connection, path: str, labels: Mapping[str, str | None], taints: list[dict[str, str]]) -> None:
    body = {"metadata": {"labels": labels}, "spec": {"taints": taints}}
    connection.request("patch", path, body=json.dumps(body).encode(), content_type=MERGE_PATCH)
