"""The chart's NetworkPolicies: where cells, runner and store may go, and who may come to them."""

from typing import Any

import pytest

from chart import Manifest, find, make_values, render

ANYWHERE = [{"ipBlock": {"cidr": "0.0.0.0/0"}}, {"ipBlock": {"cidr": "::/0"}}]
DNS = {"ports": [{"protocol": "UDP", "port": 53}, {"protocol": "TCP", "port": 53}]}
STORE = {"to": ANYWHERE, "ports": [{"protocol": "TCP", "port": 443}]}
API_SERVER = {"to": ANYWHERE, "ports": [{"protocol": "TCP", "port": 443}, {"protocol": "TCP", "port": 6443}]}
IDENTITY = [
    {"to": [{"ipBlock": {"cidr": cidr}}], "ports": [{"protocol": "TCP", "port": port}]}
    for cidr, port in (
        ("169.254.169.254/32", 80),  # AWS, GKE, Azure
        ("169.254.169.252/32", 988),  # GKE's metadata server, as its nodes serve it
        ("169.254.170.23/32", 80),  # EKS Pod Identity
        ("fd00:ec2::23/128", 80),
    )
]
PEER = {"namespaceSelector": {"matchLabels": {"team": "s3"}}, "podSelector": {"matchLabels": {"app": "minio"}}}


def render_policy(component: str, **changes: Any) -> Manifest:
    """Return the spec of the NetworkPolicy of `cells`, `runner` or `store`."""
    spec: Manifest = find(render(make_values(**changes)), "NetworkPolicy", f"-{component}")["spec"]
    assert spec["policyTypes"] == ["Ingress", "Egress"]
    return spec


def test_cells_reach_dns_store_and_identity_and_nothing_reaches_them() -> None:
    policy = render_policy("cells")
    assert policy["egress"] == [DNS, STORE, *IDENTITY]
    assert policy["ingress"] == []


def test_the_runner_reaches_the_api_server_too_and_nothing_reaches_it_without_metrics() -> None:
    policy = render_policy("runner")
    assert policy["egress"] == [DNS, STORE, *IDENTITY, API_SERVER]
    assert policy["ingress"] == []


def test_only_those_named_read_the_metrics() -> None:
    port = {"ports": [{"protocol": "TCP", "port": 9090}]}
    changes = {"metrics__enabled": True, "networkPolicy__metrics": [PEER]}
    assert render_policy("runner", metrics__enabled=True)["ingress"] == [port]
    assert render_policy("runner", **changes)["ingress"] == [port | {"from": [PEER]}]
    assert render_policy("cells", **changes)["ingress"] == []


def test_dns_can_be_narrowed() -> None:
    for component in ("cells", "runner"):
        assert render_policy(component, networkPolicy__dns=[PEER])["egress"][0] == DNS | {"to": [PEER]}


@pytest.mark.parametrize("component", ["cells", "runner"])
def test_a_store_in_the_cluster_is_reached_as_pods(component: str) -> None:
    store = {"cidrs": ["10.0.0.0/8"], "peers": [PEER], "ports": [9000, 3128]}
    expected = {
        "to": [{"ipBlock": {"cidr": "10.0.0.0/8"}}, PEER],
        "ports": [{"protocol": "TCP", "port": 9000}, {"protocol": "TCP", "port": 3128}],
    }
    assert render_policy(component, networkPolicy__store=store)["egress"][1] == expected
    only_pods = render_policy(component, networkPolicy__store=store | {"cidrs": []})["egress"][1]
    assert only_pods == expected | {"to": [PEER]}


def test_the_api_server_is_reached_where_it_is_said_to_be() -> None:
    there = {"cidrs": [], "peers": [PEER], "ports": [6443]}
    expected = {"to": [PEER], "ports": [{"protocol": "TCP", "port": 6443}]}
    assert render_policy("runner", networkPolicy__apiServer=there)["egress"][-1] == expected
    assert render_policy("cells", networkPolicy__apiServer=there)["egress"] == [DNS, STORE, *IDENTITY]


def test_where_no_place_is_named_nothing_is_reached_instead_of_everything() -> None:
    nowhere: dict[str, list[str]] = {"cidrs": [], "peers": []}
    changes = {"networkPolicy__store": nowhere, "networkPolicy__apiServer": nowhere, "networkPolicy__identity": []}
    assert render_policy("runner", **changes)["egress"] == [DNS]


def test_the_store_for_trying_is_reached_by_runner_and_cells_alone() -> None:
    changes = {"trialStore__enabled": True, "cells__namespace": "elsewhere"}
    port = [{"protocol": "TCP", "port": 9000}]
    (rule,) = render_policy("store", **changes)["ingress"]
    assert rule["ports"] == port
    assert {
        (
            peer["podSelector"]["matchLabels"]["app.kubernetes.io/component"],
            peer["namespaceSelector"]["matchLabels"]["kubernetes.io/metadata.name"],
        )
        for peer in rule["from"]
    } == {("cell", "elsewhere"), ("runner", "team-a")}
    assert render_policy("store", **changes)["egress"] == []
    dns, store = render_policy("cells", **changes)["egress"]
    assert (dns, store["ports"]) == (DNS, port)
