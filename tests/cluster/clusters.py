"""Clusters of fake nodes, and cells that are submitted to them."""

import time
import uuid
from collections.abc import Callable, Collection
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from machines import Machine
from runs import DEADLINE_SECONDS, make_profile

from bench.schema import Cell, PlannedCell
from fake_kubelet import FakeKubelet
from runner.kubernetes.connection import Connection
from runner.kubernetes.names import JobKey
from runner.kubernetes.objects import PodStatus, read_pod_status
from runner.kubernetes.rendering import JobRenderer
from runner.profiles.model import Profile

StartKubelet = Callable[..., FakeKubelet]
GPU_TAINT = {"key": "nvidia.com/gpu", "effect": "NoSchedule"}
ROOMY = {"cpu": "32", "memory": "512Gi"}  # for two cells of any profile: that they are kept apart is tested


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
