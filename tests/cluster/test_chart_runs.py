"""A scheduled run of the chart on a real API server: what it asks for, and what it reports."""

import re
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any
from urllib.request import urlopen

import helm_python
import pytest
from audit import REVIEWS, read_requests
from commands import create
from kubernetes.config import incluster_config
from releases import FULLNAME, RELEASE, find_pod_of, make_restricted_namespace, trigger
from runs import Site, wait_for

from bench.schema import Run
from bench.store import LATEST_REPORT_KEY, LATEST_RUN_KEY, Store
from chart import CHART, make_values
from control_plane import AUDITED_NAMESPACE, ControlPlane
from fake_kubelet import Pod
from runner.kubernetes import recording, session, submission
from runner.kubernetes.connection import Connection
from s3_server import S3Server, find_free_port
from workspace import CallMain

MATRIX = {
    "name": "scheduled",
    "axes": {"seed": [1, 2, 3, 4]},
    "defaults": {
        "model": "conv6",
        "framework": "pytorch",
        "device": "cpu",
        "phase": "train",
        "batch_size": 1,
        "repeats": 1,
    },
}
REFUSED = {("", "nodes", "get"), ("", "nodes", "list")}
"""What a runner asks for and no Role can allow, as nodes are in no namespace."""


def become_runner(
    connection: Connection, namespace: str, plane: ControlPlane, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Lead this process to the API server as a pod of the runner is led there: by its token and two variables."""
    path = f"/api/v1/namespaces/{namespace}/serviceaccounts/{FULLNAME}-runner/token"
    request = {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": {"expirationSeconds": 3600}}
    (folder / "token").write_text(create(connection, path, request)["status"]["token"])
    monkeypatch.setattr(incluster_config, "SERVICE_TOKEN_FILENAME", str(folder / "token"))
    monkeypatch.setattr(incluster_config, "SERVICE_CERT_FILENAME", str(plane.folder / "api.crt"))
    monkeypatch.setenv("KUBERNETES_SERVICE_HOST", "127.0.0.1")
    monkeypatch.setenv("KUBERNETES_SERVICE_PORT", str(plane.port))
    monkeypatch.setenv("KUBECONFIG", "/nowhere")


def read_arguments(pod: dict[str, Any], job: dict[str, Any], folder: Path) -> list[str]:
    """Write the profile and the matrix of a runner's pod to `folder`, and return its command line with their paths."""
    names = {"JOB_NAME": job["metadata"]["name"], "JOB_UID": job["metadata"]["uid"]}
    for key in ("profile", "matrix"):
        (folder / f"{key}.yaml").write_text(pod["metadata"]["annotations"][f"benchmatrix/{key}"])
    given = pod["spec"]["containers"][0]["args"]
    words = [re.sub(r"\$\((\w+)\)", lambda found: names[found[1]], word) for word in given]
    return [word.replace("/etc/benchmatrix", str(folder)).replace("/tmp/report", f"{folder}/report") for word in words]


def make_endings() -> Callable[[Pod], Any]:
    """The first pod ends well, the second leaves its record in its log, others hang."""
    endings = iter(["ok", "in-log"])
    return lambda pod: next(endings, "hang")


def asked_for_events(plane: ControlPlane, user: str) -> bool:
    return ("", "events", "list") in read_requests(plane, user)


def make_clock(is_late: Callable[[], bool]) -> Callable[[], datetime]:
    """Return a clock that goes right until it is late, and then a day ahead."""
    return lambda: datetime.now(UTC) + timedelta(days=1 if is_late() else 0)


@pytest.fixture
def audited(connection: Connection) -> Iterator[str]:
    """The namespace whose service accounts are audited."""
    make_restricted_namespace(connection, AUDITED_NAMESPACE)
    yield AUDITED_NAMESPACE
    connection.request("delete", f"/api/v1/namespaces/{AUDITED_NAMESPACE}")


@pytest.fixture
def bucket(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    server = S3Server(root=tmp_path / "s3" / "root")
    for name, value in server.environment.items():
        monkeypatch.setenv(name, value)
    server.start()
    yield f"s3://{server.bucket}/runs"
    server.stop()


def list_allowed(connection: Connection, namespace: str) -> set[tuple[str, str, str]]:
    """Return API group, resource and verb of everything that the runner's Role allows."""
    role = connection.get_object(f"/apis/rbac.authorization.k8s.io/v1/namespaces/{namespace}/roles/{FULLNAME}-runner")
    return {(rule["apiGroups"][0], rule["resources"][0], verb) for rule in role["rules"] for verb in rule["verbs"]}


def check_cells_go_with_their_owner(connection: Connection, namespace: str, owner: dict[str, Any]) -> None:
    """Check that no cell is unfinished, and that all are deleted with the Job of the run."""
    path = f"/apis/batch/v1/namespaces/{namespace}/jobs"
    left = connection.list_items(path, labelSelector="app.kubernetes.io/component=cell")
    assert all(item["status"].get("conditions") or "deletionTimestamp" in item["metadata"] for item in left)
    owners = {reference["uid"] for item in left for reference in item["metadata"]["ownerReferences"]}
    assert owners == {owner["metadata"]["uid"]}
    connection.request("delete", f"{path}/{owner['metadata']['name']}", query={"propagationPolicy": "Background"})
    wait_for(lambda: not connection.list_items(path), "the cells to go")


def test_a_scheduled_run_asks_for_what_its_role_allows_and_reports_at_its_deadline_what_is_missing(
    control_plane: ControlPlane,
    audited: str,
    helm: Callable[[str], helm_python.Config],
    site: Site,
    bucket: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    call_main: CallMain,
) -> None:
    monkeypatch.setattr(recording, "LOG_PATIENCE_SECONDS", 1.0)  # no kubelet hands out a log here
    for name, number in {"NUM_KEPT": 1, "BATCH_SIZE": 1}.items():  # so that the first recorded Job is deleted
        monkeypatch.setattr(submission, name, number)
    store = Store.open(bucket)
    # Beside the runner's own pod one more at a time: two end, the third hangs, and the fourth gets none. When the
    # runner has asked why, its deadline passes.
    user = f"system:serviceaccount:{audited}:{FULLNAME}-runner"
    monkeypatch.setattr(session, "read_clock", make_clock(lambda: asked_for_events(control_plane, user)))
    port = find_free_port()
    values = make_values(store__url=bucket, customMatrix=MATRIX, quota__hard={"pods": "2"}, metrics__enabled=True)
    values["metrics"]["port"] = port
    helm(audited).install(CHART, RELEASE, values)
    site.start_kubelet(make_endings(), num_nodes=2, store=store)
    job = trigger(site.connection, audited, "first-run")
    words = read_arguments(find_pod_of(site.connection, audited, "first-run"), job, tmp_path)
    with monkeypatch.context() as patched:
        become_runner(site.connection, audited, control_plane, tmp_path, patched)
        code, out, err = call_main(*words)

    assert (code, err) == (1, ""), out
    assert "the deadline has passed" in out
    with urlopen(f"http://127.0.0.1:{port}/metrics") as scraped:  # served as long as this process lasts
        lines = scraped.read().decode().splitlines()
    assert {'benchmatrix_results_total{status="ok"} 1.0', 'benchmatrix_results_total{status="failed"} 1.0'} <= {*lines}
    assert read_requests(control_plane, user) == list_allowed(site.connection, audited) | REFUSED | REVIEWS
    latest = Run.model_validate_json(store.get(LATEST_RUN_KEY))
    assert latest.ending is not None
    assert (latest.run_id, latest.ending.num_repeats) == ("first-run", {"ok": 1, "failed": 1, "missing": 2})
    assert len(latest.ending.missing) == 2
    assert (tmp_path / "report" / "report.html").read_bytes() == store.get(LATEST_REPORT_KEY)
    check_cells_go_with_their_owner(site.connection, audited, job)
    helm(audited).uninstall(RELEASE)
