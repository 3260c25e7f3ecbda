"""Rendered Jobs on a real API server: it reads what was meant, and admits the pods, Guaranteed, under `restricted`."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from commands import create, patch
from runs import make_profile

from factories import make_cell
from job_manifests import render
from profile_files import list_gpu_words, write
from runner.kubernetes.connection import Connection
from runner.kubernetes.doctor import describe_pod_changes
from runner.profiles import BUILTIN_PROFILES

PLACES_AND_WORDS = [(name, word) for name in BUILTIN_PROFILES for word in (None, *list_gpu_words(name))]
"""Every built-in profile: its CPU cells, and cells on each GPU that it knows."""
RESTRICTED = {f"pod-security.kubernetes.io/{mode}": "restricted" for mode in ("enforce", "warn", "audit")}


def create_warned(connection: Connection, path: str, body: dict[str, Any]) -> tuple[dict[str, Any], list[str]]:
    """Create an object, and return it with the warnings of the API server."""
    response = connection._open("create", path, None, json.dumps(body).encode(), "application/json", 30.0)
    return json.loads(response.data), response.headers.getlist("Warning")


@pytest.fixture
def runtime_class(connection: Connection) -> Iterator[None]:
    """The RuntimeClass of k3s, which the API server wants to be there."""
    path = "/apis/node.k8s.io/v1/runtimeclasses"
    create(connection, path, {"metadata": {"name": "nvidia"}, "handler": "nvidia"})
    yield
    connection.request("delete", f"{path}/nvidia")


@pytest.mark.parametrize(("base", "word"), PLACES_AND_WORDS)
@pytest.mark.usefixtures("runtime_class")
def test_a_pod_is_admitted_under_restricted_without_a_warning_and_guaranteed(
    connection: Connection, namespace: str, tmp_path: Path, base: str, word: str | None
) -> None:
    patch(connection, f"/api/v1/namespaces/{namespace}", {"metadata": {"labels": RESTRICTED}})
    path = write(tmp_path, f"extends: {base}\n" + (f"gpu: {word}\n" if word else ""))
    manifest = render(make_profile(namespace, path), make_cell(device="gpu" if word else "cpu"))

    _, warnings = create_warned(connection, f"/apis/batch/v1/namespaces/{namespace}/jobs", manifest)
    pod = manifest["spec"]["template"] | {"apiVersion": "v1", "kind": "Pod"}
    pod["metadata"] |= {"name": "cell"}
    created, pod_warnings = create_warned(connection, f"/api/v1/namespaces/{namespace}/pods", pod)

    assert (warnings, pod_warnings) == ([], [])
    assert created["status"]["qosClass"] == "Guaranteed"
    assert describe_pod_changes(manifest["spec"]["template"], created) == ""
    container = created["spec"]["containers"][0]
    assert {mount["mountPath"] for mount in container["volumeMounts"]} == {"/tmp", "/dev/shm"}  # no token was added
    assert container["resources"]["requests"]["ephemeral-storage"] == "8256Mi"
    assert not {"runAsUser", "fsGroup"} & created["spec"]["securityContext"].keys()
