"""`benchmatrix render --manifests`: files that the API server takes as the runner's own requests."""

import json
import shutil
import subprocess
from collections import Counter
from pathlib import Path

import doctor_calls
import pytest

from control_plane import ControlPlane
from runner.kubernetes.names import JobKey
from runner.kubernetes.rendering import compute_fingerprint
from runner.matrix import load_matrix, order_repeats, plan_run
from runner.profiles.loading import load_profile
from workspace import CallMain

STORE = "s3://bucket/prefix"
MATRIX = doctor_calls.MATRIX.replace("num_steps: 2", "num_steps: 2, repeats: 2")
PROFILE = (
    doctor_calls.PROFILE
    + """
gpu: {request: claim}
environment: {WORDS: 'yes: "no" # $(HOME) {{ x }} 😀'}
"""
)


@pytest.fixture
def workspace(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with a matrix and a profile, and no kubeconfig."""
    (tmp_path / "mine.yaml").write_text(PROFILE)
    (tmp_path / "matrix.yaml").write_text(MATRIX)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("KUBECONFIG", str(tmp_path / "none"))
    return tmp_path


def test_each_file_is_the_job_that_the_runner_would_submit(workspace: Path, call_main: CallMain) -> None:
    code, out, _ = call_main(
        "render", "matrix.yaml", "--manifests", "out", "--profile", "mine.yaml", "--store", STORE, "--queue", "team"
    )

    assert code == 0
    assert out.splitlines()[0] == "8 Jobs of run mine in out, set-up in out/setup"
    matrix, profile = load_matrix("matrix.yaml"), load_profile("mine.yaml")
    fingerprint = compute_fingerprint(plan_run(matrix, lambda cell: None, run_id="mine"), profile, STORE)
    expected = set()
    for repeat in order_repeats(matrix.cells, None):
        cell_id, number = repeat.planned.cell.cell_id, repeat.number
        key = JobKey(run_id="mine", cell_id=cell_id, number=number, retry_round=0, fingerprint=fingerprint)
        expected.add((f"{key.job_name}.json", key.job_name, cell_id, str(number)))
    found = set()
    for path in (workspace / "out").glob("*.json"):
        job = json.loads(path.read_text())
        labels = job["metadata"]["labels"]
        found.add((path.name, job["metadata"]["name"], labels["benchmatrix/cell-id"], labels["benchmatrix/repeat"]))
        assert (labels["kueue.x-k8s.io/queue-name"], job["spec"]["suspend"]) == ("team", True)
    assert found == expected


@pytest.mark.skipif(shutil.which("kubectl") is None, reason="no kubectl")
def test_kubectl_takes_the_jobs_and_the_set_up(
    workspace: Path, call_main: CallMain, control_plane: ControlPlane, namespace: str
) -> None:
    words = ("--profile", "mine.yaml", "--store", STORE, "--namespace", namespace)
    call_main("render", "matrix.yaml", "--manifests", "out", *words)
    command = ["kubectl", "--kubeconfig", str(control_plane.kubeconfig), "apply", "--dry-run=server", "-o", "json"]
    done = subprocess.run([*command, "-R", "-f", "out"], capture_output=True, text=True, check=True)
    kinds = Counter(item["kind"] for item in json.loads(done.stdout)["items"])
    assert (kinds["Job"], kinds["Namespace"], kinds["ResourceClaimTemplate"]) == (8, 1, 4)


def test_files_of_another_run_are_not_mixed_with_these(workspace: Path, call_main: CallMain) -> None:
    words = ("render", "matrix.yaml", "--manifests", "out", "--profile", "mine.yaml", "--store", STORE)
    assert call_main(*words)[0] == 0
    assert call_main(*words)[0] == 0

    code, _, err = call_main(*words, "--run-id", "another")

    assert code == 2
    assert "error: --manifests out: holds other manifests, such as conv6-" in err


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("--manifests", "out", "--store", STORE), "--manifests: needs to know the cluster; add --profile"),
        (("--manifests", "out", "--profile", "kind"), "--store: the Jobs need to know where their results go"),
        (("--manifests", "out", "--profile", "kind", "--store", "file://x"), "--store file://x: the Jobs need to know"),
        (("--store", STORE), "--store: is for --manifests FOLDER"),
        (("--manifests", "out", "--profile", "gke", "--store", STORE), "images"),
        (("--manifests", "mine.yaml", "--profile", "kind", "--store", STORE), "--manifests mine.yaml: "),
    ],
)
def test_what_is_missing_is_one_message(
    workspace: Path, call_main: CallMain, words: tuple[str, ...], message: str
) -> None:
    (workspace / "cpu.yaml").write_text(MATRIX.replace("[cpu, gpu]", "[cpu]"))

    code, _, err = call_main("render", "cpu.yaml", *words)

    assert code == 2
    assert message in err
    assert err.startswith("error: ")
