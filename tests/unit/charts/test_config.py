"""The profile and the matrix that the chart makes, as the runner reads them."""

import json
from pathlib import Path

import pytest

from chart import MATRIX, NAMESPACE, find, find_pod, make_values, read_config, render
from factories import make_cell
from runner.kubernetes.names import JobKey
from runner.kubernetes.rendering import JobRenderer
from runner.matrix import CELL_KEYS, load_matrix
from runner.profiles.loading import load_profile


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

    assert (
        profile.namespace,
        profile.service_account,
        profile.store_secret,
    ) == (NAMESPACE, "sweeps-benchmatrix-cells", "keys")
    assert profile.environment == {"OMP_PROC_BIND": "true", "AWS_ENDPOINT_URL": "https://s3.example"}
    renderer = JobRenderer(profile=profile, store_url="s3://bucket/prefix", git_revision=None)
    planned = load_matrix("smoke").cells[0]
    key = JobKey(run_id="r", cell_id=planned.cell.cell_id, number=1, retry_round=0)
    labels = json.loads(renderer.render(planned, key))["spec"]["template"]["metadata"]["labels"]
    policy = find(manifests, "NetworkPolicy", "-cells")
    assert policy["spec"]["podSelector"]["matchLabels"].items() <= labels.items()
    assert labels["cost-centre"] == "42"


def test_without_a_secret_the_profile_names_none_whatever_it_extends(tmp_path: Path) -> None:
    path = tmp_path / "profile.yaml"
    path.write_text(json.dumps(read_config(render(make_values()), "profile")))
    assert load_profile("kind").store_secret is not None
    assert load_profile(str(path)).store_secret is None


@pytest.mark.parametrize("key", ["labels", "environment", "gpu"])
def test_nulls_below_a_key_that_the_chart_adds_to_are_kept(key: str) -> None:
    values = make_values(profile__extends="gke", claims__enabled=True, **{f"profile__{key}": {"resource": None}})
    assert read_config(render(values), "profile")[key].items() >= {("resource", None)}


def test_frameworks_of_a_custom_matrix_are_measured_in_turns(tmp_path: Path) -> None:
    path = tmp_path / "matrix.yaml"
    path.write_text(find_pod(render(make_values(customMatrix=MATRIX)))["metadata"]["annotations"]["benchmatrix/matrix"])

    cells = [planned.cell for planned in load_matrix(str(path)).cells]

    assert [(cell.phase, cell.framework) for cell in cells] == [
        ("train", "jax"),
        ("train", "pytorch"),
        ("infer", "jax"),
        ("infer", "pytorch"),
    ]
    assert {(cell.batch_size, cell.seed) for cell in cells} == {(10_000_000, 4_000_000_000)}


def test_every_axis_of_a_custom_matrix_gets_through() -> None:
    cell = make_cell(data_dir="/data").model_dump(mode="json")
    matrix = {"name": "one", "axes": {key: [cell[key]] for key in CELL_KEYS}}
    assert read_config(render(make_values(customMatrix=matrix)), "matrix") == matrix


def test_claims_name_the_templates_that_are_made(tmp_path: Path) -> None:
    values = make_values(profile__extends="gke", claims__enabled=True, claims__maxPerNode=2)
    manifests = render(values)
    path = tmp_path / "profile.yaml"
    path.write_text(json.dumps(read_config(manifests, "profile")))

    gpu = load_profile(str(path)).gpu

    assert gpu is not None
    assert gpu.request == "claim"
    made = [item["metadata"]["name"] for item in manifests if item["kind"] == "ResourceClaimTemplate"]
    assert made == [gpu.name_claim_template(1), gpu.name_claim_template(2)]
