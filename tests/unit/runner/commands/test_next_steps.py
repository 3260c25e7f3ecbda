"""What is said to do next on a cluster: commands that can be given as they stand."""

from pathlib import Path

import pytest

from bench.schema import Cluster
from factories import make_run
from runner.commands.options import format_place, format_resumption


def test_the_next_command_goes_where_this_one_went() -> None:
    assert format_place("current", None, None) == "--on current"
    words = format_place("gke_team-a", "my profiles/t4.yaml", "team-a", "nightly")
    assert words == "--on gke_team-a --profile 'my profiles/t4.yaml' --namespace team-a --queue nightly"


def test_a_matrix_of_the_users_own_is_named_by_its_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    run = make_run(run_id="q-1").model_copy(update={"matrix": "question"})
    resumption = "benchmatrix run {} --run-id q-1"
    assert format_resumption(run, "file://results", None, None) == resumption.format("MATRIX")
    (tmp_path / "question.yaml").touch()
    assert format_resumption(run, "file://results", None, None) == resumption.format("question.yaml")


def test_a_run_of_a_cluster_is_not_resumed_on_the_users_own_machine() -> None:
    cluster = Cluster(context="gke_a_b_c", namespace="team-a", profile="gke", queue="nightly")
    run = make_run(run_id="night-1").model_copy(update={"cluster": cluster})
    store, command = (
        "s3://bucket/runs",
        f"benchmatrix run {run.matrix} --on {{}} --queue nightly --store {{}} --run-id night-1",
    )
    assert format_resumption(run, store, None, None) == command.format("gke_a_b_c --profile gke", store)
    there = "other --profile gke --namespace team-b"
    assert format_resumption(run, store, "other", "team-b") == command.format(there, store)
