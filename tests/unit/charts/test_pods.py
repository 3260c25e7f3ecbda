"""The pods that the chart makes: where they run, as whom, what tools see in them, whom they reach."""

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from chart import CHART, OVERLAY, Manifest, find, find_pod, make_values, read_config, render
from runner.profiles.loading import load_profile

OPENSHIFT = CHART / "examples" / "openshift.yaml"
TRACKING_LABEL = "app.kubernetes.io/instance"


def list_runners(manifests: list[Manifest]) -> list[Manifest]:
    """Return the pods of the runner and of doctor: what one gets, the other gets."""
    return [find_pod(manifests), find(manifests, "Pod", "-doctor")]


def find_keys(part: Any, key: str) -> Iterator[Any]:
    """Yield every value of a key, however deep."""
    if isinstance(part, dict):
        yield from (value for name, value in part.items() if name == key)
    for child in part.values() if isinstance(part, dict) else part if isinstance(part, list) else ():
        yield from find_keys(child, key)


def merge_example(values: Manifest) -> Manifest:
    """Return values for OpenShift: the example's and, before them, those of an installation."""
    example: Manifest = yaml.safe_load(OPENSHIFT.read_text())
    return example | values | {"profile": values["profile"] | example["profile"]}


def test_what_comes_to_be_later_has_a_label_of_its_own_in_place_of_the_one_that_argo_cd_tracks() -> None:
    manifests = render(make_values())
    job = find(manifests, "CronJob")["spec"]["jobTemplate"]
    for labels in (job["metadata"]["labels"], job["spec"]["template"]["metadata"]["labels"]):
        assert labels["benchmatrix/release"] == "sweeps"
        assert TRACKING_LABEL not in labels
    selectors = [item["spec"]["podSelector"] for item in manifests if item["kind"] == "NetworkPolicy"]
    assert len(selectors) == 2
    assert [selector for selector in selectors if TRACKING_LABEL in selector["matchLabels"]] == []


def test_the_selector_of_the_store_for_trying_is_that_of_the_first_version() -> None:
    """It cannot be changed: `helm upgrade` would fail."""
    deployment = find(render(make_values(trialStore__enabled=True)), "Deployment")
    expected = {
        "app.kubernetes.io/name": "benchmatrix",
        "app.kubernetes.io/instance": "sweeps",
        "app.kubernetes.io/component": "store",
    }
    assert deployment["spec"]["selector"]["matchLabels"] == expected
    assert expected.items() <= deployment["spec"]["template"]["metadata"]["labels"].items()


def test_an_overlay_adds_to_what_the_runner_has() -> None:
    plain = list_runners(render(make_values(runner__environment={"A": "1"})))
    changed = list_runners(render(make_values(runner__environment={"A": "1"}, runner__overlay=OVERLAY)))
    added = OVERLAY["spec"]
    for before, after in zip(plain, changed, strict=True):
        assert after["metadata"]["annotations"] == before["metadata"]["annotations"] | {
            "sidecar.istio.io/inject": "false"
        }
        assert after["spec"]["volumes"] == before["spec"]["volumes"] + added["volumes"]
        assert after["spec"]["securityContext"] == before["spec"]["securityContext"] | {"fsGroup": 2000}
        assert after["spec"]["runtimeClassName"] == "gvisor"
        (container,), (own,) = after["spec"]["containers"], before["spec"]["containers"]
        assert container["env"] == own["env"] + added["containers"][0]["env"]
        assert container["volumeMounts"] == own["volumeMounts"] + added["containers"][0]["volumeMounts"]
        assert {key: container[key] for key in ("args", "image", "resources")} == {
            key: own[key] for key in ("args", "image", "resources")
        }


def test_annotations_are_on_every_object_and_leave_those_that_it_has() -> None:
    values = make_values(
        annotations={"argocd.argoproj.io/sync-wave": "1"},
        trialStore__enabled=True,
        cells__namespace="cells",
        runner__serviceAccount={"annotations": {"eks.amazonaws.com/role-arn": "arn"}},
    )
    manifests = render(values)
    annotations = {item["metadata"]["name"]: item["metadata"]["annotations"] for item in manifests}
    assert {found["argocd.argoproj.io/sync-wave"] for found in annotations.values()} == {"1"}
    account = find(manifests, "ServiceAccount", "-runner")["metadata"]["annotations"]
    assert account["eks.amazonaws.com/role-arn"] == "arn"
    assert "benchmatrix/purpose" in find(manifests, "Deployment")["metadata"]["annotations"]
    assert find(manifests, "Pod")["metadata"]["annotations"]["helm.sh/hook"] == "test"


def test_on_openshift_no_pod_asks_for_a_user_or_a_group_and_dns_is_where_its_pods_listen(tmp_path: Path) -> None:
    manifests = render(merge_example(make_values(trialStore__enabled=True)))
    for key in ("runAsUser", "runAsGroup", "fsGroup"):
        assert list(find_keys(manifests, key)) == []
    (tmp_path / "profile.yaml").write_text(json.dumps(read_config(manifests, "profile")))
    assert load_profile(str(tmp_path / "profile.yaml")).is_user_assigned
    for name in ("-runner", "-cells"):
        dns = find(manifests, "NetworkPolicy", name)["spec"]["egress"][0]
        assert {(port["protocol"], port["port"]) for port in dns["ports"]} >= {("UDP", 5353), ("TCP", 5353)}
        assert dns["to"] == [{"namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": "openshift-dns"}}}]


def test_a_webhook_is_a_variable_from_its_secret_and_no_word_of_the_command() -> None:
    webhooks = [{"kind": "slack", "secret": "alarms", "key": "url"}]
    container = find_pod(render(make_values(watch__webhooks=webhooks)))["spec"]["containers"][0]

    assert "--watch" in container["args"]
    assert "--webhook=slack:BENCHMATRIX_WEBHOOK_0" in container["args"]
    assert {
        "name": "BENCHMATRIX_WEBHOOK_0",
        "valueFrom": {"secretKeyRef": {"name": "alarms", "key": "url", "optional": True}},
    } in container["env"]


def expand(text: str, variables: dict[str, str]) -> str:
    """Return what a kubelet makes of an argument or of a variable's value: `$$` is a dollar, `$(NAME)` a variable.

    https://github.com/kubernetes/kubernetes/blob/master/third_party/forked/golang/expansion/expand.go
    """

    def replace(match: re.Match[str]) -> str:
        return "$" if match[0] == "$$" else variables.get(match["name"], match[0])

    return re.sub(r"\$\$|\$\((?P<name>[^)]*)\)", replace, text)


def test_store_and_variables_reach_the_runner_as_they_are_written() -> None:
    """Kubernetes would put the value of another variable into them, also a key of the store's Secret."""
    environment = {"NO_PROXY": "$(HOME),$$(HOME),$$,$x", "A": "$(AWS_SECRET_ACCESS_KEY)"}
    values = make_values(
        store__url="s3://bucket/$(AWS_SECRET_ACCESS_KEY)/$$",
        store__endpointUrl="https://s3.example/$(HOME)",
        runner__environment=environment,
    )
    expected = environment | {"AWS_ENDPOINT_URL": "https://s3.example/$(HOME)"}
    known = {"HOME": "/tmp", "AWS_SECRET_ACCESS_KEY": "hunter2"}
    for pod in list_runners(render(values)):
        (container,) = pod["spec"]["containers"]
        found = {one["name"]: expand(one["value"], known) for one in container["env"] if "value" in one}
        assert expected.items() <= found.items()
        assert "--store=s3://bucket/$(AWS_SECRET_ACCESS_KEY)/$$" in [expand(one, known) for one in container["args"]]


def test_the_runner_is_told_the_names_of_its_job() -> None:
    """Where the chart itself wants a variable's value, it stays a reference."""
    (container,) = find_pod(render(make_values()))["spec"]["containers"]
    known = {"JOB_NAME": "sweeps-1", "JOB_UID": "1-2"}
    assert {"--run-id=sweeps-1", "--owner=sweeps-1/1-2"} <= {expand(one, known) for one in container["args"]}


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


NOWHERE: dict[str, list[str]] = {"cidrs": [], "peers": []}


@pytest.mark.parametrize(
    ("component", "changes", "egress"),
    [
        ("cells", {}, [DNS, STORE, *IDENTITY]),
        ("runner", {}, [DNS, STORE, *IDENTITY, API_SERVER]),
        ("cells", {"dns": [PEER]}, [DNS | {"to": [PEER]}, STORE, *IDENTITY]),
        ("cells", {"store": {"cidrs": [], "peers": [PEER]}}, [DNS, STORE | {"to": [PEER]}, *IDENTITY]),
        ("runner", {"apiServer": NOWHERE | {"peers": [PEER]}}, [DNS, STORE, *IDENTITY, API_SERVER | {"to": [PEER]}]),
        ("runner", {"store": NOWHERE, "apiServer": NOWHERE, "identity": []}, [DNS]),  # and not everything
    ],
)
def test_pods_reach_what_they_need_and_nothing_reaches_them(
    component: str, changes: dict[str, Any], egress: list[Manifest]
) -> None:
    policy = render_policy(component, **{f"networkPolicy__{key}": value for key, value in changes.items()})
    assert (policy["egress"], policy["ingress"]) == (egress, [])


def test_a_store_in_the_cluster_is_reached_as_pods_and_at_its_ports() -> None:
    store = {"cidrs": ["10.0.0.0/8"], "peers": [PEER], "ports": [9000, 3128]}
    ports = [{"protocol": "TCP", "port": 9000}, {"protocol": "TCP", "port": 3128}]
    for component in ("cells", "runner"):
        egress = render_policy(component, networkPolicy__store=store)["egress"][1]
        assert egress == {"to": [{"ipBlock": {"cidr": "10.0.0.0/8"}}, PEER], "ports": ports}


def test_only_those_named_read_the_metrics() -> None:
    port = {"ports": [{"protocol": "TCP", "port": 9090}]}
    changes = {"metrics__enabled": True, "networkPolicy__metrics": [PEER]}
    assert render_policy("runner", metrics__enabled=True)["ingress"] == [port]
    assert render_policy("runner", **changes)["ingress"] == [port | {"from": [PEER]}]
    assert render_policy("cells", **changes)["ingress"] == []


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
