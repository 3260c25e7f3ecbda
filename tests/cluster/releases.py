"""Releases of the chart, installed by Helm's own engine."""

import uuid
from collections.abc import Callable, Iterator
from typing import Any

import helm_python
import pytest
from commands import create
from runs import wait_for

from chart import make_job
from control_plane import ControlPlane
from runner.kubernetes.connection import Connection

RELEASE, FULLNAME = "sweeps", "sweeps-benchmatrix"
RESTRICTED = {"pod-security.kubernetes.io/enforce": "restricted"}
KINDS = (
    "/apis/batch/v1/{}/cronjobs",
    "/apis/batch/v1/{}/jobs",
    "/api/v1/{}/pods",
    "/api/v1/{}/serviceaccounts",
    "/api/v1/{}/secrets",
    "/api/v1/{}/services",
    "/api/v1/{}/resourcequotas",
    "/apis/apps/v1/{}/deployments",
    "/apis/networking.k8s.io/v1/{}/networkpolicies",
    "/apis/rbac.authorization.k8s.io/v1/{}/roles",
    "/apis/rbac.authorization.k8s.io/v1/{}/rolebindings",
    "/apis/resource.k8s.io/v1/{}/resourceclaimtemplates",
)
"""Paths of the kinds that the chart makes, with the place of the namespace, and of Jobs and pods that they make."""


def make_restricted_namespace(connection: Connection, name: str) -> None:
    create(connection, "/api/v1/namespaces", {"metadata": {"name": name, "labels": RESTRICTED}})


@pytest.fixture
def place(connection: Connection) -> Iterator[str]:
    """A namespace that takes only restricted pods."""
    name = f"test-{uuid.uuid4().hex[:8]}"
    make_restricted_namespace(connection, name)
    yield name
    connection.request("delete", f"/api/v1/namespaces/{name}")


@pytest.fixture
def helm(control_plane: ControlPlane) -> Iterator[Callable[[str], helm_python.Config]]:
    """Helm's engine for a namespace."""
    opened: list[helm_python.Config] = []

    def open_config(namespace: str) -> helm_python.Config:
        opened.append(helm_python.Config(kubeconfig_path=control_plane.kubeconfig, namespace=namespace))
        return opened[-1]

    yield open_config
    for config in opened:
        config.close()


def get_cronjob(connection: Connection, namespace: str) -> dict[str, Any]:
    return connection.get_object(f"/apis/batch/v1/namespaces/{namespace}/cronjobs/{FULLNAME}")


def trigger(connection: Connection, namespace: str, name: str) -> dict[str, Any]:
    """Start a scheduled run by hand, and return its Job."""
    body = make_job(get_cronjob(connection, namespace), name)
    return create(connection, f"/apis/batch/v1/namespaces/{namespace}/jobs", body)


def find_pod_of(connection: Connection, namespace: str, job: str) -> dict[str, Any]:
    query = {"labelSelector": f"batch.kubernetes.io/job-name={job}"}
    pod: dict[str, Any] = wait_for(
        lambda: next(iter(connection.list_items(f"/api/v1/namespaces/{namespace}/pods", **query)), None), "the runner"
    )
    return pod


def list_objects(connection: Connection, namespace: str, release: str = RELEASE) -> set[str]:
    """Return kind and name of every object of a release, pods and Jobs that were made of it too."""
    found = set()
    for path in KINDS:
        kind = path.rpartition("/")[2]
        for item in connection.list_items(path.format(f"namespaces/{namespace}")):
            if item["metadata"].get("labels", {}).get("benchmatrix/release") == release:
                found.add(f"{kind}/{item['metadata']['name']}")
    return found
