"""What doctor says of NodePools, and of how far a pool grows."""

import json
from typing import Any

import pytest

from bench.schema import Device
from factories import make_cell
from job_manifests import load, render
from runner.kubernetes.doctor.context import CellKind
from runner.kubernetes.doctor.growth_checks import describe_growth, describe_node_pools
from runner.kubernetes.pool_capacity import PoolNodes

FAMILIES = {"key": "eks.amazonaws.com/instance-family", "operator": "In", "values": ["m6i", "g4dn"]}
AMD64 = {"key": "kubernetes.io/arch", "operator": "In", "values": ["amd64"]}


def make_kind(device: Device = "cpu", **profile: Any) -> CellKind:
    cell = make_cell(device=device)
    return CellKind(cell=cell, body=json.dumps(render(load("eks-auto", **profile), cell)).encode())


def make_node_pool(name: str = "bench", *, taints: list[dict[str, str]] | None = None, **ready: str) -> dict[str, Any]:
    conditions = [{"type": kind, "status": "False", "message": words} for kind, words in ready.items()]
    spec = {"requirements": [FAMILIES, AMD64], "taints": taints or []}
    return {
        "metadata": {"name": name},
        "spec": {"template": {"metadata": {}, "spec": spec}},
        "status": {"conditions": conditions},
    }


def test_a_node_pool_that_can_make_a_node_is_named() -> None:
    tainted = make_node_pool("other", taints=[{"key": "team", "value": "b", "effect": "NoSchedule"}])
    found = describe_node_pools(make_kind(), [make_node_pool(), tainted])
    assert found.state == "ok"
    assert found.message.startswith("bench can make nodes for one")
    assert found.details[1] == "other: taint team=b:NoSchedule is not tolerated"


@pytest.mark.parametrize(
    ("node_pools", "words"),
    [
        ([], "has no NodePool"),
        ([make_node_pool(taints=[{"key": "team", "effect": "NoSchedule"}])], "none of 1 NodePools makes a node"),
        ([make_node_pool(NodeClassReady="no subnets")], "bench could make nodes for one, and is not ready"),
    ],
)
def test_it_is_a_warning_where_none_can(node_pools: list[dict[str, Any]], words: str) -> None:
    found = describe_node_pools(make_kind(), node_pools)
    assert found.state == "warning"
    assert words in found.message
    assert found.hint


def test_why_a_node_pool_is_not_ready_is_told_in_karpenters_words() -> None:
    found = describe_node_pools(make_kind(), [make_node_pool(NodeClassReady="Failed to resolve subnets")])
    assert found.details == ("bench: NodeClassReady is False: Failed to resolve subnets",)


def test_a_node_pool_that_the_profile_names_has_to_have_that_name() -> None:
    pools = {
        name: pool.model_copy(update={"node_selector": {"karpenter.sh/nodepool": "fast"}})
        for name, pool in load("eks-auto").pools.items()
    }
    kind = make_kind(pools=pools)
    assert describe_node_pools(kind, [make_node_pool("bench")]).state == "warning"
    assert describe_node_pools(kind, [make_node_pool("fast")]).state == "ok"


@pytest.mark.parametrize(
    ("nodes", "maximum", "autoscaler", "state", "number", "has_hint"),
    [
        (PoolNodes(num_fitting=0, num_allowed=0), None, "", "warning", 2, True),
        (PoolNodes(num_fitting=1, num_allowed=0), None, "the cluster autoscaler", "ok", 2, True),
        (PoolNodes(num_fitting=3, num_allowed=0), None, "", "ok", 6, False),
        (PoolNodes(num_fitting=0, num_allowed=16), None, "Karpenter", "ok", 16, False),
        (PoolNodes(num_fitting=0, num_allowed=0), 10, "Karpenter", "ok", 10, False),
    ],
)
def test_a_pool_that_grows_less_than_it_could_is_told_which_key_to_set(
    nodes: PoolNodes, maximum: int | None, autoscaler: str, state: str, number: int, has_hint: bool
) -> None:
    found = describe_growth("gpu", nodes, maximum, pool="gpu", autoscaler=autoscaler)
    assert (found.state, found.message.partition(",")[0]) == (state, str(number))
    assert ("set pools.gpu.max_parallel in the profile" in found.hint) is has_hint
