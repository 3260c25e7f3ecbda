"""A matrix as real pods under the restricted Pod Security level, with what goes wrong in earnest, to its report."""

import json
import os
import signal
import subprocess
import sys
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from bench.schema import Result
from bench.store import Store, parse_result_key, results_prefix
from runner.cluster.connection import CURRENT, Connection, find_context
from s3_server import S3Server

PROGRAM = (sys.executable, "-m", "runner.cli")
NAMESPACE = "benchmatrix-e2e"
RUN_ID = "e2e-1"
GUARD_SECONDS = 300.0
S3_AWAY_SECONDS = 30.0
MATRIX = """
name: e2e
axes: {model: [conv6], phase: [train, infer]}
defaults:
  {framework: jax, device: cpu, batch_size: 8, num_warmup_steps: 2, num_steps: 10, min_seconds: 5,
   repeats: 2, timeout_seconds: 120}
include:
  # Three matrices of 2.3 GB each: more than the 3 GiB of a cell.
  - {model: matmul, phase: infer, batch_size: 1, input_size: 24000, num_classes: null, repeats: 1}
"""


@pytest.fixture
def s3(tmp_path: Path, host: str, monkeypatch: pytest.MonkeyPatch) -> Iterator[S3Server]:
    """A real S3 server that pods reach."""
    server = S3Server(root=tmp_path / "s3" / "root", host=host)
    for name, value in server.environment.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setenv("NO_PROXY", host)
    server.start()
    yield server
    server.stop()


@pytest.fixture
def connection(kubeconfig: str, monkeypatch: pytest.MonkeyPatch) -> Iterator[Connection]:
    monkeypatch.setenv("KUBECONFIG", kubeconfig)
    found = Connection(context=find_context(CURRENT))
    yield found
    found.request("delete", f"/api/v1/namespaces/{NAMESPACE}")


def list_pods(connection: Connection) -> list[dict[str, Any]]:
    return connection.list_items(f"/api/v1/namespaces/{NAMESPACE}/pods")


def wait_for_pod(connection: Connection, is_wanted: Callable[[dict[str, Any]], bool]) -> dict[str, Any]:
    """Return the first pod that is wanted, as soon as there is one."""
    deadline = time.monotonic() + GUARD_SECONDS
    while time.monotonic() < deadline:
        for pod in list_pods(connection):
            if is_wanted(pod):
                return pod
        time.sleep(0.2)
    raise AssertionError("no such pod")


def is_running_for(pod: dict[str, Any], phase: str, seconds: float) -> bool:
    """Whether the pod of a cell of this phase has been running for a while."""
    state = (pod["status"].get("containerStatuses") or [{}])[0].get("state", {})
    if f"-{phase}-" not in pod["metadata"]["name"] or "running" not in state:
        return False
    started = time.strptime(state["running"]["startedAt"], "%Y-%m-%dT%H:%M:%SZ")
    return time.time() - (time.mktime(started) - time.timezone) > seconds


def start_run(folder: Path, s3: S3Server) -> "subprocess.Popen[str]":
    words = [
        "run",
        "e2e.yaml",
        "--on",
        CURRENT,
        "--profile",
        "profile.yaml",
        "--store",
        f"s3://{s3.bucket}/runs-of-e2e",
    ]
    return subprocess.Popen(
        [*PROGRAM, *words, "--run-id", RUN_ID],
        cwd=folder,
        env=os.environ | {"PYTHONPATH": str(Path(__file__).parents[2])},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )


def set_up(folder: Path, connection: Connection, image: str, s3: S3Server) -> None:
    profile = {
        "extends": "kind",
        "namespace": NAMESPACE,
        "images": {"jax": {"cpu": image}},
        "environment": {"AWS_ENDPOINT_URL": s3.endpoint_url, "AWS_DEFAULT_REGION": "us-east-1"},
    }
    (folder / "profile.yaml").write_text(json.dumps(profile))
    (folder / "e2e.yaml").write_text(MATRIX)
    environment = os.environ | {"PYTHONPATH": str(Path(__file__).parents[2])}
    words = ["setup", "--on", CURRENT, "--profile", "profile.yaml", "--no-s3"]
    subprocess.run([*PROGRAM, *words], cwd=folder, env=environment, check=True)
    keys = {"AWS_ACCESS_KEY_ID": s3.access_key, "AWS_SECRET_ACCESS_KEY": s3.secret_key}
    secret = {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "benchmatrix-store"}, "stringData": keys}
    connection.request("create", f"/api/v1/namespaces/{NAMESPACE}/secrets", body=json.dumps(secret).encode())


def disturb(connection: Connection, s3: S3Server) -> dict[str, Any]:
    """Delete a pod in mid-measurement, then cut the store off while another measures; return the deleted pod."""
    deleted = wait_for_pod(connection, lambda pod: is_running_for(pod, "train", 4.0))
    connection.request("delete", f"/api/v1/namespaces/{NAMESPACE}/pods/{deleted['metadata']['name']}")
    wait_for_pod(connection, lambda pod: is_running_for(pod, "infer", 3.0))
    s3.stop()
    time.sleep(S3_AWAY_SECONDS)
    s3.start()
    return deleted


def test_every_planned_repeat_has_its_terminal_record_whatever_happens(
    tmp_path: Path,
    connection: Connection,
    s3: S3Server,
    build_image: Callable[[str], str],
    load_image: Callable[[str], None],
) -> None:
    image = build_image("jax:cpu")
    load_image(image)
    set_up(tmp_path, connection, image, s3)
    process = start_run(tmp_path, s3)
    guard = threading.Timer(GUARD_SECONDS, process.send_signal, (signal.SIGKILL,))
    guard.start()

    deleted = disturb(connection, s3)
    output, _ = process.communicate()
    guard.cancel()
    print(output)

    store = Store.open(f"s3://{s3.bucket}/runs-of-e2e")
    keys = list(store.list_keys(results_prefix(RUN_ID)))
    results = [Result.model_validate_json(data) for _, data in store.get_many(keys)]
    assert 5 == len({(key.cell_id, key.repeat) for key in map(parse_result_key, keys) if key})
    assert 5 == len(keys), keys
    assert Counter({"ok": 4, "oom": 1}) == Counter(result.status for result in results), output
    (lost,) = [result for result in results if result.status == "oom"]
    assert "matmul" == lost.cell.model
    interrupted = list(store.list_keys(f"runs/{RUN_ID}/interrupted"))
    assert [deleted["metadata"]["uid"]] == [
        key.rpartition("/")[2].partition("-")[2].removesuffix(".json") for key in interrupted
    ]
    assert 1 == process.returncode  # one repeat did not end well
    report = tmp_path / "reports" / RUN_ID / "report.html"
    assert "4 of 5 planned repeats ended ok" in report.read_text()
    for pod in list_pods(connection):
        assert pod["status"]["qosClass"] == "Guaranteed"
