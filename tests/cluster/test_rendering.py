"""Rendered Jobs on a real API server: it reads what was meant, and admits the pods, Guaranteed, under `restricted`."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from runs import make_profile

from bench.schema import PlannedCell
from factories import make_cell
from profile_files import list_gpu_words, write
from runner.kubernetes.connection import Connection
from runner.kubernetes.doctor import describe_pod_changes
from runner.kubernetes.names import JobKey
from runner.kubernetes.rendering import JobRenderer
from runner.profiles import BUILTIN_PROFILES
from runner.profiles.model import Profile

STORE = "s3://bucket/prefix"
PLACES_AND_WORDS = [(name, word) for name in BUILTIN_PROFILES for word in (None, *list_gpu_words(name))]
"""Every built-in profile: its CPU cells, and cells on each GPU that it knows."""
RESTRICTED = {f"pod-security.kubernetes.io/{mode}": "restricted" for mode in ("enforce", "warn", "audit")}


def render(profile: Profile, device: str) -> bytes:
    cell = make_cell(device=device)
    planned = PlannedCell(cell=cell, repeats=1, timeout_seconds=600.0)
    renderer = JobRenderer(profile=profile, store_url=STORE, git_revision=None)
    return renderer.render(planned, JobKey(run_id="mine", cell_id=cell.cell_id, number=1, retry_round=0))


def create(connection: Connection, path: str, body: bytes) -> tuple[dict[str, Any], list[str]]:
    """Create an object, and return it with the warnings of the API server."""
    response = connection._open("create", path, None, body, "application/json", 30.0)
    return json.loads(response.data), response.headers.getlist("Warning")


def restrict(connection: Connection, namespace: str) -> None:
    body = json.dumps({"metadata": {"labels": RESTRICTED}}).encode()
    connection.request(
        "patch", f"/api/v1/namespaces/{namespace}", body=body, content_type="application/merge-patch+json"
    )


@pytest.fixture
def runtime_class(connection: Connection) -> Iterator[None]:
    """The RuntimeClass of k3s, which the API server wants to be there."""
    path = "/apis/node.k8s.io/v1/runtimeclasses"
    create(connection, path, json.dumps({"metadata": {"name": "nvidia"}, "handler": "nvidia"}).encode())
    yield
    connection.request("delete", f"{path}/nvidia")


@pytest.mark.parametrize(("base", "word"), PLACES_AND_WORDS)
@pytest.mark.usefixtures("runtime_class")
def test_a_pod_is_admitted_under_restricted_without_a_warning_and_guaranteed(
    connection: Connection, namespace: str, tmp_path: Path, base: str, word: str | None
) -> None:
    restrict(connection, namespace)
    path = write(tmp_path, f"extends: {base}\n" + (f"gpu: {word}\n" if word else ""))
    manifest = json.loads(render(make_profile(namespace, path), "gpu" if word else "cpu"))

    _, warnings = create(connection, f"/apis/batch/v1/namespaces/{namespace}/jobs", json.dumps(manifest).encode())
    pod = manifest["spec"]["template"] | {"apiVersion": "v1", "kind": "Pod"}
    pod["metadata"] |= {"name": "cell"}
    created, pod_warnings = create(connection, f"/api/v1/namespaces/{namespace}/pods", json.dumps(pod).encode())

    assert (warnings, pod_warnings) == ([], [])
    assert created["status"]["qosClass"] == "Guaranteed"
    assert describe_pod_changes(manifest["spec"]["template"], created) == ""
    container = created["spec"]["containers"][0]
    assert {mount["mountPath"] for mount in container["volumeMounts"]} == {"/tmp", "/dev/shm"}  # no token was added
    assert container["resources"]["requests"]["ephemeral-storage"] == "8256Mi"
    assert not {"runAsUser", "fsGroup"} & created["spec"]["securityContext"].keys()
