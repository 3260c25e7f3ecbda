"""Rendered Jobs on a real API server: it reads what was meant, and admits the pods, Guaranteed, under `restricted`."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from runs import make_profile

from bench.errors import UserError
from bench.schema import PlannedCell
from factories import make_cell
from profile_files import list_gpu_words, write
from runner.kubernetes.connection import ApiError, Connection
from runner.kubernetes.names import JobKey
from runner.kubernetes.rendering import JobRenderer
from runner.profiles import BUILTIN_PROFILES
from runner.profiles.loading import load_profile
from runner.profiles.model import Profile

STORE = "s3://bucket/prefix"
PLACES_AND_WORDS = [(name, word) for name in BUILTIN_PROFILES for word in (None, *list_gpu_words(name))]
"""Every built-in profile: its CPU cells, and cells on each GPU that it knows."""
RESTRICTED = {f"pod-security.kubernetes.io/{mode}": "restricted" for mode in ("enforce", "warn", "audit")}


def list_given(want: Any, got: Any, path: str = "") -> list[str]:
    """Return the paths at which `got` lacks what `want` has; what an API server adds to it does not count."""
    if isinstance(want, dict) and isinstance(got, dict):
        return [
            found
            for key, value in want.items()
            for found in (list_given(value, got[key], f"{path}.{key}") if key in got else [f"{path}.{key}"])
        ]
    if isinstance(want, list) and isinstance(got, list) and len(want) == len(got):
        return [
            found
            for number, (one, other) in enumerate(zip(want, got, strict=True))
            for found in list_given(one, other, f"{path}[{number}]")
        ]
    return [] if want == got else [path]


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
    container = created["spec"]["containers"][0]
    assert {mount["mountPath"] for mount in container["volumeMounts"]} == {"/tmp", "/dev/shm"}  # no token was added
    assert container["resources"]["requests"]["ephemeral-storage"] == "8256Mi"
    assert not {"runAsUser", "fsGroup"} & created["spec"]["securityContext"].keys()


def test_a_pod_with_an_overlay_is_admitted_too(connection: Connection, namespace: str) -> None:
    restrict(connection, namespace)
    overlay: dict[str, Any] = {
        "metadata": {"annotations": {"sidecar.istio.io/inject": "false"}},
        "spec": {
            "securityContext": {"runAsUser": 1000, "fsGroup": 1000},
            "tolerations": [{"key": "team", "operator": "Exists"}],
            "hostAliases": [{"ip": "10.0.0.1", "hostnames": ["registry.internal"]}],
            "volumes": [{"name": "ca", "configMap": {"name": "ca"}}],
            "containers": [{"name": "bench", "volumeMounts": [{"name": "ca", "mountPath": "/ca", "readOnly": True}]}],
        },
    }
    manifest = json.loads(render(make_profile(namespace, "gke", overlay=overlay), "gpu"))
    pod = manifest["spec"]["template"] | {"apiVersion": "v1", "kind": "Pod"}
    pod["metadata"] |= {"name": "cell"}

    created, warnings = create(connection, f"/api/v1/namespaces/{namespace}/pods", json.dumps(pod).encode())

    assert (list_given(pod["spec"]["tolerations"], created["spec"]["tolerations"][:2]), warnings) == ([], [])
    assert created["spec"]["containers"][0]["volumeMounts"][2]["mountPath"] == "/ca"
    assert created["spec"]["securityContext"]["runAsUser"] == 1000


# Texts at the edges of what Kubernetes takes as a name, a label, an amount, an image or a path.
CANDIDATES = (
    *("a", "A", "1", "", " ", "é", "a b", "a\n", "a.b", "a..b", ".a", "a.", "a-b", "-a", "a-", "a_b", "_a", "a--b"),
    *("a" * 63, "a" * 64, "a" * 253, "a" * 254, f"{'a.' * 126}a", "Tesla-T4", "yes", "null", "12", "1.5"),
    *("a/b", "a/b/c", "/a", "a/", "a.b/c", "A.b/c", "a.b/C_d.e", f"a.b/{'c' * 63}", f"a.b/{'c' * 64}", "a..b/c"),
    *(f"{'a.' * 126}a/b", f"{'a' * 254}/b", f"{'a' * 244}/b", f"{'a' * 245}/b"),
    *("kubernetes.io/a", "x.kubernetes.io/a", "kubernetes.io.x/a", "requests.a.b/c", "nvidia.com/gpu.shared", "cpu"),
    *("1Gi", "1G", "1k", "1K", "1B", "4GB", "0", "0Gi", "-1Gi", "1e3", "0.5Gi", "100m", "1Pi", f"{'9' * 15}Ti"),
    *("A_B", "4A", "A=", "A-B", "A.B", "BENCH_CELL", "PATH"),
    *("a:1", "a:b:c", "a@sha256:", f"a@sha256:{'0' * 64}", "localhost:5000/a/b:c", "https://a", "a:", " a", "a/B"),
    *("/data", "data", "/data/", "/", "/tmp", "/dev/shm", "/a:b", "/a/../b", "//a", "/a b", "/é", f"/{'a' * 4095}"),
)
RULE = {"key": "zone", "operator": "In", "values": ["a"]}
# By the key of a profile: what that is with a text in it.
PLACES: dict[str, Any] = {
    "service_account": lambda text: {"service_account": text},
    "data.mount_path": lambda text: {"data": {"claim": "data", "mount_path": text}},
    "environment": lambda text: {"environment": {text: "x"}},
    "images": lambda text: {"images": {"pytorch": {"gpu": text}}},
    "tmp_size": lambda text: {"tmp_size": text},
    "gpu.resource": lambda text: {"gpu": {"resource": text}},
    "node_selector key": lambda text: {"pools": {"gpu": {"node_selector": {text: "x"}}}},
    "node_selector value": lambda text: {"pools": {"gpu": {"node_selector": {"zone": text}}}},
    "rule key": lambda text: {"pools": {"gpu": {"node_affinity": [[RULE | {"key": text}]]}}},
    "rule value": lambda text: {"pools": {"gpu": {"node_affinity": [[RULE | {"values": [text]}]]}}},
    "toleration key": lambda text: {"pools": {"gpu": {"tolerations": [{"key": text, "operator": "Exists"}]}}},
    "toleration value": lambda text: {
        "pools": {"gpu": {"tolerations": [{"key": "a", "operator": "Equal", "value": text}]}}
    },
}
# What is refused here the API server refuses as well; of the other places, no kubelet or no process could use it.
EXACT = ("node_selector key", "node_selector value", "rule key", "rule value", "toleration value")


@pytest.mark.parametrize("place", PLACES)
def test_the_api_server_takes_what_a_profile_may_say_and_refuses_what_it_may_not(
    connection: Connection, namespace: str, tmp_path: Path, place: str
) -> None:
    def render_with(text: str) -> bytes:
        path = tmp_path / "mine.yaml"  # JSON is YAML
        path.write_text(json.dumps({"extends": "gke", "images": {"pytorch": {"gpu": "a"}}} | PLACES[place](text)))
        return render(load_profile(str(path)).in_namespace(namespace), "gpu")

    def create_dry(body: bytes) -> None:
        jobs = f"/apis/batch/v1/namespaces/{namespace}/jobs"
        connection.request("create", jobs, query={"dryRun": "All"}, body=body)

    refused = []
    for text in CANDIDATES:
        try:
            body = render_with(text)
        except UserError:
            refused.append(text)
        else:
            create_dry(body)
    assert 0 < len(refused) < len(CANDIDATES)
    if place in EXACT:
        harmless = render_with("harmless").decode()
        for text in refused:
            with pytest.raises(ApiError, match="is invalid: .*Invalid value"):
                create_dry(harmless.replace('"harmless"', json.dumps(text)).encode())
