"""Where cells land: the real scheduler and nodes labelled and tainted as GKE, EKS and kind do it.

Labels and taints: https://cloud.google.com/kubernetes-engine/docs/how-to/gpus (GKE),
https://docs.aws.amazon.com/eks/latest/userguide/automode-nodepool-reference.html (Auto Mode),
https://karpenter.sh/docs/concepts/scheduling/ (Karpenter),
https://github.com/NVIDIA/gpu-feature-discovery (`nvidia.com/gpu.*`).
"""

import json
import re
import time
import uuid
from collections.abc import Callable, Collection
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from runs import make_profile

from bench.schema import Cell, PlannedCell
from factories import make_cell
from fake_kubelet import FakeKubelet
from runner.kubernetes.connection import Connection
from runner.kubernetes.object_status import PodStatus, read_pod_status
from runner.kubernetes.rendering.job_name import JobKey
from runner.kubernetes.rendering.job_template import JobRenderer
from runner.kubernetes.rendering.setup_template import SetupTemplate
from runner.profiles.model import Profile, load_profile

StartKubelet = Callable[..., FakeKubelet]
DEADLINE_SECONDS = 60.0
GPU_TAINT = {"key": "nvidia.com/gpu", "effect": "NoSchedule"}
TAKEN = "didn't match pod anti-affinity rules"
ROOMY = {"cpu": "32", "memory": "128Gi"}


@dataclass(frozen=True, kw_only=True)
class Machine:
    """A kind of node. `pool`: whose cells may land on it; None: nobody's."""

    pool: str | None
    labels: dict[str, str] = field(default_factory=dict)
    taint: str | None = None
    """Value of the taint `nvidia.com/gpu`."""
    gpus: dict[str, str] = field(default_factory=lambda: {"nvidia.com/gpu": "4"})


def make_gke(pool: str | None, accelerator: str | None, taint: str | None = "present", **labels: str) -> Machine:
    own = {"cloud.google.com/gke-nodepool": f"pool-{uuid.uuid4().hex[:4]}", "cloud.google.com/gke-boot-disk": "pd-ssd"}
    if accelerator is None:
        return Machine(pool=pool, labels=own, gpus={})
    own["cloud.google.com/gke-accelerator"] = accelerator
    return Machine(pool=pool, labels=own | labels, taint=taint)


def make_autopilot(pool: str | None, accelerator: str | None) -> Machine:
    machine = make_gke(pool, accelerator)
    added = {"cloud.google.com/gke-provisioning": "standard", "cloud.google.com/machine-family": "n1"}
    if accelerator:
        added["cloud.google.com/gke-accelerator-count"] = "4"
    return Machine(pool=pool, labels=machine.labels | added, taint=machine.taint, gpus=machine.gpus)


def make_managed(pool: str | None, instance_type: str, **labels: str) -> Machine:
    own = {"node.kubernetes.io/instance-type": instance_type, "eks.amazonaws.com/nodegroup": "mine"}
    has_gpus = not instance_type.startswith("m6i")
    return Machine(pool=pool, labels=own | labels, **({} if has_gpus else {"gpus": {}}))


def make_karpenter(pool: str | None, instance_type: str, gpu: str | None, prefix: str) -> Machine:
    own = {"node.kubernetes.io/instance-type": instance_type, f"{prefix}/instance-family": instance_type.split(".")[0]}
    own["karpenter.sh/nodepool"] = "mine"
    if gpu is None:
        return Machine(pool=pool, labels=own, gpus={})
    own |= {f"{prefix}/instance-gpu-name": gpu, f"{prefix}/instance-gpu-manufacturer": "nvidia"}
    # A GPU that no list of instance types knows yet is told by its name alone; Karpenter's pools need no taint.
    return Machine(pool=pool, labels=own, taint="true" if pool else None)


def make_discovered(pool: str | None, product: str | None, **gpus: str) -> Machine:
    if product is None:
        return Machine(pool=pool, gpus={})
    labels = {"nvidia.com/gpu.present": "true", "nvidia.com/gpu.product": product}
    return Machine(pool=pool, labels=labels, **({"gpus": gpus} if gpus else {}))


KARPENTER, AUTO_MODE = "karpenter.k8s.aws", "eks.amazonaws.com"
ACCELERATOR = "k8s.amazonaws.com/accelerator"
OWN_CLUSTER = """\
extends: kind
gpu: {name: Tesla T4, compute_capability: [7, 5], max_per_node: 4}
pools:
  gpu:
    nodes:
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
            make_gke("cpu", None),
            make_gke("cpu", None),
        ],
    ),
    "gke-autopilot": (
        "gke",
        [
            make_autopilot("gpu", "nvidia-tesla-t4"),
            make_autopilot(None, "nvidia-l4"),
            make_autopilot(None, "nvidia-tesla-a100"),
            make_autopilot("cpu", None),
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
            make_managed(None, "g5g.xlarge"),
            make_managed("cpu", "m6i.2xlarge"),
            make_managed("cpu", "m6i.xlarge"),
        ],
    ),
    "eks-karpenter": (
        "eks",
        [
            make_karpenter("gpu", "g4dn.xlarge", "t4", KARPENTER),
            make_karpenter(None, "g6.xlarge", "l4", KARPENTER),
            make_karpenter(None, "p4d.24xlarge", "a100", KARPENTER),
            make_karpenter(None, "g99.xlarge", "x999", KARPENTER),
            make_karpenter("cpu", "m6i.xlarge", None, KARPENTER),
        ],
    ),
    "eks-auto-mode": (
        "eks",
        [
            make_karpenter("gpu", "g4dn.2xlarge", "t4", AUTO_MODE),
            make_karpenter(None, "p3.2xlarge", "v100", AUTO_MODE),
            make_karpenter(None, "g5g.xlarge", "t4g", AUTO_MODE),
            make_karpenter(None, "g99.xlarge", "x999", AUTO_MODE),
            make_karpenter("cpu", "m6i.xlarge", None, AUTO_MODE),
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


@dataclass(frozen=True, kw_only=True)
class Cluster:
    """Nodes, and a namespace to submit cells to."""

    connection: Connection
    profile: Profile
    kubelet: FakeKubelet

    def add_nodes(self, machines: list[Machine]) -> dict[str, str | None]:
        """Register a node of each kind, ready for pods, and return whose cells may land on it, by its name."""
        pools = {}
        for number, machine in enumerate(machines):
            name = f"node-{uuid.uuid4().hex[:6]}-{number}"
            taints = [GPU_TAINT | {"value": machine.taint}] if machine.taint else []
            self.kubelet.add_node(name, labels=machine.labels, taints=taints, capacity=ROOMY | machine.gpus)
            pools[name] = machine.pool
        self._await_ready(pools)
        return pools

    def _await_ready(self, names: Collection[str]) -> None:
        """Wait until the node controller has taken from new nodes the taint that it gives them at first."""
        deadline = time.monotonic() + DEADLINE_SECONDS
        while time.monotonic() < deadline:
            nodes = [node for node in self.connection.list_items("/api/v1/nodes") if node["metadata"]["name"] in names]
            if not any("node.kubernetes.io/not-ready" in list_taints(node) for node in nodes):
                return
            time.sleep(0.1)

    def submit(self, *cells: Cell) -> None:
        """Create a Job for each cell."""
        renderer = JobRenderer(profile=self.profile, store_url="s3://bucket/prefix", git_revision=None)
        for cell in cells:
            planned = PlannedCell(cell=cell, repeats=1, timeout_seconds=600.0)
            key = JobKey(run_id=self.profile.namespace, cell_id=cell.cell_id, number=1, retry_round=0)
            path = f"/apis/batch/v1/namespaces/{self.profile.namespace}/jobs"
            self.connection.request("create", path, body=renderer.render(planned, key))

    def await_pods(self, *, num_placed: int, num_waiting: int, words: str = "") -> list[PodStatus]:
        """Return the pods once the scheduler has placed so many, and says `words` of the others, or after a minute."""
        deadline = time.monotonic() + DEADLINE_SECONDS
        while True:
            pods = [read_pod_status(pod) for pod in self.list_pods()]
            waiting = [pod for pod in pods if pod.unschedulable and words in pod.unschedulable]
            counts = sum(bool(pod.node) for pod in pods), len(waiting)
            if (num_placed, num_waiting) == counts or time.monotonic() > deadline:
                return pods
            time.sleep(0.1)

    def list_pods(self) -> list[dict[str, Any]]:
        return self.connection.list_items(f"/api/v1/namespaces/{self.profile.namespace}/pods")


def list_taints(node: dict[str, Any]) -> list[str]:
    return [taint["key"] for taint in node["spec"].get("taints", ())]


@pytest.fixture
def make_cluster(
    connection: Connection, namespace: str, start_kubelet: StartKubelet, tmp_path: Path
) -> Callable[..., Cluster]:
    def make(profile: str, **overrides: Any) -> Cluster:
        if "\n" in profile:
            (tmp_path / "mine.yaml").write_text(profile)
            profile = str(tmp_path / "mine.yaml")
        kubelet = start_kubelet(lambda pod: "hang")
        found = make_profile(namespace, profile, **overrides)
        return Cluster(connection=connection, profile=found, kubelet=kubelet)

    return make


@pytest.mark.parametrize("layout", LAYOUTS)
def test_each_cell_has_a_node_of_its_pool_alone_and_one_too_many_waits(
    make_cluster: Callable[..., Cluster], layout: str
) -> None:
    profile, machines = LAYOUTS[layout]
    cluster = make_cluster(profile)
    pools = cluster.add_nodes(machines)
    devices = sorted(cluster.profile.pools)

    # One cell more on each device than the device has nodes: whoever could leave its pool would.
    cells = [
        make_cell(device=device, seed=seed)
        for device in devices
        for seed in range(list(pools.values()).count(device) + 1)
    ]
    cluster.submit(*cells)
    pods = cluster.await_pods(num_placed=len(cells) - len(devices), num_waiting=len(devices), words=TAKEN)

    placed = sorted((pod.node, pod.pool) for pod in pods if pod.node)
    assert placed == sorted((node, pool) for node, pool in pools.items() if pool)
    waiting = [pod for pod in pods if not pod.node]
    assert sorted(pod.pool for pod in waiting) == devices
    for pod in waiting:
        assert re.match(r"0/\d+ nodes are available: ", pod.unschedulable)
        assert TAKEN in pod.unschedulable


def test_cells_of_other_runs_and_namespaces_keep_off_a_node_that_is_taken(
    make_cluster: Callable[..., Cluster], connection: Connection, namespace: str
) -> None:
    other = f"{namespace}-other"
    for path, kind, name in (
        ("/api/v1/namespaces", "Namespace", other),
        (f"/api/v1/namespaces/{other}/serviceaccounts", "ServiceAccount", "benchmatrix-cell"),
    ):
        body = {"apiVersion": "v1", "kind": kind, "metadata": {"name": name}}
        connection.request("create", path, body=json.dumps(body).encode())
    try:
        first = make_cluster("kind")
        first.add_nodes([make_discovered("cpu", None)])
        second = Cluster(connection=connection, profile=first.profile.in_namespace(other), kubelet=first.kubelet)

        first.submit(make_cell())
        first.await_pods(num_placed=1, num_waiting=0)
        second.submit(make_cell())
        (pod,) = second.await_pods(num_placed=0, num_waiting=1, words=TAKEN)

        assert TAKEN in pod.unschedulable
    finally:
        connection.request("delete", f"/api/v1/namespaces/{other}")


def test_cells_may_share_a_node_where_the_profile_says_so(make_cluster: Callable[..., Cluster]) -> None:
    cluster = make_cluster("extends: kind\npools: {cpu: {is_alone_on_node: false}}\n")
    (node,) = cluster.add_nodes([make_discovered("cpu", None)])

    cluster.submit(make_cell(seed=1), make_cell(seed=2))

    pods = cluster.await_pods(num_placed=2, num_waiting=0)
    assert [pod.node for pod in pods] == [node, node]


def test_a_cell_with_more_cores_than_any_node_waits_with_the_schedulers_words(
    make_cluster: Callable[..., Cluster],
) -> None:
    cluster = make_cluster("extends: kind\npools: {cpu: {cpus: 33}}\n")
    cluster.add_nodes([make_discovered("cpu", None), make_discovered(None, "Tesla-T4")])

    cluster.submit(make_cell())

    (pod,) = cluster.await_pods(num_placed=0, num_waiting=1, words="Insufficient cpu")
    assert "Insufficient cpu" in pod.unschedulable
    assert "didn't match Pod's node affinity/selector" in pod.unschedulable


def test_several_gpus_need_a_node_that_has_them(make_cluster: Callable[..., Cluster]) -> None:
    cluster = make_cluster("gke")
    small = make_gke("gpu", "nvidia-tesla-t4")
    small.gpus["nvidia.com/gpu"] = "1"
    pools = cluster.add_nodes([small, make_gke("gpu", "nvidia-tesla-t4")])

    cluster.submit(make_cell(device="gpu", num_gpus=4))

    (pod,) = cluster.await_pods(num_placed=1, num_waiting=0)
    assert list(pools)[1] == pod.node


def test_a_share_of_a_gpu_is_asked_for_by_its_own_name(make_cluster: Callable[..., Cluster]) -> None:
    cluster = make_cluster("extends: gke\ngpu: {resource: nvidia.com/gpu.shared}\n")
    whole, shared = make_gke(None, "nvidia-tesla-t4"), make_gke("gpu", "nvidia-tesla-t4")
    shared.gpus.clear()
    shared.gpus["nvidia.com/gpu.shared"] = "4"
    pools = cluster.add_nodes([whole, shared])

    cluster.submit(make_cell(device="gpu"))

    (pod,) = cluster.await_pods(num_placed=1, num_waiting=0)
    assert list(pools)[1] == pod.node
    limits = cluster.list_pods()[0]["spec"]["containers"][0]["resources"]["limits"]
    assert limits["nvidia.com/gpu.shared"] == "1"
    assert "nvidia.com/gpu" not in limits


@pytest.fixture
def device_class(connection: Connection) -> Any:
    """A DeviceClass of a driver of its own, gone after the test; `publish` makes a node's ResourceSlice."""
    name = f"gpu-{uuid.uuid4().hex[:6]}.example.com"
    root = "/apis/resource.k8s.io/v1"
    made = [f"{root}/deviceclasses/{name}"]
    selector = {"cel": {"expression": f"device.driver == '{name}'"}}
    body = {"apiVersion": "resource.k8s.io/v1", "kind": "DeviceClass", "metadata": {"name": name}}
    connection.request(
        "create", f"{root}/deviceclasses", body=json.dumps(body | {"spec": {"selectors": [selector]}}).encode()
    )

    def publish(node: str, num_devices: int) -> None:
        devices = [
            {"name": f"gpu-{number}", "attributes": {"productName": {"string": "Tesla T4"}}}
            for number in range(num_devices)
        ]
        pool = {"name": node, "generation": 1, "resourceSliceCount": 1}
        spec = {"driver": name, "nodeName": node, "pool": pool, "devices": devices}
        metadata = {"name": f"{node}-{name}"}
        slice_body = {"apiVersion": "resource.k8s.io/v1", "kind": "ResourceSlice", "metadata": metadata, "spec": spec}
        connection.request("create", f"{root}/resourceslices", body=json.dumps(slice_body).encode())
        made.append(f"{root}/resourceslices/{metadata['name']}")

    yield name, publish
    for path in made:
        connection.request("delete", path)


def test_a_claim_takes_the_place_of_the_limit_and_is_met_on_a_node_with_devices(
    make_cluster: Callable[..., Cluster], connection: Connection, device_class: Any
) -> None:
    name, publish = device_class
    cluster = make_cluster(f"extends: gke\ngpu: {{request: claim, device_class: {name}}}\n")
    for template in SetupTemplate(profile=cluster.profile).render()["claim-templates"]:
        path = f"/apis/resource.k8s.io/v1/namespaces/{cluster.profile.namespace}/resourceclaimtemplates"
        connection.request("create", path, body=json.dumps(template).encode())
    bare = make_gke(None, "nvidia-tesla-t4")
    bare.gpus.clear()
    small, large = make_gke(None, "nvidia-tesla-t4"), make_gke("gpu", "nvidia-tesla-t4")
    for machine in (small, large):
        machine.gpus.clear()
    nodes = list(cluster.add_nodes([bare, small, large]))
    publish(nodes[1], 1)
    publish(nodes[2], 2)

    cluster.submit(make_cell(device="gpu", num_gpus=2))

    (pod,) = cluster.await_pods(num_placed=1, num_waiting=0)
    assert pod.node == nodes[2]
    claims = f"/apis/resource.k8s.io/v1/namespaces/{cluster.profile.namespace}/resourceclaims"
    (claim,) = connection.list_items(claims)
    results = claim["status"]["allocation"]["devices"]["results"]
    assert sorted((found["device"], found["pool"]) for found in results) == [("gpu-0", nodes[2]), ("gpu-1", nodes[2])]
    resources = cluster.list_pods()[0]["spec"]["containers"][0]["resources"]
    assert set(resources["limits"]) == {"cpu", "memory"}


def test_kind_refuses_gpu_cells_before_anything_is_sent() -> None:
    obstacle = load_profile("kind").find_obstacle(make_cell(device="gpu"))
    assert obstacle == "the profile kind has no pool 'gpu'"
