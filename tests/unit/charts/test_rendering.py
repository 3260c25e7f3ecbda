"""The chart's templates at every combination of switches: rights, names, labels, schedule, store and notes."""

import json
import re
import shutil
from pathlib import Path
from typing import Any

import helm_python
import kubernetes_validate
import pytest
from allpairspy import AllPairs

from chart import (
    AFFINITY,
    CHART,
    MATRIX,
    OVERLAY,
    RELEASE,
    SPREAD,
    find,
    find_pod,
    make_values,
    parse,
    read_config,
    render,
    render_texts,
)
from runner.commands.options import EXIT_NOT_OK, EXIT_USER_ERROR
from runner.kubernetes.setup import QUEUE_PERMISSIONS, RUN_PERMISSIONS, Permission, SetupTemplate
from runner.profiles.loading import load_profile

VERSIONS = ("1.34", "1.35", "1.36")
"""Of Kubernetes, whose published schemas everything is checked against."""
SWITCHES: dict[str, list[Any]] = {
    "customMatrix": [{}, MATRIX],
    "cells__namespace": ["", "cells-of-sweeps"],
    "cells__createNamespace": [True, False],
    "trialStore__enabled": [False, True],
    "store__secret": ["", "keys"],
    "store__endpointUrl": ["", "https://s3.example:9000"],
    "networkPolicy__enabled": [True, False],
    "networkPolicy__store__peers": [[], [{"podSelector": {"matchLabels": {"app": "minio"}}}]],
    "kueue__localQueue": ["", "sweeps"],
    "kueue__clusterQueue": ["", "all"],
    "kueue__flavors": [[], [{"name": "cpu", "quotas": {"cpu": 8}}]],
    "profile__extends": ["gke", "eks"],
    "claims__enabled": [False, True],
    "metrics__enabled": [False, True],
    "metrics__podMonitor__enabled": [False, True],
    "runner__serviceAccount": [{}, {"create": False, "name": "there"}, {"annotations": {"a/b": "c"}}],
    "cells__serviceAccount": [{}, {"create": False, "name": "there-too"}, {"annotations": {"a/b": "c"}}],
    "runner__environment": [{}, {"HTTPS_PROXY": "http://proxy:3128", "NO_PROXY": "$(HOME), ${x}"}],
    "runner__overlay": [{}, OVERLAY],
}
"""What meets in a template; the rest is given all together or not at all."""
OTHERS: dict[str, Any] = {
    "networkPolicy__dns": [{"ipBlock": {"cidr": "10.0.0.10/32"}}],
    "networkPolicy__dnsPorts": [53, 5353],
    "quota__hard": {"count/jobs.batch": 50, "requests.cpu": "16"},
    "metrics__podMonitor__labels": {"cost-centre": "44"},
    "runner__priorityClassName": "high",
    "runner__tolerations": [{"key": "k", "operator": "Exists"}],
    "runner__nodeSelector": {"pool": "control"},
    "runner__podLabels": {"azure.workload.identity/use": "true", "cost-centre": "43"},
    "runner__podAnnotations": {"note": 'says "yes": {{ no }}'},
    "runner__affinity": AFFINITY,
    "runner__topologySpreadConstraints": SPREAD,
    "imagePullSecrets": ["pull"],
    "image__digest": "sha256:" + "0" * 64,
    "schedule__suspend": True,
    "labels": {"cost-centre": "42"},
    "annotations": {"argocd.argoproj.io/sync-wave": "1"},
    "assignedUser": True,
}
PAIRS = AllPairs(list(SWITCHES.values()))
COMBINATIONS = [
    dict(zip(SWITCHES, chosen, strict=True)) | (OTHERS if number % 2 else {}) for number, chosen in enumerate(PAIRS)
]


@pytest.mark.parametrize("values", COMBINATIONS, ids=range(len(COMBINATIONS)))
def test_every_pair_of_switches_renders_what_three_versions_of_kubernetes_know(values: dict[str, Any]) -> None:
    manifests = render(make_values(**values))

    kinds = {manifest["kind"] for manifest in manifests}
    assert {"CronJob", "Role", "RoleBinding", "Pod"} <= kinds
    assert "Secret" not in kinds
    for manifest in manifests:
        for version in VERSIONS:
            kubernetes_validate.validate(manifest, version, strict=True)
        assert manifest["metadata"]["labels"]["app.kubernetes.io/instance"] == RELEASE


def test_lint_has_no_complaint() -> None:
    assert helm_python.lint(CHART, strict=True)["errors"] == []
    for values in COMBINATIONS[:2]:
        report = helm_python.lint(CHART, make_values(**values), strict=True)
        assert report["errors"] == []
        assert [message for message in report["messages"] if message["severity"] > 1] == []


@pytest.mark.parametrize(
    ("queue", "permissions"), [("", RUN_PERMISSIONS), ("q", (*RUN_PERMISSIONS, *QUEUE_PERMISSIONS))]
)
def test_the_role_is_what_the_tool_says_that_a_run_needs(queue: str, permissions: tuple[Permission, ...]) -> None:
    rules = find(render(make_values(kueue__localQueue=queue)), "Role")["rules"]
    assert [(rule["apiGroups"], rule["resources"], rule["verbs"]) for rule in rules] == [
        ([needed.group], [needed.resource], list(needed.verbs)) for needed in permissions
    ]


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


LABEL = re.compile(r"[a-z]([a-z0-9-]*[a-z0-9])?")
EVERYTHING: dict[str, Any] = {
    "trialStore__enabled": True,
    "claims__enabled": True,
    "profile__extends": "gke",
    "quota__hard": {"pods": 10},
}


@pytest.mark.parametrize("release", ["a.c", "1", "1.2.3", f"{'x' * 32}.{'y' * 20}", "0" * 53, "benchmatrix.v1"])
def test_names_are_labels_of_dns_whatever_the_release_is_called(release: str) -> None:
    manifests = render(make_values(**EVERYTHING), name=release)

    names = {manifest["metadata"]["name"] for manifest in manifests}
    assert [name for name in names if not LABEL.fullmatch(name) or len(name) > 63] == []
    # https://kubernetes.io/docs/concepts/workloads/controllers/cron-jobs/
    assert len(find(manifests, "CronJob")["metadata"]["name"]) <= 52


@pytest.mark.parametrize(("one", "other"), [("a.c", "a-c"), ("a.b-c", "a-b.c"), ("1", "r1"), ("x" * 52, "x" * 53)])
def test_two_releases_in_one_namespace_share_no_object_and_no_pod(one: str, other: str) -> None:
    first, second = (render(make_values(**EVERYTHING), name=name) for name in (one, other))
    names = [{(item["kind"], item["metadata"]["name"]) for item in manifests} for manifests in (first, second)]
    assert names[0] & names[1] == set()
    for policy in (item for item in first if item["kind"] == "NetworkPolicy"):
        selected = policy["spec"]["podSelector"]["matchLabels"].items()
        assert not selected <= find_pod(second)["metadata"]["labels"].items()


@pytest.mark.parametrize("word", ["123", "1e3", "0x10", "null", "on"])
def test_names_that_yaml_reads_as_something_else_stay_texts(word: str) -> None:
    there = {"create": False, "name": word}
    values = make_values(
        claims__enabled=True,
        claims__deviceClass=word,
        profile__extends="gke",
        quota__hard={"pods": 10},
        runner__serviceAccount=there,
        cells__serviceAccount=there,
        runner__priorityClassName=word,
        runner__environment={"NO": "yes", "Y": "1", "_1": "null"},
        runner__podLabels={"on": word, "off": ""},
        runner__nodeSelector={"1": word},
        imagePullSecrets=[word],
        store__secret=word,
        labels={"no": word},
    )
    for manifest in render(values | {"trialStore": {"enabled": False}}, name=word, namespace=word):
        kubernetes_validate.validate(manifest, "1.36", strict=True)
        assert manifest["metadata"].get("namespace") == word
        assert manifest["metadata"]["labels"]["app.kubernetes.io/instance"] == word
    for manifest in render(make_values(trialStore__enabled=True, cells__namespace=word), name=word, namespace="456"):
        kubernetes_validate.validate(manifest, "1.36", strict=True)


def test_what_is_said_twice_has_the_value_of_the_nearer_one() -> None:
    values = make_values(
        labels={"team": "a", "empty": "x"},
        runner__podLabels={"team": "b", "empty": ""},
        runner__environment={"AWS_ENDPOINT_URL": "https://mine.example"},
        store__endpointUrl="https://s3.example",
    )
    manifests = render(values, name="my-benchmatrix")
    assert find(manifests, "CronJob")["metadata"]["name"] == "my-benchmatrix"
    variables = {item["name"]: item.get("value") for item in find_pod(manifests)["spec"]["containers"][0]["env"]}
    assert variables["AWS_ENDPOINT_URL"] == "https://mine.example"
    for labels in (find_pod(manifests)["metadata"]["labels"], find(manifests, "Pod", "-doctor")["metadata"]["labels"]):
        assert {"team": "b", "empty": ""}.items() <= labels.items()
    assert find(manifests, "CronJob")["metadata"]["labels"]["team"] == "a"


def test_labels_of_cells_are_those_of_the_profile_and_what_else_the_chart_is_given() -> None:
    values = make_values(labels={"team": "a", "unit": "x"}, profile__labels={"team": "b"})
    expected = {"team": "b", "unit": "x", "benchmatrix/release": "sweeps"}
    assert read_config(render(values), "profile")["labels"] == expected


@pytest.mark.parametrize(
    ("said", "deadline"),
    [
        ({}, 660),
        ({"active_deadline_seconds": 500}, 500),
        ({"active_deadline_seconds": 700}, 660),
        ({"active_deadline_seconds": None}, 660),
    ],
)
def test_the_jobs_of_cells_take_no_longer_than_the_run(said: dict[str, Any], deadline: int) -> None:
    values = make_values(schedule__deadlineSeconds=600, schedule__reportSeconds=60)
    values["profile"] |= said
    assert read_config(render(values), "profile")["active_deadline_seconds"] == deadline


def test_a_run_is_not_begun_beside_another_nor_replaced_before_its_end_and_has_time_to_report() -> None:
    cronjob = find(render(make_values(schedule__deadlineSeconds=600, schedule__reportSeconds=60)), "CronJob")["spec"]
    job = cronjob["jobTemplate"]["spec"]
    assert (
        cronjob["concurrencyPolicy"],
        job["podReplacementPolicy"],
        job["activeDeadlineSeconds"],
    ) == ("Forbid", "Failed", 660)
    assert "--deadline=600" in job["template"]["spec"]["containers"][0]["args"]


def test_only_a_report_of_what_did_not_end_well_ends_a_run_as_failed() -> None:
    job = find(render(make_values()), "CronJob")["spec"]["jobTemplate"]["spec"]
    codes = {
        rule["action"]: (rule["onExitCodes"]["operator"], rule["onExitCodes"]["values"])
        for rule in job["podFailurePolicy"]["rules"]
        if "onExitCodes" in rule
    }
    assert codes == {"Ignore": ("In", [130, 143]), "FailJob": ("In", [EXIT_NOT_OK, EXIT_USER_ERROR])}


def test_cells_elsewhere_are_not_owned_by_the_run() -> None:
    """A Job cannot own what is in another namespace: the garbage collector would delete it at once."""
    here, there = (
        find_pod(render(make_values(cells__namespace=namespace)))["spec"]["containers"][0]["args"]
        for namespace in ("", "elsewhere")
    )
    assert "--owner=$(JOB_NAME)/$(JOB_UID)" in here
    assert not [word for word in there if word.startswith("--owner")]


NULL_KEEPERS = ["v3.18.6", "v3.19.4", "v3.19.6", "v3.20.1", "v4.1.3", "v4.2.3", "v4.2", "v4.1"]
NULL_DROPPERS = ["v3.19.5", "v3.20.0", "v4.0.0", "v4.0.5+gabc", "v4.1.2"]


def test_versions_of_helm_that_drop_nulls_are_refused(tmp_path: Path) -> None:
    """The engine of the tests has one version: so the rule is asked about others, in a copy of the chart."""
    chart = shutil.copytree(CHART, tmp_path / "benchmatrix")
    asked = json.dumps(NULL_KEEPERS + NULL_DROPPERS)
    rule = '{{- range fromJsonArray `%s` }}\n{{ . }}: {{ include "benchmatrix.dropsNulls" . | quote }}\n{{- end }}'
    (chart / "templates" / "asked.yaml").write_text(rule % asked)

    with helm_python.Chart.load(chart) as loaded:
        (answers,) = parse([loaded.render(make_values())["benchmatrix/templates/asked.yaml"]])

    assert answers == dict.fromkeys(NULL_KEEPERS, "") | dict.fromkeys(NULL_DROPPERS, "true")
