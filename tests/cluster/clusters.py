"""Clusters of fake nodes, and cells that are submitted to them."""

import uuid
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from commands import create
from machines import Machine
from runs import Site, make_profile, wait_for

from bench.schema import Cell
from fake_kubelet import FakeKubelet
from job_manifests import render
from runner.kubernetes.connection import Connection
from runner.kubernetes.objects import PodStatus, read_pod_status
from runner.profiles.model import Profile

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
        for name in pools:
            await_ready(self.connection, name)
        return pools

    def submit(self, *cells: Cell) -> None:
        """Create a Job for each cell."""
        for cell in cells:
            path = f"/apis/batch/v1/namespaces/{self.profile.namespace}/jobs"
            create(self.connection, path, render(self.profile, cell))

    def await_pods(self, *, num_placed: int, num_waiting: int, words: str = "") -> list[PodStatus]:
        """Return the pods once the scheduler has placed so many, and says `words` of the others."""
        found: list[PodStatus] = []

        def are_judged() -> bool:
            found[:] = map(read_pod_status, self.list_pods())
            waiting = [pod for pod in found if pod.unschedulable and words in pod.unschedulable]
            return (num_placed, num_waiting) == (sum(bool(pod.node) for pod in found), len(waiting))

        wait_for(are_judged, "the scheduler")
        return found

    def list_pods(self) -> list[dict[str, Any]]:
        return self.connection.list_items(f"/api/v1/namespaces/{self.profile.namespace}/pods")


def await_ready(connection: Connection, name: str) -> None:
    """Wait until the node controller has taken from a new node the taint that it gives it at first."""
    not_ready = "node.kubernetes.io/not-ready"
    wait_for(lambda: not_ready not in str(connection.get_object(f"/api/v1/nodes/{name}")["spec"]), "the node")


@pytest.fixture
def make_cluster(site: Site, tmp_path: Path) -> Callable[..., Cluster]:
    def make(profile: str, **overrides: Any) -> Cluster:
        if "\n" in profile:
            (tmp_path / "mine.yaml").write_text(profile)
            profile = str(tmp_path / "mine.yaml")
        kubelet = site.start_kubelet(lambda pod: "hang")
        found = make_profile(site.namespace, profile, **overrides)
        return Cluster(connection=site.connection, profile=found, kubelet=kubelet)

    return make
