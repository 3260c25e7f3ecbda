"""The Role that `setup` makes is as large as it has to be: the commands use all of it, and need nothing else."""

import io
from collections.abc import Iterator
from pathlib import Path

import pytest
from audit import REVIEWS, list_allowed, read_refused, read_requests, request_token
from disruptions import orphan
from rich.console import Console
from runs import DEADLINE_SECONDS, Setup, Site, make_cells, set_quota, wait_for

from control_plane import AUDITED_NAMESPACE, ControlPlane
from fake_kubelet import Pod
from runner.kubernetes import failures, recording, submission
from runner.kubernetes.cleanup import RunCancelled
from runner.kubernetes.connection import Connection
from runner.runs import Retries
from workspace import CallMain

ACCOUNT = "benchmatrix-runner"
USER = f"system:serviceaccount:{AUDITED_NAMESPACE}:{ACCOUNT}"
NODES = {("", "nodes", "get"), ("", "nodes", "list")}
"""What a runner asks for and no Role can allow, as nodes are in no namespace."""
BY_DOCTOR_ALONE = {
    ("", "namespaces", "get"),
    ("", "pods", "create"),
    ("", "secrets", "get"),
    ("", "serviceaccounts", "get"),
    ("authentication.k8s.io", "selfsubjectreviews", "create"),
    ("resource.k8s.io", "resourceclaimtemplates", "get"),
}
"""What `doctor` asks for on top, and does without: it says of each what it could not look at."""


@pytest.fixture
def audited(connection: Connection, call_main: CallMain, tmp_path: Path) -> Iterator[str]:
    """The namespace whose service accounts are audited, as `setup` makes it."""
    path, query = "/api/v1/namespaces", f"metadata.name={AUDITED_NAMESPACE}"

    def is_gone() -> bool:
        return not connection.list_items(path, fieldSelector=query)

    wait_for(is_gone, "the namespace of another test to be gone")
    words = ("setup", "--on", "current", "--profile", "kind", "--namespace", AUDITED_NAMESPACE, "--no-s3")
    code, _, err = call_main(*words)
    assert code == 0, err
    yield AUDITED_NAMESPACE
    connection.request("delete", f"{path}/{AUDITED_NAMESPACE}")
    wait_for(is_gone, "the namespace to be gone")


@pytest.fixture
def runner(
    audited: str, connection: Connection, control_plane: ControlPlane, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Connection:
    """Return the connection of the Role's service account; commands of the test use the same account."""
    token = request_token(connection, audited, ACCOUNT)
    control_plane.write_kubeconfig(tmp_path / "kubeconfig", user={"token": token})
    monkeypatch.setenv("KUBECONFIG", str(tmp_path / "kubeconfig"))
    return Connection(context=control_plane.context, patience_seconds=DEADLINE_SECONDS)


def measure(setup: Setup, runner: Connection) -> None:
    setup.make_cluster_run().measure(setup.run, runner, setup.observed, Console(file=io.StringIO()))


def cancel_and_clean(setup: Setup, runner: Connection, call_main: CallMain) -> None:
    """Cancel a run whose cells hang, look at it, and delete its Jobs and a pod whose Job is gone."""
    where = ("--on", "current", "--namespace", setup.profile.namespace, "--store", setup.store.url)
    running = setup.start(runner)
    orphan(setup)
    assert call_main("status", setup.run.run_id, *where)[0] in (0, 1)
    assert call_main("cancel", setup.run.run_id, *where)[0] == 0
    with pytest.raises(RunCancelled):
        running.result(DEADLINE_SECONDS)
    assert call_main("clean", setup.run.run_id, *where, "--force")[0] == 0


def test_the_commands_use_all_of_the_role_and_nothing_else(
    site: Site,
    control_plane: ControlPlane,
    runner: Connection,
    audited: str,
    call_main: CallMain,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(recording, "LOG_PATIENCE_SECONDS", 1.0)  # no kubelet hands out a log here
    monkeypatch.setattr(failures, "ASK_SECONDS", 0.5)
    for name, number in {"NUM_KEPT": 0, "BATCH_SIZE": 1}.items():  # so that recorded Jobs are deleted
        monkeypatch.setattr(submission, name, number)
    set_quota(site.connection, audited, pods="1")  # so that Jobs wait for a pod
    endings = iter(["in-log", "ok", "ok"])

    def decide(pod: Pod) -> str:
        return next(endings, "ok") if pod["metadata"]["labels"]["benchmatrix/run-id"] == "first" else "hang"

    site.start_kubelet(decide, num_nodes=2, run_seconds=1.0)
    # Of the administrator's connection are only what the test itself looks at.
    first = Setup.make(site.connection, audited, site.store, make_cells(3), run_id="first")
    measure(first, runner)
    assert len(first.observed.results) == 3
    first.retries = Retries(failed=True)
    measure(first, runner)
    second = Setup.make(site.connection, audited, site.store, make_cells(2), run_id="second")
    cancel_and_clean(second, runner, call_main)
    doctor = ("doctor", "smoke", "--profile", "kind", "--namespace", audited, *site.words[1:])
    assert call_main(*doctor)[0] in (0, 1)

    allowed, used = list_allowed(site.connection, audited, ACCOUNT), read_requests(control_plane, USER)
    assert allowed - used == set()
    assert used - allowed - NODES - REVIEWS - BY_DOCTOR_ALONE == set()
    assert read_refused(control_plane, USER) <= NODES | BY_DOCTOR_ALONE
