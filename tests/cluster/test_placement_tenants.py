"""Where cells with tenants land, and that all of their containers do or none: the real scheduler and admission."""

from collections.abc import Callable

import pytest
from clusters import Cluster
from commands import patch
from machines import Machine, make_gke
from runs import wait_for

from bench.schema import Cell
from factories import make_cell
from runner.kubernetes.connection import Connection
from runner.kubernetes.failures import read_reasons

CLIENTS, STRATEGY = "cloud.google.com/gke-max-shared-clients-per-gpu", "cloud.google.com/gke-gpu-sharing-strategy"
OFFERED = "extends: gke\ngpu: {name: T4, sharing: {time-slicing: {clients: [2, 4]}, mps: {clients: [2, 4]}}}\n"


def make_tenants(tenants: int, sharing: str = "time-slicing") -> Cell:
    return make_cell(device="gpu", tenants=tenants, sharing=sharing)


def make_shared_gke(strategy: str, clients: int) -> Machine:
    """Return a node of GKE with one T4, which so many containers may share."""
    machine = make_gke("gpu", "nvidia-tesla-t4", **{STRATEGY: strategy, CLIENTS: str(clients)})
    machine.gpus["nvidia.com/gpu"] = str(clients)
    return machine


@pytest.mark.parametrize(
    ("cell", "expected"),
    [
        (make_cell(device="gpu"), "whole"),
        (make_tenants(2, "mps"), "mps-2"),
        (make_tenants(4, "mps"), "mps-4"),
        (make_tenants(3), "time-sharing-4"),
    ],
    ids=lambda value: value if isinstance(value, str) else value.slug,
)
def test_a_cell_lands_on_the_one_kind_of_node_that_shares_its_gpu_as_it_asks(
    make_cluster: Callable[..., Cluster], cell: Cell, expected: str
) -> None:
    cluster = make_cluster(OFFERED)
    kinds = [(strategy, clients) for strategy in ("time-sharing", "mps") for clients in (2, 4)]
    machines = [make_gke("gpu", "nvidia-tesla-t4"), *(make_shared_gke(*kind) for kind in kinds)]
    kind_names = ["whole", *(f"{strategy}-{clients}" for strategy, clients in kinds)]
    names = dict(zip(kind_names, cluster.add_nodes(machines), strict=True))

    cluster.submit(cell)

    (pod,) = cluster.await_pods(num_placed=1, num_waiting=0)
    assert pod.node == names[expected]
    assert len(cluster.list_pods()[0]["spec"]["containers"]) == cell.tenants


def test_pods_that_need_their_nodes_ipc_are_let_in_where_setup_labels_the_namespace_so(
    make_cluster: Callable[..., Cluster], connection: Connection
) -> None:
    cluster = make_cluster(OFFERED)
    names = list(cluster.add_nodes([make_shared_gke("mps", 2)]))
    assert cluster.profile.pod_security == "privileged"
    path = f"/api/v1/namespaces/{cluster.profile.namespace}"
    cells = [make_cell(device="gpu", tenants=2, sharing="mps", seed=seed) for seed in range(2)]
    for cell, level in zip(cells, ("restricted", cluster.profile.pod_security), strict=True):
        patch(connection, path, {"metadata": {"labels": {"pod-security.kubernetes.io/enforce": level}}})
        cluster.submit(cell)
        if level == "restricted":
            wait_for(lambda: read_reasons(connection, cluster.profile.namespace), "the controller's refusal")
    (pod,) = cluster.await_pods(num_placed=1, num_waiting=0)
    assert (pod.node, pod.cell_id) == (names[0], cells[1].cell_id)
    (refusal,) = read_reasons(connection, cluster.profile.namespace).values()
    assert "host namespaces (hostIPC=true)" in refusal


def test_a_group_waits_as_a_whole_where_only_some_of_its_tenants_fit(make_cluster: Callable[..., Cluster]) -> None:
    cluster = make_cluster(OFFERED)
    node = make_shared_gke("time-sharing", 4)
    node.gpus["nvidia.com/gpu"] = "3"  # a stranger has one of the four shares
    cluster.add_nodes([node])

    cluster.submit(make_tenants(4))

    (pod,) = cluster.await_pods(num_placed=0, num_waiting=1, words="nvidia.com/gpu")
    assert (pod.node, "Insufficient nvidia.com/gpu" in pod.unschedulable) == ("", True)


def test_two_groups_do_not_share_a_node_though_it_has_shares_for_both(make_cluster: Callable[..., Cluster]) -> None:
    cluster = make_cluster(OFFERED)
    cluster.add_nodes([make_shared_gke("time-sharing", 4)])

    cluster.submit(make_tenants(2), make_cell(device="gpu", tenants=2, seed=1))

    pods = cluster.await_pods(num_placed=1, num_waiting=1)
    assert sorted(bool(pod.node) for pod in pods) == [False, True]
