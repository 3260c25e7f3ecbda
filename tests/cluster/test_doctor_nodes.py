"""`benchmatrix doctor` on a real API server: what it finds of the nodes, and that the scheduler agrees."""

from collections.abc import Callable
from typing import Any

import pytest
from commands import create
from doctor_calls import N2, PROFILE, T4, TAINT, Examine, list_states
from runs import make_profile, wait_for

from factories import make_cell
from job_manifests import render
from runner.kubernetes.capacity import list_misfits, read_node_status
from runner.kubernetes.connection import Connection
from s3_server import S3Server
from workspace import CallMain


def test_nothing_fails_where_everything_is_there(
    examine: Examine, add_nodes: Callable[..., str], s3_server: S3Server
) -> None:
    add_nodes(labels=N2 | {"node.kubernetes.io/instance-type": "n2-standard-8"})
    gpu = {"nvidia.com/gpu": "1"}
    add_nodes(labels=T4 | {"nvidia.com/cuda.driver-version.major": "580"}, taints=[TAINT], capacity=gpu)

    environment = "environment: {AWS_ENDPOINT_URL: 'http://s3.storage:9000'}\n"  # the server, as pods would reach it
    code, findings = examine("--store", f"s3://{s3_server.bucket}/runs", profile=PROFILE + environment)

    assert set(list_states(findings).values()) == {"ok", "warning"}
    warnings = {check for check, state in list_states(findings).items() if state == "warning"}
    assert warnings == {"namespace"}
    assert "has no Pod Security level" in findings["namespace"]["message"]
    assert code == 0
    assert findings["nodes for cells on the CPU"]["message"] == "1 of 2 nodes can hold one"
    assert findings["nodes for cells on the CPU"]["details"][:1] == ["1 can: n2-standard-8, 4 CPUs, 16 GiB"]
    assert ["1 can: no instance type, 4 CPUs, 16 GiB, 1 nvidia.com/gpu"] == (
        findings["nodes for cells on 1 GPU"]["details"][:1]
    )
    assert findings["driver: pytorch"]["message"].endswith("the oldest is 580")


def test_each_group_of_nodes_is_told_why_it_cannot_hold_a_cell(examine: Examine, add_nodes: Callable[..., str]) -> None:
    for _ in range(2):
        add_nodes(labels=N2 | {"node.kubernetes.io/instance-type": "n2-medium"}, capacity={"cpu": "940m"})
    add_nodes(labels=N2 | {"kubernetes.io/arch": "arm64"}, capacity={"ephemeral-storage": "4Gi"})
    silent = add_nodes(labels=T4 | {"nvidia.com/cuda.driver.major": "535"}, taints=[TAINT])
    add_nodes(
        labels=T4, taints=[{"key": "team", "value": "b", "effect": "NoExecute"}], capacity={"nvidia.com/gpu": "1"}
    )

    code, findings = examine()

    assert code == 1
    found = findings["nodes for cells on the CPU"]
    assert (found["state"], found["message"]) == ("failed", "none of 5 nodes can hold one")
    assert any(
        line.startswith("2 cannot (node-") and line.endswith("n2-medium, 0.94 CPUs, 16 GiB): cpu: 4 wanted, 0.94 there")
        for line in found["details"]
    )
    assert any(
        line.endswith("kubernetes.io/arch is arm64, not amd64, ephemeral-storage: 8.062 GiB wanted, 4 GiB there")
        for line in found["details"]
    )
    reasons = [line.partition("): ")[2] for line in findings["nodes for cells on 1 GPU"]["details"]]
    label = "no label cloud.google.com/gke-accelerator=nvidia-tesla-t4"
    assert [
        "nvidia.com/gpu: 1 wanted, none there",
        f"{label}, cpu: 2 wanted, 0.94 there, nvidia.com/gpu: 1 wanted, none there",
        f"kubernetes.io/arch is arm64, not amd64, {label}, ephemeral-storage: 8.062 GiB wanted, 4 GiB there, "
        "nvidia.com/gpu: 1 wanted, none there",
        "taint team=b:NoExecute is not tolerated",
    ] == sorted(reasons, key=lambda reason: (reason.startswith("taint"), len(reason)))
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


GPU = {"nvidia.com/gpu": "1"}
# Nodes that some cell can run on, and such that lack one thing for it.
JUDGED: list[dict[str, Any]] = [
    {"labels": N2},
    {},
    {"labels": N2 | {"kubernetes.io/arch": "arm64"}},
    {"labels": N2, "capacity": {"cpu": "1"}},
    {"labels": N2, "capacity": {"memory": "2Gi"}},
    {"labels": N2, "capacity": {"ephemeral-storage": "8Gi"}},
    {"labels": N2, "taints": [{"key": "team", "value": "b", "effect": "NoSchedule"}]},
    {"labels": N2, "taints": [{"key": "team", "value": "b", "effect": "PreferNoSchedule"}]},
    {"labels": T4 | {"cloud.google.com/gke-gpu-sharing-strategy": "mps"}, "taints": [TAINT], "capacity": GPU},
    {"labels": T4, "taints": [TAINT], "capacity": GPU},
    {"labels": T4, "taints": [TAINT]},
    {"labels": T4, "taints": [TAINT | {"effect": "NoExecute"}], "capacity": GPU},
    {"labels": T4, "capacity": GPU},
    {"labels": {"cloud.google.com/gke-accelerator": "nvidia-l4"}, "taints": [TAINT], "capacity": GPU},
]


@pytest.mark.parametrize("device", ["cpu", "gpu"])
def test_the_scheduler_judges_each_node_as_doctor_does(
    connection: Connection, namespace: str, add_nodes: Callable[..., str], device: str
) -> None:
    names = [add_nodes(**options) for options in JUDGED]
    spec = render(make_profile(namespace, "gke"), make_cell(device=device))["spec"]["template"]["spec"]
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

    nodes = [read_node_status(connection.get_object(f"/api/v1/nodes/{name}")) for name in names]
    assert {node.name: not list(list_misfits(spec, node)) for node in nodes} == by_scheduler
    assert set(by_scheduler.values()) == {True, False}


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
