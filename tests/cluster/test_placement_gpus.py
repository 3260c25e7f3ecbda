"""Where cells with several GPUs, with a share of one or with a claim land: the real scheduler."""

import uuid
from collections.abc import Callable
from typing import Any

import pytest
from clusters import Cluster
from commands import create
from machines import SHARED, make_discovered, make_gke

from factories import make_cell
from runner.kubernetes.connection import Connection
from runner.kubernetes.setup import SetupTemplate

ANY_STRATEGY = "pools: {gpu: {node_requirements: []}}\n"


def test_a_share_of_a_gpu_is_asked_for_by_its_own_name(make_cluster: Callable[..., Cluster]) -> None:
    cluster = make_cluster("extends: openshift\ngpu: {resource: nvidia.com/gpu.shared}\n" + ANY_STRATEGY)
    whole, shared = make_discovered(None, "Tesla-T4"), make_discovered("gpu", "Tesla-T4", **SHARED)
    shared.gpus.clear()
    shared.gpus["nvidia.com/gpu.shared"] = "4"
    pools = cluster.add_nodes([whole, shared])

    cluster.submit(make_cell(device="gpu"))

    (pod,) = cluster.await_pods(num_placed=1, num_waiting=0)
    assert list(pools)[1] == pod.node
    limits = cluster.list_pods()[0]["spec"]["containers"][0]["resources"]["limits"]
    assert limits["nvidia.com/gpu.shared"] == "1"
    assert "nvidia.com/gpu" not in limits


@pytest.fixture
def device_class(connection: Connection) -> Any:
    """A DeviceClass of a driver of its own, gone after the test; `publish` makes a node's ResourceSlice."""
    name = f"gpu-{uuid.uuid4().hex[:6]}.example.com"
    root = "/apis/resource.k8s.io/v1"
    made = [f"{root}/deviceclasses/{name}"]
    selector = {"cel": {"expression": f"device.driver == '{name}'"}}
    create(connection, f"{root}/deviceclasses", {"metadata": {"name": name}, "spec": {"selectors": [selector]}})

    def publish(node: str, num_devices: int) -> None:
        devices = [
            {"name": f"gpu-{number}", "attributes": {"productName": {"string": "Tesla T4"}}}
            for number in range(num_devices)
        ]
        pool = {"name": node, "generation": 1, "resourceSliceCount": 1}
        spec = {"driver": name, "nodeName": node, "pool": pool, "devices": devices}
        create(connection, f"{root}/resourceslices", {"metadata": {"name": f"{node}-{name}"}, "spec": spec})
        made.append(f"{root}/resourceslices/{node}-{name}")

    yield name, publish
    for path in made:
        connection.request("delete", path)


def test_a_claim_takes_the_place_of_the_limit_and_is_met_on_a_node_with_devices(
    make_cluster: Callable[..., Cluster], connection: Connection, device_class: Any
) -> None:
    name, publish = device_class
    cluster = make_cluster(f"extends: gke\ngpu: {{request: claim, device_class: {name}}}\n")
    for template in SetupTemplate(profile=cluster.profile).render()["claim-templates"]:
        path = f"/apis/resource.k8s.io/v1/namespaces/{cluster.profile.namespace}/resourceclaimtemplates"
        create(connection, path, template)
    bare = make_gke(None, "nvidia-tesla-t4")
    bare.gpus.clear()
    small, large = make_gke(None, "nvidia-tesla-t4"), make_gke("gpu", "nvidia-tesla-t4")
    for machine in (small, large):
        machine.gpus.clear()
    nodes = list(cluster.add_nodes([bare, small, large]))
    publish(nodes[1], 1)
    publish(nodes[2], 2)

    cluster.submit(make_cell(device="gpu", num_gpus=2))

    (pod,) = cluster.await_pods(num_placed=1, num_waiting=0)
    assert pod.node == nodes[2]
    claims = f"/apis/resource.k8s.io/v1/namespaces/{cluster.profile.namespace}/resourceclaims"
    (claim,) = connection.list_items(claims)
    results = claim["status"]["allocation"]["devices"]["results"]
    assert sorted((found["device"], found["pool"]) for found in results) == [("gpu-0", nodes[2]), ("gpu-1", nodes[2])]
    resources = cluster.list_pods()[0]["spec"]["containers"][0]["resources"]
    assert set(resources["limits"]) == {"cpu", "memory", "ephemeral-storage"}


def test_several_gpus_need_a_node_that_has_them(make_cluster: Callable[..., Cluster]) -> None:
    cluster = make_cluster("gke")
    small = make_gke("gpu", "nvidia-tesla-t4")
    small.gpus["nvidia.com/gpu"] = "1"
    pools = cluster.add_nodes([small, make_gke("gpu", "nvidia-tesla-t4")])

    cluster.submit(make_cell(device="gpu", num_gpus=4))

    (pod,) = cluster.await_pods(num_placed=1, num_waiting=0)
    assert list(pools)[1] == pod.node
