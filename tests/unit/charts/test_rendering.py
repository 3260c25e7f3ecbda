"""The chart's templates: what they render at every combination of switches, and what the runner reads of it."""

import json
import re
import shutil
from pathlib import Path
from typing import Any

import helm_python
import kubernetes_validate
import pytest
from allpairspy import AllPairs

from chart import CHART, NAMESPACE, RELEASE, find, find_pod, make_values, parse, read_config, render, render_texts
from factories import make_cell
from runner.commands.options import EXIT_NOT_OK, EXIT_USER_ERROR
from runner.kubernetes.permissions import RUN_PERMISSIONS
from runner.kubernetes.rendering.job_name import JobKey
from runner.kubernetes.rendering.job_template import JobRenderer
from runner.kubernetes.rendering.setup_template import SetupTemplate
from runner.matrix.expansion import load_matrix
from runner.matrix.values import CELL_KEYS
from runner.profiles.model import load_profile

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
    "night__suspend": [False, True],
    "labels": [{}, {"cost-centre": "42"}],
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

    assert [] == report["errors"]
    assert [] == [message for message in report["messages"] if message["severity"] > 1]


def test_lint_has_no_complaint_about_the_defaults() -> None:
    assert [] == helm_python.lint(CHART, strict=True)["errors"]


def test_the_role_is_what_the_tool_says_that_a_run_needs() -> None:
    rules = find(render(make_values()), "Role")["rules"]

    assert [([needed.group], [needed.resource], list(needed.verbs)) for needed in RUN_PERMISSIONS] == [
        (rule["apiGroups"], rule["resources"], rule["verbs"]) for rule in rules
    ]


def test_the_runner_reads_the_profile_that_the_chart_makes(tmp_path: Path) -> None:
    values = make_values(
        store__secret="keys",
        store__endpointUrl="https://s3.example",
        imagePullSecrets=["pull"],
        labels={"cost-centre": "42"},
        profile__gpu=None,
        profile__environment={"OMP_PROC_BIND": "true"},
    )
    manifests = render(values)
    path = tmp_path / "profile.yaml"
    path.write_text(json.dumps(read_config(manifests, "profile")))

    profile = load_profile(str(path))

    assert (NAMESPACE, "sweeps-benchmatrix-cells", "keys") == (
        profile.namespace,
        profile.service_account,
        profile.store_secret,
    )
    assert {"OMP_PROC_BIND": "true", "AWS_ENDPOINT_URL": "https://s3.example"} == profile.environment
    renderer = JobRenderer(profile=profile, store_url="s3://bucket/prefix", git_revision=None)
    planned = load_matrix("smoke").cells[0]
    key = JobKey(run_id="r", cell_id=planned.cell.cell_id, number=1, retry_round=0)
    labels = json.loads(renderer.render(planned, key))["spec"]["template"]["metadata"]["labels"]
    policy = find(manifests, "NetworkPolicy", "-cells")
    assert policy["spec"]["podSelector"]["matchLabels"].items() <= labels.items()
    assert "42" == labels["cost-centre"]


def test_without_a_secret_the_profile_names_none_whatever_it_extends(tmp_path: Path) -> None:
    path = tmp_path / "profile.yaml"
    path.write_text(json.dumps(read_config(render(make_values()), "profile")))
    assert load_profile("kind").store_secret is not None
    assert load_profile(str(path)).store_secret is None


def test_nulls_of_the_profile_remove_what_it_extends(tmp_path: Path) -> None:
    values = make_values(profile__extends="gke", profile__gpu=None, profile__pools={"gpu": None})
    path = tmp_path / "profile.yaml"
    path.write_text(json.dumps(read_config(render(values), "profile")))
    assert ["cpu"] == list(load_profile(str(path)).pools)


@pytest.mark.parametrize("key", ["labels", "environment", "gpu"])
def test_nulls_below_a_key_that_the_chart_adds_to_are_kept(key: str) -> None:
    values = make_values(profile__extends="gke", claims__enabled=True, **{f"profile__{key}": {"resource": None}})
    assert read_config(render(values), "profile")[key].items() >= {("resource", None)}


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

    assert dict.fromkeys(NULL_KEEPERS, "") | dict.fromkeys(NULL_DROPPERS, "true") == answers


def test_the_rule_about_versions_of_helm_holds_for_the_one_that_renders(tmp_path: Path) -> None:
    chart = shutil.copytree(CHART, tmp_path / "benchmatrix")
    config = chart / "templates" / "_config.tpl"
    config.write_text(config.read_text().replace(".Capabilities.HelmVersion.Version", '"v4.1.2"'))
    with (
        helm_python.Chart.load(chart) as loaded,
        pytest.raises(helm_python.HelmRenderError, match=re.escape("Helm v4.1.2 drops the nulls")),
    ):
        loaded.render(make_values())


def test_frameworks_of_a_custom_matrix_are_measured_in_turns(tmp_path: Path) -> None:
    path = tmp_path / "matrix.yaml"
    path.write_text(find_pod(render(make_values(customMatrix=MATRIX)))["metadata"]["annotations"]["benchmatrix/matrix"])

    cells = [planned.cell for planned in load_matrix(str(path)).cells]

    assert [("train", "jax"), ("train", "pytorch"), ("infer", "jax"), ("infer", "pytorch")] == [
        (cell.phase, cell.framework) for cell in cells
    ]
    assert {(10_000_000, 4_000_000_000)} == {(cell.batch_size, cell.seed) for cell in cells}


@pytest.mark.parametrize("key", CELL_KEYS)
def test_every_axis_of_a_custom_matrix_gets_through(key: str) -> None:
    value = make_cell(data_dir="/data").model_dump(mode="json")[key]
    rendered = read_config(render(make_values(customMatrix={"name": "one", "axes": {key: [value]}})), "matrix")
    assert {"name": "one", "axes": {key: [value]}} == rendered


def test_claims_name_the_templates_that_are_made(tmp_path: Path) -> None:
    values = make_values(profile__extends="gke", claims__enabled=True, claims__maxPerNode=2)
    manifests = render(values)
    path = tmp_path / "profile.yaml"
    path.write_text(json.dumps(read_config(manifests, "profile")))

    gpu = load_profile(str(path)).gpu

    assert gpu is not None
    assert "claim" == gpu.request
    made = [item["metadata"]["name"] for item in manifests if item["kind"] == "ResourceClaimTemplate"]
    assert [gpu.name_claim_template(1), gpu.name_claim_template(2)] == made


def test_claims_of_another_class_are_made_of_other_templates() -> None:
    """The spec of a ResourceClaimTemplate cannot be changed."""

    def name_templates(device_class: str) -> set[str]:
        values = make_values(profile__extends="gke", claims__enabled=True, claims__deviceClass=device_class)
        return {item["metadata"]["name"] for item in render(values) if item["kind"] == "ResourceClaimTemplate"}

    assert 8 == len(name_templates("gpu.nvidia.com"))
    assert set() == name_templates("gpu.nvidia.com") & name_templates("mig.nvidia.com")


@pytest.mark.parametrize(
    ("said", "deadline"),
    [
        ({}, 660),
        ({"job_deadline_seconds": 500}, 500),
        ({"job_deadline_seconds": 700}, 660),
        ({"job_deadline_seconds": None}, 660),
    ],
)
def test_the_jobs_of_cells_take_no_longer_than_the_night(said: dict[str, Any], deadline: int) -> None:
    values = make_values(night__deadlineSeconds=600, night__reportSeconds=60)
    values["profile"] |= said
    assert deadline == read_config(render(values), "profile")["job_deadline_seconds"]


def test_two_releases_in_one_namespace_share_no_object_and_no_pod() -> None:
    one, other = (render(make_values(), name=name) for name in ("one", "other"))

    def identify(manifests: list[dict[str, Any]]) -> set[tuple[str, str]]:
        return {(item["kind"], item["metadata"]["name"]) for item in manifests}

    assert set() == identify(one) & identify(other)
    for policy in (item for item in one if item["kind"] == "NetworkPolicy"):
        selected = policy["spec"]["podSelector"]["matchLabels"].items()
        assert not selected <= find_pod(other)["metadata"]["labels"].items()


def test_long_names_of_releases_stay_apart_and_within_bounds() -> None:
    names = [f"{'x' * 52}{end}" for end in "ab"]
    rendered = [find(render(make_values(), name=name), "CronJob")["metadata"]["name"] for name in names]
    assert 2 == len(set(rendered))
    assert all(
        len(name) <= 52 for name in rendered
    )  # https://kubernetes.io/docs/concepts/workloads/controllers/cron-jobs/
    assert "my-benchmatrix" == find(render(make_values(), name="my-benchmatrix"), "CronJob")["metadata"]["name"]


def test_a_night_is_not_begun_beside_another_nor_replaced_before_its_end_and_has_time_to_report() -> None:
    cronjob = find(render(make_values(night__deadlineSeconds=600, night__reportSeconds=60)), "CronJob")["spec"]
    job = cronjob["jobTemplate"]["spec"]
    assert ("Forbid", "Failed", 660) == (
        cronjob["concurrencyPolicy"],
        job["podReplacementPolicy"],
        job["activeDeadlineSeconds"],
    )
    assert "--deadline=600" in job["template"]["spec"]["containers"][0]["args"]


def test_only_a_report_of_what_did_not_end_well_ends_a_night_as_failed() -> None:
    job = find(render(make_values()), "CronJob")["spec"]["jobTemplate"]["spec"]
    codes = {
        rule["action"]: (rule["onExitCodes"]["operator"], rule["onExitCodes"]["values"])
        for rule in job["podFailurePolicy"]["rules"]
        if "onExitCodes" in rule
    }
    assert {"Ignore": ("In", [130, 143]), "FailJob": ("In", [EXIT_NOT_OK, EXIT_USER_ERROR])} == codes


def test_runner_and_doctor_have_a_token_and_the_store_has_none() -> None:
    """Whatever the ServiceAccount says, which may be the user's own."""
    manifests = render(make_values(trialStore__enabled=True))
    pods = {
        "runner": find_pod(manifests)["spec"],
        "doctor": find(manifests, "Pod", "-doctor")["spec"],
        "store": find(manifests, "Deployment")["spec"]["template"]["spec"],
    }
    found = {name: pod["automountServiceAccountToken"] for name, pod in pods.items()}
    assert {"runner": True, "doctor": True, "store": False} == found


def test_amounts_are_rendered_as_they_were_given() -> None:
    hard = {"pods": 10_000_000, "requests.cpu": 1.5, "requests.memory": "1.5Gi"}
    manifests = render(make_values(trialStore__enabled=True, trialStore__size=4_294_967_296, quota__hard=hard))
    volumes = find(manifests, "Deployment")["spec"]["template"]["spec"]["volumes"]
    assert {name: str(amount) for name, amount in hard.items()} == find(manifests, "ResourceQuota")["spec"]["hard"]
    assert "4294967296" == volumes[0]["emptyDir"]["sizeLimit"]


def test_cells_elsewhere_are_not_owned_by_the_night() -> None:
    """A Job cannot own what is in another namespace: the garbage collector would delete it at once."""
    here, there = (
        find_pod(render(make_values(cells__namespace=namespace)))["spec"]["containers"][0]["args"]
        for namespace in ("", "elsewhere")
    )
    assert "--owner=$(JOB_NAME)/$(JOB_UID)" in here
    assert not [word for word in there if word.startswith("--owner")]


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
    chart = find(render(make_values(trialStore__enabled=True)), "Deployment")["spec"]["template"]["spec"]
    setup = SetupTemplate(profile=load_profile("kind"), has_store=True).render()["s3"][0]["spec"]["template"]["spec"]
    chart_text, setup_text = (json.dumps(spec, sort_keys=True) for spec in (chart, setup))
    assert setup_text.replace("benchmatrix-store", "sweeps-benchmatrix-store") == chart_text
