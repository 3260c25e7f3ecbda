"""The chart's templates: what they render at every combination of switches, and what the runner reads of it."""

import json
from pathlib import Path
from typing import Any

import helm_python
import kubernetes_validate
import pytest
from allpairspy import AllPairs

from chart import CHART, NAMESPACE, RELEASE, find, find_pod, make_values, read_config, render, render_texts
from factories import make_cell
from runner.job_name import JobKey
from runner.job_template import JobRenderer
from runner.matrix import load_matrix
from runner.matrix_values import CELL_KEYS
from runner.permissions import RUN_PERMISSIONS
from runner.profile import load_profile
from runner.setup_template import SetupTemplate

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
    "kueue__localQueue": ["", "sweeps"],
    "kueue__clusterQueue": ["", "all"],
    "claims__enabled": [False, True],
    "quota__hard": [{}, {"count/jobs.batch": 50, "requests.cpu": "16"}],
    "metrics__enabled": [False, True],
    "metrics__podMonitor__enabled": [False, True],
    "runner__serviceAccount": [{}, {"create": False, "name": "there"}, {"annotations": {"a/b": "c"}}],
    "cells__serviceAccount": [{}, {"create": False, "name": "there-too"}, {"annotations": {"a/b": "c"}}],
    "runner__priorityClassName": ["", "high"],
    "runner__tolerations": [[], [{"key": "k", "operator": "Exists"}]],
    "runner__nodeSelector": [{}, {"pool": "control"}],
    "runner__environment": [{}, {"HTTPS_PROXY": "http://proxy:3128", "NO_PROXY": "$(HOME), ${x}"}],
    "runner__podLabels": [{}, {"azure.workload.identity/use": "true"}],
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
    key = JobKey(run_id="r", cell_id=planned.cell.cell_id, number=1, round_number=0)
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


def test_a_night_never_runs_twice_and_gives_up_late_enough_to_report() -> None:
    cronjob = find(render(make_values(night__deadlineSeconds=600, night__reportSeconds=60)), "CronJob")["spec"]
    job = cronjob["jobTemplate"]["spec"]
    assert ("Forbid", "Failed", 660) == (
        cronjob["concurrencyPolicy"],
        job["podReplacementPolicy"],
        job["activeDeadlineSeconds"],
    )
    assert "--deadline=600" in job["template"]["spec"]["containers"][0]["args"]


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
