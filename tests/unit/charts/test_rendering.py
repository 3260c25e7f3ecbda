"""The chart's templates at every combination of switches, its rights, names, store and notes."""

import json
from typing import Any

import helm_python
import kubernetes_validate
import pytest
from allpairspy import AllPairs

from chart import AFFINITY, CHART, OVERLAY, RELEASE, SPREAD, find, find_pod, make_values, render, render_texts
from runner.kubernetes.permissions import QUEUE_PERMISSIONS, RUN_PERMISSIONS
from runner.kubernetes.rendering.setup_template import SetupTemplate
from runner.profiles.loading import load_profile

VERSIONS = ("1.34", "1.35", "1.36")
"""Of Kubernetes, whose published schemas everything is checked against."""
MATRIX = {
    "name": "mine",
    "axes": {"framework": ["jax", "pytorch"], "phase": ["train", "infer"], "model": ["conv6"]},
    "defaults": {"device": "cpu", "batch_size": 10_000_000, "seed": 4_000_000_000},
}
SWITCHES: dict[str, list[Any]] = {
    "customMatrix": [{}, MATRIX],
    "cells__namespace": ["", "cells-of-sweeps"],
    "trialStore__enabled": [False, True],
    "store__secret": ["", "keys"],
    "store__endpointUrl": ["", "https://s3.example:9000"],
    "networkPolicy__enabled": [True, False],
    "networkPolicy__dns": [[], [{"ipBlock": {"cidr": "10.0.0.10/32"}}]],
    "networkPolicy__store__peers": [[], [{"podSelector": {"matchLabels": {"app": "minio"}}}]],
    "kueue__localQueue": ["", "sweeps"],
    "kueue__clusterQueue": ["", "all"],
    "kueue__flavors": [[], [{"name": "cpu", "quotas": {"cpu": 8}}]],
    "profile__extends": ["gke", "eks"],
    "claims__enabled": [False, True],
    "quota__hard": [{}, {"count/jobs.batch": 50, "requests.cpu": "16"}],
    "metrics__enabled": [False, True],
    "metrics__podMonitor__enabled": [False, True],
    "metrics__podMonitor__labels": [{}, {"cost-centre": "44"}],
    "runner__serviceAccount": [{}, {"create": False, "name": "there"}, {"annotations": {"a/b": "c"}}],
    "cells__serviceAccount": [{}, {"create": False, "name": "there-too"}, {"annotations": {"a/b": "c"}}],
    "runner__priorityClassName": ["", "high"],
    "runner__tolerations": [[], [{"key": "k", "operator": "Exists"}]],
    "runner__nodeSelector": [{}, {"pool": "control"}],
    "runner__environment": [{}, {"HTTPS_PROXY": "http://proxy:3128", "NO_PROXY": "$(HOME), ${x}"}],
    "runner__podLabels": [{}, {"azure.workload.identity/use": "true", "cost-centre": "43"}],
    "runner__podAnnotations": [{}, {"note": 'says "yes": {{ no }}'}],
    "imagePullSecrets": [[], ["pull"]],
    "image__digest": ["", "sha256:" + "0" * 64],
    "schedule__suspend": [False, True],
    "labels": [{}, {"cost-centre": "42"}],
    "annotations": [{}, {"argocd.argoproj.io/sync-wave": "1"}],
    "assignedUser": [False, True],
    "cells__createNamespace": [True, False],
    "networkPolicy__dnsPorts": [[53], [53, 5353]],
    "runner__affinity": [{}, AFFINITY],
    "runner__topologySpreadConstraints": [[], SPREAD],
    "runner__overlay": [{}, OVERLAY],
}
COMBINATIONS = [dict(zip(SWITCHES, chosen, strict=True)) for chosen in AllPairs(list(SWITCHES.values()))]


@pytest.mark.parametrize("values", COMBINATIONS, ids=range(len(COMBINATIONS)))
def test_every_pair_of_switches_renders_what_three_versions_of_kubernetes_know(values: dict[str, Any]) -> None:
    manifests = render(make_values(**values))

    assert {"CronJob", "Role", "RoleBinding", "Pod"} <= {manifest["kind"] for manifest in manifests}
    for manifest in manifests:
        for version in VERSIONS:
            kubernetes_validate.validate(manifest, version, strict=True)
        assert manifest["metadata"]["labels"]["app.kubernetes.io/instance"] == RELEASE


@pytest.mark.parametrize("values", COMBINATIONS[:4], ids=range(4))
def test_lint_has_no_complaint(values: dict[str, Any]) -> None:
    report = helm_python.lint(CHART, make_values(**values), strict=True)

    assert report["errors"] == []
    assert [message for message in report["messages"] if message["severity"] > 1] == []


def test_lint_has_no_complaint_about_the_defaults() -> None:
    assert helm_python.lint(CHART, strict=True)["errors"] == []


def test_the_role_is_what_the_tool_says_that_a_run_needs() -> None:
    rules = find(render(make_values()), "Role")["rules"]

    assert [(rule["apiGroups"], rule["resources"], rule["verbs"]) for rule in rules] == [
        ([needed.group], [needed.resource], list(needed.verbs)) for needed in RUN_PERMISSIONS
    ]


def test_the_role_with_a_queue_lets_the_runner_explain_what_waits() -> None:
    rules = find(render(make_values(kueue__localQueue="q")), "Role")["rules"]

    assert [(rule["apiGroups"], rule["resources"], rule["verbs"]) for rule in rules] == [
        ([needed.group], [needed.resource], list(needed.verbs)) for needed in (*RUN_PERMISSIONS, *QUEUE_PERMISSIONS)
    ]


def test_two_releases_in_one_namespace_share_no_object_and_no_pod() -> None:
    one, other = (render(make_values(), name=name) for name in ("one", "other"))

    def identify(manifests: list[dict[str, Any]]) -> set[tuple[str, str]]:
        return {(item["kind"], item["metadata"]["name"]) for item in manifests}

    assert identify(one) & identify(other) == set()
    for policy in (item for item in one if item["kind"] == "NetworkPolicy"):
        selected = policy["spec"]["podSelector"]["matchLabels"].items()
        assert not selected <= find_pod(other)["metadata"]["labels"].items()


def test_long_names_of_releases_stay_apart_and_within_bounds() -> None:
    names = [f"{'x' * 52}{end}" for end in "ab"]
    rendered = [find(render(make_values(), name=name), "CronJob")["metadata"]["name"] for name in names]
    assert len(set(rendered)) == 2
    assert all(
        len(name) <= 52 for name in rendered
    )  # https://kubernetes.io/docs/concepts/workloads/controllers/cron-jobs/
    assert find(render(make_values(), name="my-benchmatrix"), "CronJob")["metadata"]["name"] == "my-benchmatrix"


def test_runner_and_doctor_have_a_token_and_the_store_has_none() -> None:
    """Whatever the ServiceAccount says, which may be the user's own."""
    manifests = render(make_values(trialStore__enabled=True))
    pods = {
        "runner": find_pod(manifests)["spec"],
        "doctor": find(manifests, "Pod", "-doctor")["spec"],
        "store": find(manifests, "Deployment")["spec"]["template"]["spec"],
    }
    found = {name: pod["automountServiceAccountToken"] for name, pod in pods.items()}
    assert found == {"runner": True, "doctor": True, "store": False}


def test_amounts_are_rendered_as_they_were_given() -> None:
    hard = {"pods": 10_000_000, "requests.cpu": 1.5, "requests.memory": "1.5Gi"}
    manifests = render(make_values(trialStore__enabled=True, trialStore__size=4_294_967_296, quota__hard=hard))
    volumes = find(manifests, "Deployment")["spec"]["template"]["spec"]["volumes"]
    assert find(manifests, "ResourceQuota")["spec"]["hard"] == {name: str(amount) for name, amount in hard.items()}
    assert volumes[0]["emptyDir"]["sizeLimit"] == "4294967296"


def test_what_the_cluster_lacks_is_skipped_with_a_note() -> None:
    values = make_values(
        kueue__localQueue="q", kueue__clusterQueue="all", metrics__enabled=True, metrics__podMonitor__enabled=True
    )
    notes = render_texts(values)["benchmatrix/templates/NOTES.txt"]

    assert {"LocalQueue", "PodMonitor"}.isdisjoint({item["kind"] for item in render(values)})
    assert "SKIPPED: the cluster has no Kueue" in notes
    assert "SKIPPED: the cluster has no Prometheus operator" in notes
    assert "SKIPPED" not in render_texts(make_values())["benchmatrix/templates/NOTES.txt"]


def test_the_store_for_trying_is_the_one_that_setup_makes() -> None:
    """tests/cluster/test_setup.py has rclone serve as that one is started."""
    values = make_values(trialStore__enabled=True, store__secret="sweeps-benchmatrix-store")
    chart = find(render(values), "Deployment")["spec"]["template"]["spec"]
    setup = SetupTemplate(profile=load_profile("kind"), has_store=True).render()["s3"][0]["spec"]["template"]["spec"]
    chart_text, setup_text = (json.dumps(spec, sort_keys=True) for spec in (chart, setup))
    assert chart_text == setup_text.replace("benchmatrix-store", "sweeps-benchmatrix-store")
