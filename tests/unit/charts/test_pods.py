"""The pods that the chart makes: where they run, as whom, with which further fields, and what tools see in them."""

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import yaml

from chart import AFFINITY, CHART, OVERLAY, SPREAD, Manifest, find, find_pod, make_values, parse, read_config, render
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


def test_the_runner_is_placed_as_the_values_say() -> None:
    values = make_values(
        runner__affinity=AFFINITY,
        runner__topologySpreadConstraints=SPREAD,
        runner__nodeSelector={"pool": "control"},
        runner__tolerations=[{"key": "control", "operator": "Exists"}],
        runner__priorityClassName="high",
        imagePullSecrets=["pull"],
    )
    for pod in list_runners(render(values)):
        spec = pod["spec"]
        assert (spec["affinity"], spec["topologySpreadConstraints"]) == (AFFINITY, SPREAD)
        assert (spec["nodeSelector"], spec["priorityClassName"]) == ({"pool": "control"}, "high")
        assert spec["tolerations"] == [{"key": "control", "operator": "Exists"}]
        assert spec["imagePullSecrets"] == [{"name": "pull"}]


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


def test_an_overlay_replaces_an_item_of_the_same_name() -> None:
    overlay = {"spec": {"containers": [{"name": "runner", "env": [{"name": "HOME", "value": "/home"}]}]}}
    for pod in list_runners(render(make_values(runner__overlay=overlay))):
        variables = [item for item in pod["spec"]["containers"][0]["env"] if item["name"] == "HOME"]
        assert variables == [{"name": "HOME", "value": "/home"}]


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


def test_a_namespace_that_is_there_is_used_and_not_made() -> None:
    manifests = render(make_values(cells__namespace="cells", cells__createNamespace=False))
    assert [item for item in manifests if item["kind"] == "Namespace"] == []
    assert find(manifests, "Role")["metadata"]["namespace"] == "cells"
    assert find(manifests, "ServiceAccount", "-cells")["metadata"]["namespace"] == "cells"


def test_on_openshift_no_pod_asks_for_a_user_or_a_group() -> None:
    values = merge_example(make_values(trialStore__enabled=True))
    manifests = render(values)
    for key in ("runAsUser", "runAsGroup", "fsGroup"):
        assert list(find_keys(manifests, key)) == []
    contexts = [context["runAsNonRoot"] for context in find_keys(manifests, "securityContext") if len(context) == 2]
    assert contexts == [True] * 3  # runner, doctor, store


def test_on_openshift_no_cell_asks_for_a_user_or_a_group(tmp_path: Path) -> None:
    values = merge_example(make_values())
    (tmp_path / "profile.yaml").write_text(json.dumps(read_config(render(values), "profile")))
    assert load_profile(str(tmp_path / "profile.yaml")).is_user_assigned


def test_on_openshift_dns_is_reached_where_its_pods_listen() -> None:
    manifests = render(merge_example(make_values()))
    for name in ("-runner", "-cells"):
        dns = find(manifests, "NetworkPolicy", name)["spec"]["egress"][0]
        assert {(port["protocol"], port["port"]) for port in dns["ports"]} >= {("UDP", 5353), ("TCP", 5353)}
        assert dns["to"] == [{"namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": "openshift-dns"}}}]


def test_the_examples_are_yaml_that_says_nothing_twice() -> None:
    assert len(list(parse(path.read_text() for path in CHART.glob("examples/*.yaml")))) == 5


def test_a_webhook_is_a_variable_from_its_secret_and_no_word_of_the_command() -> None:
    webhooks = [{"kind": "slack", "secret": "alarms", "key": "url"}]
    container = find_pod(render(make_values(watch__webhooks=webhooks)))["spec"]["containers"][0]

    assert "--watch" in container["args"]
    assert "--webhook=slack:BENCHMATRIX_WEBHOOK_0" in container["args"]
    assert {
        "name": "BENCHMATRIX_WEBHOOK_0",
        "valueFrom": {"secretKeyRef": {"name": "alarms", "key": "url", "optional": True}},
    } in container["env"]


def test_nights_are_not_watched_where_that_is_switched_off() -> None:
    values = make_values(watch__enabled=False, watch__webhooks=[{"kind": "json", "secret": "alarms", "key": "url"}])
    container = find_pod(render(values))["spec"]["containers"][0]

    assert [word for word in container["args"] if "watch" in word or "webhook" in word] == []
    assert [variable for variable in container["env"] if "WEBHOOK" in variable["name"]] == []


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
