"""`benchmatrix doctor` on a real API server: what it finds of each precondition, and that the scheduler agrees."""

import json
import uuid
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from commands import CallMain, create, make_call
from runs import make_cells, make_profile, wait_for

from bench.schema import PlannedCell
from control_plane import ControlPlane
from fake_kubelet import FakeKubelet
from runner.commands import cluster as cluster_commands
from runner.kubernetes.connection import Connection
from runner.kubernetes.doctor.api_server_checks import judge_clock
from runner.kubernetes.doctor.node_fit import count_daemon_requests, fit_pod, list_misfits, read_node_status
from runner.kubernetes.rendering.job_name import JobKey
from runner.kubernetes.rendering.job_template import JobRenderer
from s3_server import S3Server

StartKubelet = Callable[..., FakeKubelet]
Finding = dict[str, Any]
Examine = Callable[..., tuple[int, dict[str, Finding]]]
T4 = {"cloud.google.com/gke-accelerator": "nvidia-tesla-t4"}
TAINT = {"key": "nvidia.com/gpu", "value": "present", "effect": "NoSchedule"}
MATRIX = """
name: mine
axes: {framework: [pytorch, tensorflow], device: [cpu, gpu]}
defaults: {model: conv6, phase: train, batch_size: 4, num_steps: 2}
"""
PROFILE = """
extends: gke
images:
  pytorch: {cpu: r.example/p:1, gpu: r.example/p:1}
  tensorflow: {cpu: r.example/t:1, gpu: r.example/t:1}
"""


@pytest.fixture
def call_main(monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]) -> CallMain:
    return make_call(monkeypatch, capfd)


@pytest.fixture
def examine(
    call_main: CallMain, connection: Connection, namespace: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Examine:
    """Calls doctor for two CPU and two GPU kinds of cell; returns its exit code and the findings by their checks."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(cluster_commands, "DOCTOR_PATIENCE_SECONDS", 0.1)
    (tmp_path / "matrix.yaml").write_text(MATRIX)

    def call(*words: str, on: str = "current", profile: str = PROFILE) -> tuple[int, dict[str, Finding]]:
        (tmp_path / "mine.yaml").write_text(profile)
        options = ("--on", on, "--profile", "mine.yaml", "--namespace", namespace, "--json")
        code, out, err = call_main("doctor", "matrix.yaml", *options, *words)
        assert err == ""
        return code, {finding["check"]: finding for finding in json.loads(out)["findings"]}

    return call


@pytest.fixture
def add_nodes(start_kubelet: StartKubelet, connection: Connection) -> Callable[..., str]:
    """Adds a node of a name that is unique, and returns that once the node counts as ready."""
    kubelet = start_kubelet()

    def add(**options: Any) -> str:
        name = f"node-{uuid.uuid4().hex[:8]}"
        kubelet.add_node(name, **options)
        not_ready = "node.kubernetes.io/not-ready"
        wait_for(lambda: not_ready not in str(connection.get_object(f"/api/v1/nodes/{name}")["spec"]), "the node")
        return name

    return add


def list_states(findings: dict[str, Finding]) -> dict[str, str]:
    return {check: finding["state"] for check, finding in findings.items()}


def test_nothing_fails_where_everything_is_there(
    examine: Examine, add_nodes: Callable[..., str], s3_server: S3Server
) -> None:
    add_nodes(labels={"node.kubernetes.io/instance-type": "n2-standard-8"})
    gpu = {"nvidia.com/gpu": "1"}
    add_nodes(labels=T4 | {"nvidia.com/cuda.driver-version.major": "580"}, taints=[TAINT], capacity=gpu)

    code, findings = examine("--store", f"s3://{s3_server.bucket}/runs")

    assert set(list_states(findings).values()) == {"ok", "warning"}
    assert ["namespace"] == [check for check, state in list_states(findings).items() if state == "warning"]
    assert "has no Pod Security level" in findings["namespace"]["message"]
    assert code == 0
    assert findings["nodes for cells on the CPU"]["message"] == "1 of 2 nodes can hold one"
    assert findings["nodes for cells on the CPU"]["details"][:1] == ["1 can: n2-standard-8, 4 CPUs, 16 GiB"]
    assert ["1 can: no instance type, 4 CPUs, 16 GiB, 1 nvidia.com/gpu"] == (
        findings["nodes for cells on 1 GPU"]["details"][:1]
    )
    assert findings["driver: pytorch"]["message"].endswith("the oldest is 580")


def test_the_lines_name_check_state_and_remedy(call_main: CallMain, connection: Connection) -> None:
    code, out, _ = call_main("doctor", "--on", "current", "--profile", "kind", "--namespace", "not-there")

    assert code == 1
    lines = out.splitlines()
    at = lines.index("failed  namespace: there is no namespace not-there")
    assert "        > `benchmatrix setup` makes it; or name one: --namespace" == lines[at + 1]
    assert "failed  service account: there is no benchmatrix-cell" in lines
    assert "failed  store secret: there is no benchmatrix-store" in lines
    assert any(line.startswith("ok      API server: v1.") for line in lines)
    assert lines[-1].startswith(f"{sum(line[:2] in ('ok', 'wa', 'fa') for line in lines)} checks: ")


def test_a_user_with_no_rights_is_told_which_and_what_could_not_be_looked_at(
    examine: Examine, control_plane: ControlPlane
) -> None:
    code, findings = examine(on=f"{control_plane.context}-user")

    assert code == 1
    needed = findings["permission: jobs"]
    assert needed["message"].startswith("you may not create, list, watch, delete jobs in namespace ")
    assert "benchmatrix setup --user" in needed["hint"]
    housekeeping = findings["permission: jobs, to cancel and clean"]
    assert ("warning", True) == (
        housekeeping["state"],
        housekeeping["message"].startswith("you may not patch, deletecollection jobs in namespace "),
    )
    states = list_states(findings)
    assert states["permission: jobs"] == "failed"
    assert "failed" == states["permission: pods"] == states["permission: events"]
    assert "warning" == states["nodes"] == states["namespace"] == states["service account"]
    assert findings["nodes"]["message"].startswith("not checked: you may not look: nodes is forbidden")
    assert "runner-of-the-tests" in findings["API server"]["message"]


def test_each_group_of_nodes_is_told_why_it_cannot_hold_a_cell(examine: Examine, add_nodes: Callable[..., str]) -> None:
    for _ in range(2):
        add_nodes(labels={"node.kubernetes.io/instance-type": "e2-medium"}, capacity={"cpu": "940m"})
    silent = add_nodes(labels=T4 | {"nvidia.com/cuda.driver.major": "535"}, taints=[TAINT])
    add_nodes(
        labels=T4, taints=[{"key": "team", "value": "b", "effect": "NoExecute"}], capacity={"nvidia.com/gpu": "1"}
    )

    code, findings = examine()

    assert code == 1
    found = findings["nodes for cells on the CPU"]
    assert (found["state"], found["message"]) == ("failed", "none of 4 nodes can hold one")
    assert any(
        line.startswith("2 cannot (node-") and line.endswith("e2-medium, 0.94 CPUs, 16 GiB): cpu: 4 wanted, 0.94 there")
        for line in found["details"]
    )
    reasons = [line.partition("): ")[2] for line in findings["nodes for cells on 1 GPU"]["details"]]
    label = "no label cloud.google.com/gke-accelerator=nvidia-tesla-t4"
    assert [
        "nvidia.com/gpu: 1 wanted, none there",
        f"{label}, cpu: 3 wanted, 0.94 there, nvidia.com/gpu: 1 wanted, none there",
        "taint team=b:NoExecute is not tolerated",
    ] == sorted(reasons, key=lambda reason: (reason.startswith("taint"), len(reason)))
    assert findings["device plugin"]["message"] == "1 of 2 nodes with the labels of the GPU pool offer nvidia.com/gpu"
    assert silent in findings["device plugin"]["hint"]
    assert findings["driver: pytorch"]["state"] == "warning"
    assert f"1 of 2 nodes have an older one: 535 on {silent}" in findings["driver: pytorch"]["message"]
    assert "unknown on 1 of 2 nodes" in findings["driver: tensorflow"]["message"]


def test_an_autoscaler_makes_a_missing_node_a_warning(examine: Examine, connection: Connection) -> None:
    path = "/api/v1/namespaces/kube-system/configmaps"
    create(connection, path, {"metadata": {"name": "cluster-autoscaler-status"}})
    try:
        _, findings = examine()
    finally:
        connection.request("delete", f"{path}/cluster-autoscaler-status")

    assert findings["nodes for cells on 1 GPU"]["state"] == "warning"
    assert findings["nodes for cells on 1 GPU"]["hint"].startswith("the cluster autoscaler may add one")


@pytest.mark.parametrize("device", ["cpu", "gpu"])
def test_the_scheduler_judges_each_node_as_doctor_does(
    connection: Connection, namespace: str, add_nodes: Callable[..., str], device: str
) -> None:
    gpu, small = {"nvidia.com/gpu": "1"}, {"cpu": "2"}
    names = [
        add_nodes(),
        add_nodes(capacity=small),
        add_nodes(capacity={"memory": "2Gi"}),
        add_nodes(taints=[{"key": "team", "value": "b", "effect": "NoSchedule"}]),
        add_nodes(taints=[{"key": "team", "value": "b", "effect": "PreferNoSchedule"}]),
        add_nodes(labels=T4, taints=[TAINT], capacity=gpu),
        add_nodes(labels=T4, taints=[TAINT]),
        add_nodes(labels=T4, taints=[TAINT | {"effect": "NoExecute"}], capacity=gpu),
        add_nodes(labels=T4, capacity=gpu),
        add_nodes(labels={"cloud.google.com/gke-accelerator": "nvidia-l4"}, taints=[TAINT], capacity=gpu),
    ]
    (cell,) = make_cells(1, device=device)
    renderer = JobRenderer(profile=make_profile(namespace, "gke"), store_url="s3://b", git_revision=None)
    key = JobKey(run_id="r", cell_id=cell.cell_id, number=1, retry_round=0)
    planned = PlannedCell(cell=cell, repeats=1, timeout_seconds=60)
    spec = json.loads(renderer.render(planned, key))["spec"]["template"]["spec"]
    path = f"/api/v1/namespaces/{namespace}/pods"
    for name in names:
        pinned = spec | {"nodeSelector": spec.get("nodeSelector", {}) | {"kubernetes.io/hostname": name}}
        create(connection, path, {"metadata": {"name": name}, "spec": pinned})

    def list_judged() -> dict[str, bool] | None:
        pods = {pod["metadata"]["name"]: pod for pod in connection.list_items(path)}
        if any("conditions" not in pod["status"] for pod in pods.values()):
            return None
        return {name: "nodeName" in pod["spec"] for name, pod in pods.items()}

    by_scheduler = wait_for(list_judged, "the scheduler")

    nodes = [read_node_status(connection.get_object(f"/api/v1/nodes/{name}"), {}) for name in names]
    assert {node.name: not list(list_misfits(spec, node)) for node in nodes} == by_scheduler
    assert set(by_scheduler.values()) == {True, False}


def test_pods_of_daemon_sets_take_their_part_of_a_node() -> None:
    def make_pod(owner: str, cpu: str) -> dict[str, Any]:
        container = {"resources": {"requests": {"cpu": cpu}}}
        metadata = {"ownerReferences": [{"kind": owner}]}
        return {"metadata": metadata, "spec": {"nodeName": "n", "containers": [container, container]}}

    taken = count_daemon_requests([make_pod("DaemonSet", "300m"), make_pod("Job", "3"), make_pod("DaemonSet", "100m")])
    status = {"allocatable": {"cpu": "3920m"}, "conditions": [{"type": "Ready", "status": "True"}]}
    node = read_node_status({"metadata": {"name": "n"}, "status": status}, taken["n"])

    assert node.free["cpu"] == Decimal("3.12")
    spec = {"containers": [{"resources": {"requests": {"cpu": "3.5"}}}]}
    assert fit_pod(spec, [node]).unfit == {"cpu: 3.5 wanted, 3.12 there": ("n",)}


def test_a_quota_on_jobs_is_found_before_the_run(examine: Examine, connection: Connection, namespace: str) -> None:
    path = f"/api/v1/namespaces/{namespace}/resourcequotas"
    create(connection, path, {"metadata": {"name": "none"}, "spec": {"hard": {"count/jobs.batch": "0"}}})
    wait_for(lambda: connection.get_object(f"{path}/none").get("status"), "the quota to be known")

    _, findings = examine()

    found = findings["Job: pytorch on the CPU"]
    assert found["state"] == "failed"
    assert "exceeded quota: none, requested: count/jobs.batch=1" in found["message"]


def test_secrets_that_cells_name_are_looked_for(examine: Examine, connection: Connection, namespace: str) -> None:
    profile = PROFILE + "image_pull_secrets: [pull]\nstore_secret: keys\n"
    create(connection, f"/api/v1/namespaces/{namespace}/secrets", {"metadata": {"name": "keys"}})

    _, findings = examine(profile=profile)

    assert (findings["store secret"]["state"], findings["image pull secret"]["state"]) == ("ok", "failed")
    assert findings["image pull secret"]["message"] == "there is no pull"


def test_an_image_that_the_profile_lacks_is_found(examine: Examine) -> None:
    code, findings = examine(profile="extends: gke\nimages: {pytorch: {cpu: r.example/p:1, gpu: r.example/p:1}}\n")

    assert code == 1
    assert "images.tensorflow.gpu" in findings["profile"]["message"]


@pytest.fixture
def kueue(connection: Connection) -> Iterator[None]:
    """Kueue's LocalQueue as far as the API server is concerned; no Kueue runs."""
    schema = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
    version = {"name": "v1beta1", "served": True, "storage": True, "schema": {"openAPIV3Schema": schema}}
    names = {"plural": "localqueues", "singular": "localqueue", "kind": "LocalQueue", "listKind": "LocalQueueList"}
    spec = {"group": "kueue.x-k8s.io", "scope": "Namespaced", "names": names, "versions": [version]}
    path, name = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions", "localqueues.kueue.x-k8s.io"
    # A group that stands for one of Kubernetes' own needs this to be accepted.
    approval = {"api-approved.kubernetes.io": "unapproved, for a test"}
    create(connection, path, {"metadata": {"name": name, "annotations": approval}, "spec": spec})

    def is_served() -> bool:
        conditions = connection.get_object(f"{path}/{name}").get("status", {}).get("conditions") or ()
        return any(item["type"] == "Established" and item["status"] == "True" for item in conditions)

    wait_for(is_served, "the LocalQueue's kind")
    groups = "kueue.x-k8s.io"
    wait_for(lambda: groups in connection.request("get", "/apis").decode(), "its group")
    yield
    connection.request("delete", f"{path}/{name}")
    wait_for(lambda: groups not in connection.request("get", "/apis").decode(), "its group to go")


def test_a_queue_needs_kueue(examine: Examine) -> None:
    _, findings = examine("--queue", "team")

    assert findings["queue"]["message"] == "the cluster has no Kueue: it does not know kueue.x-k8s.io"
    assert "leave --queue out" in findings["queue"]["hint"]


def test_the_queue_must_be_there_and_active(
    examine: Examine, connection: Connection, namespace: str, kueue: None
) -> None:
    _, findings = examine("--queue", "team")
    assert findings["queue"]["message"] == f"namespace {namespace} has no LocalQueue team"

    conditions = [{"type": "Active", "status": "False", "message": "ClusterQueue a is inactive"}]
    body = {"apiVersion": "kueue.x-k8s.io/v1beta1", "kind": "LocalQueue", "spec": {"clusterQueue": "a"}}
    path = f"/apis/kueue.x-k8s.io/v1beta1/namespaces/{namespace}/localqueues"
    create(connection, path, body | {"metadata": {"name": "bad"}, "status": {"conditions": conditions}})
    create(connection, path, body | {"metadata": {"name": "good"}})

    found = examine("--queue", "bad")[1]["queue"]
    assert (found["state"], found["message"]) == ("failed", "LocalQueue bad is not active: ClusterQueue a is inactive")
    found = examine("--queue", "good")[1]["queue"]
    assert (found["state"], found["message"]) == ("ok", "LocalQueue good of ClusterQueue a")


def test_claims_need_a_class_devices_and_templates(
    examine: Examine, connection: Connection, namespace: str, call_main: CallMain, add_nodes: Callable[..., str]
) -> None:
    profile = PROFILE + "gpu: {request: claim}\n"
    _, findings = examine(profile=profile)
    checks = ("device class", "devices to claim", "claim template")
    assert [findings[check]["state"] for check in checks] == ["failed"] * 3

    node = add_nodes(labels=T4)
    dra = "/apis/resource.k8s.io/v1"
    pool = {"name": node, "generation": 1, "resourceSliceCount": 1}
    spec = {
        "driver": "gpu.nvidia.com",
        "pool": pool,
        "nodeName": node,
        "devices": [{"name": "gpu-0"}, {"name": "gpu-1"}],
    }
    create(connection, f"{dra}/deviceclasses", {"metadata": {"name": "gpu.nvidia.com"}, "spec": {}})
    create(connection, f"{dra}/resourceslices", {"metadata": {"name": node}, "spec": spec})
    try:
        call_main("setup", "--on", "current", "--profile", "mine.yaml", "--namespace", namespace)
        _, findings = examine(profile=profile)
    finally:
        connection.request("delete", f"{dra}/deviceclasses/gpu.nvidia.com")
        connection.request("delete", f"{dra}/resourceslices/{node}")

    assert [findings[check]["state"] for check in checks] == ["ok"] * 3
    assert findings["devices to claim"]["message"] == "2 in 1 ResourceSlices"
    assert "device plugin" not in findings


@pytest.mark.parametrize(
    ("words", "state", "message"),
    [
        ((), "warning", "not checked: no --store was given"),
        (("--store", "file://here"), "failed", "file://here: the cells on a cluster do not see"),
        (("--store", "s3://no-such-bucket/x"), "failed", "store s3://no-such-bucket/x: "),
    ],
)
def test_the_store_is_tried(
    examine: Examine, s3_server: S3Server, words: tuple[str, ...], state: str, message: str
) -> None:
    _, findings = examine(*words)

    assert findings["store"]["state"] == state
    assert findings["store"]["message"].startswith(message)


def test_an_api_server_that_is_away_ends_the_checks_but_for_the_store(
    examine: Examine, tmp_path: Path, control_plane: ControlPlane, monkeypatch: pytest.MonkeyPatch
) -> None:
    text = control_plane.kubeconfig.read_text().replace(f":{control_plane.port}", ":1")
    (tmp_path / "dead").write_text(text)
    monkeypatch.setenv("KUBECONFIG", str(tmp_path / "dead"))

    code, findings = examine()

    assert code == 1
    assert list(findings) == ["cells", "API server", "store"]
    assert findings["API server"]["message"].startswith("the API server does not answer: ")


@pytest.mark.parametrize(
    ("seconds", "state", "message"),
    [
        (0, "ok", "agrees with the server's"),
        (-1.0, "ok", "agrees with the server's"),  # the server's second may be all but over
        (30, "warning", "30 s from the server's"),
        (-31, "warning", "30 s from the server's"),
        (3600, "failed", "3600 s from the server's"),
    ],
)
def test_the_clock_is_judged_with_the_way_and_whole_seconds_allowed_for(
    seconds: float, state: str, message: str
) -> None:
    now = datetime(2026, 3, 1, tzinfo=UTC)

    found = judge_clock(now + timedelta(seconds=seconds), before=now, after=now)

    assert (found.state, found.message) == (state, message)
