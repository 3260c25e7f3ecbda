"""Queues of a real Kueue for tests: flavours, ClusterQueues and LocalQueues of one namespace."""

from dataclasses import dataclass, field
from typing import Any

from commands import create, patch
from runs import wait_for

from runner.kubernetes.capacity import find_api_version
from runner.kubernetes.connection import Connection

Quotas = dict[str, dict[str, str]]
"""By flavour, the quota of each resource."""


@dataclass(kw_only=True)
class Queues:
    """Makes queues in one namespace. Objects without a namespace are named after it."""

    connection: Connection
    namespace: str
    api_version: str = ""
    _paths: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        found = find_api_version(self.connection)
        assert found is not None
        self.api_version = self.api_version or found

    def add_flavor(self, name: str = "any", **spec: Any) -> str:
        """Make a ResourceFlavor and return its full name."""
        return self._create("ResourceFlavor", "resourceflavors", f"{self.namespace}-{name}", spec)

    def add(self, name: str, quotas: Quotas, *, cohort: str | None = None, **spec: Any) -> str:
        """Make a ClusterQueue and a LocalQueue of this name for it; return the full name of the ClusterQueue."""
        cluster_queue = f"{self.namespace}-{name}"
        body: dict[str, Any] = {"namespaceSelector": {}, "resourceGroups": make_groups(quotas)}
        if cohort:
            body["cohort" if self.api_version.endswith("v1beta1") else "cohortName"] = cohort
        self._create("ClusterQueue", "clusterqueues", cluster_queue, body | spec)
        self.add_local_queue(name, cluster_queue)
        return cluster_queue

    def add_local_queue(self, name: str, cluster_queue: str) -> None:
        self._create("LocalQueue", f"namespaces/{self.namespace}/localqueues", name, {"clusterQueue": cluster_queue})

    def await_condition(self, name: str, status: str) -> None:
        """Wait until Kueue says of a LocalQueue that it is active, or is not."""
        path = f"/apis/{self.api_version}/namespaces/{self.namespace}/localqueues/{name}"

        def is_said() -> bool:
            conditions = self.connection.get_object(path).get("status", {}).get("conditions") or ()
            return any(item["type"] == "Active" and item["status"] == status for item in conditions)

        wait_for(is_said, f"LocalQueue {name} to be active: {status}")

    def patch(self, cluster_queue: str, **spec: Any) -> None:
        """Change keys of a ClusterQueue's spec."""
        patch(self.connection, f"/apis/{self.api_version}/clusterqueues/{cluster_queue}", {"spec": spec})

    def apply(self, manifest: dict[str, Any]) -> None:
        """Make an object of a manifest, under its own name."""
        metadata, kind = manifest["metadata"], manifest["kind"]
        place = f"namespaces/{metadata['namespace']}/" if "namespace" in metadata else ""
        self._create(kind, f"{place}{kind.lower()}s", metadata["name"], manifest.get("spec", {}))

    def delete(self) -> None:
        """Delete what was made; Kueue lets go of each when nothing uses it any more."""
        for path in reversed(self._paths):
            self.connection.request("delete", path)

    def _create(self, kind: str, place: str, name: str, spec: dict[str, Any]) -> str:
        path = f"/apis/{self.api_version}/{place}"
        given = {"apiVersion": self.api_version, "kind": kind}
        create(self.connection, path, given | {"metadata": {"name": name}, "spec": spec})
        self._paths.append(f"{path}/{name}")
        return name


def make_groups(quotas: Quotas) -> list[dict[str, Any]]:
    """Return the `resourceGroups` of a ClusterQueue; every flavour has a quota of each resource."""
    resources = list(next(iter(quotas.values())))
    flavors = [
        {"name": flavor, "resources": [{"name": key, "nominalQuota": amounts[key]} for key in resources]}
        for flavor, amounts in quotas.items()
    ]
    return [{"coveredResources": resources, "flavors": flavors}]
