"""Where cells land: the real scheduler, and nodes as GKE, EKS and kind make them."""

import re
from collections.abc import Callable

import pytest
from clusters import Cluster
from machines import LAYOUTS, make_discovered
from runs import make_namespace

from factories import make_cell
from runner.kubernetes.connection import Connection

TAKEN = "didn't match pod anti-affinity rules"


@pytest.mark.parametrize("layout", LAYOUTS)
def test_each_cell_has_a_node_of_its_pool_alone_and_one_too_many_waits(
    make_cluster: Callable[..., Cluster], layout: str
) -> None:
    profile, machines = LAYOUTS[layout]
    cluster = make_cluster(profile)
    pools = cluster.add_nodes(machines)
    devices = sorted(cluster.profile.pools)

    # One cell more on each device than the device has nodes: whoever could leave its pool would.
    cells = [
        make_cell(device=device, seed=seed)
        for device in devices
        for seed in range(list(pools.values()).count(device) + 1)
    ]
    cluster.submit(*cells)
    pods = cluster.await_pods(num_placed=len(cells) - len(devices), num_waiting=len(devices), words=TAKEN)

    placed = sorted((pod.node, pod.pool) for pod in pods if pod.node)
    assert placed == sorted((node, pool) for node, pool in pools.items() if pool)
    waiting = [pod for pod in pods if not pod.node]
    assert sorted(pod.pool for pod in waiting) == devices
    for pod in waiting:
        assert re.match(r"0/\d+ nodes are available: ", pod.unschedulable)
        assert TAKEN in pod.unschedulable


def test_cells_of_other_runs_and_namespaces_keep_off_a_node_that_is_taken(
    make_cluster: Callable[..., Cluster], connection: Connection, namespace: str
) -> None:
    other = f"{namespace}-other"
    make_namespace(connection, other)
    try:
        first = make_cluster("kind")
        first.add_nodes([make_discovered("cpu", None)])
        second = Cluster(connection=connection, profile=first.profile.in_namespace(other), kubelet=first.kubelet)

        first.submit(make_cell())
        first.await_pods(num_placed=1, num_waiting=0)
        second.submit(make_cell())
        (pod,) = second.await_pods(num_placed=0, num_waiting=1, words=TAKEN)

        assert TAKEN in pod.unschedulable
    finally:
        connection.request("delete", f"/api/v1/namespaces/{other}")


def test_cells_may_share_a_node_where_the_profile_says_so(make_cluster: Callable[..., Cluster]) -> None:
    cluster = make_cluster("extends: kind\npools: {cpu: {is_alone_on_node: false}}\n")
    (node,) = cluster.add_nodes([make_discovered("cpu", None)])

    cluster.submit(make_cell(seed=1), make_cell(seed=2))

    pods = cluster.await_pods(num_placed=2, num_waiting=0)
    assert [pod.node for pod in pods] == [node, node]
