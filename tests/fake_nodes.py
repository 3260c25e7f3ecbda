"""Nodes that are objects only: registered with their capacity, and kept alive by heartbeats as a kubelet would."""

import json
import threading
from dataclasses import dataclass, field
from datetime import UTC, datetime
from http import HTTPStatus
from typing import Any

from runner.kubernetes.connection import ApiError, Connection

HEARTBEAT_SECONDS = 3.0
LEASES = "/apis/coordination.k8s.io/v1/namespaces/kube-node-lease/leases"
# https://kubernetes.io/docs/reference/labels-annotations-taints/
KUBELET_LABELS = {"kubernetes.io/arch": "amd64", "kubernetes.io/os": "linux"}
MERGE_PATCH = "application/merge-patch+json"


def format_now() -> str:
    """Return the time of day as the API writes it."""
    return datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


@dataclass(kw_only=True)
class FakeNodes:
    """Registers nodes and keeps them ready. `names`: those that send heartbeats."""

    connection: Connection
    names: list[str] = field(default_factory=list)
    _stop: threading.Event = field(default_factory=threading.Event)

    def start(self) -> None:
        """Send heartbeats until `stop`."""
        threading.Thread(target=self._beat, name="heartbeats", daemon=True).start()

    def stop(self) -> None:
        self._stop.set()

    def add(
        self,
        name: str,
        *,
        labels: dict[str, str] | None = None,
        taints: list[dict[str, str]] | None = None,
        capacity: dict[str, str] | None = None,
    ) -> None:
        """Register a node that is ready. `capacity`: what it has besides, or in place of, four cores and 16 GiB."""
        whole = {"cpu": "4", "memory": "16Gi", "pods": "110", "ephemeral-storage": "100Gi"} | (capacity or {})
        node = {
            "apiVersion": "v1",
            "kind": "Node",
            "metadata": {"name": name, "labels": KUBELET_LABELS | {"kubernetes.io/hostname": name} | (labels or {})},
            "spec": {"taints": taints or []},
        }
        self.connection.request("create", "/api/v1/nodes", body=json.dumps(node).encode())
        self._patch(
            f"/api/v1/nodes/{name}/status",
            {"status": {"capacity": whole, "allocatable": whole, "conditions": [_make_ready()]}},
            patience_seconds=None,
        )
        self._create_lease(name)
        self.names.append(name)

    def _beat(self) -> None:
        while not self._stop.wait(HEARTBEAT_SECONDS):
            for name in list(self.names):
                try:
                    self._patch(f"{LEASES}/{name}", {"spec": {"renewTime": _format_micro_time()}})
                except ApiError:  # the API server is away: the next heartbeat comes as soon as this one
                    break
            else:
                self._restore()

    def _restore(self) -> None:
        """Report nodes as ready again that counted as lost, because the API server was away or heartbeats were late."""
        try:
            nodes = self.connection.list_items("/api/v1/nodes")
            for node in nodes:
                name, conditions = node["metadata"]["name"], node["status"].get("conditions", ())
                is_ready = any((item["type"], item["status"]) == ("Ready", "True") for item in conditions)
                if name in self.names and not is_ready:
                    self._patch(f"/api/v1/nodes/{name}/status", {"status": {"conditions": [_make_ready()]}})
        except ApiError as error:
            if error.status not in (HTTPStatus.NOT_FOUND, HTTPStatus.CONFLICT, HTTPStatus.SERVICE_UNAVAILABLE):
                print(f"fake nodes: {error.status} {error.message}")

    def _create_lease(self, name: str) -> None:
        lease = {
            "apiVersion": "coordination.k8s.io/v1",
            "kind": "Lease",
            "metadata": {"name": name, "namespace": "kube-node-lease"},
            "spec": {"holderIdentity": name, "leaseDurationSeconds": 40, "renewTime": _format_micro_time()},
        }
        self.connection.request("create", LEASES, body=json.dumps(lease).encode())

    def _patch(self, path: str, body: dict[str, Any], *, patience_seconds: float | None = 0.0) -> None:
        """Patch an object, or raise at once: a heartbeat that waits for its turn comes too late.

        `patience_seconds`: None for that of the connection.
        """
        self.connection.request(
            "patch", path, body=json.dumps(body).encode(), content_type=MERGE_PATCH, patience_seconds=patience_seconds
        )


def _make_ready() -> dict[str, str]:
    return {"type": "Ready", "status": "True", "reason": "Fake", "lastHeartbeatTime": format_now()}


def _format_micro_time() -> str:
    return datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")
