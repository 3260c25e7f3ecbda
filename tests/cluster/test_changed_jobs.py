"""A Job that somebody changes while a run goes on: the runner says so, and the run ends well."""

from collections.abc import Callable

import pytest
from commands import patch
from runs import DEADLINE_SECONDS, Setup, check_all_once, make_cells, wait_for

from bench.store import Store
from fake_kubelet import FakeKubelet
from runner.kubernetes import failures
from runner.kubernetes.connection import Connection

StartKubelet = Callable[..., FakeKubelet]


def find_path(setup: Setup) -> str:
    """Return the path of the one Job that runs."""
    job = wait_for(lambda: [job for job in setup.list_jobs() if job["status"].get("ready")], "a Job that runs")[0]
    return f"/apis/batch/v1/namespaces/{setup.profile.namespace}/jobs/{job['metadata']['name']}"


def test_a_job_deleted_without_its_pod_is_not_made_again_while_that_pod_measures(
    connection: Connection, namespace: str, store: Store, start_kubelet: StartKubelet
) -> None:
    kubelet = start_kubelet(num_nodes=2)
    kubelet.may_end.clear()
    setup = Setup.make(connection, namespace, store, make_cells(1))
    running = setup.start()
    connection.request("delete", find_path(setup), query={"propagationPolicy": "Orphan"})

    (warning,) = wait_for(lambda: list(setup.observed.warnings), "a warning")
    kubelet.may_end.set()
    running.result(DEADLINE_SECONDS)

    (pod,) = setup.list_pods()
    assert f"was deleted without its pod {pod['metadata']['name']}, which runs on" in warning
    assert setup.list_jobs() == []
    check_all_once(setup, kubelet, 1)


def test_a_deleted_job_that_its_finalizers_keep_is_told_with_their_names(
    connection: Connection,
    namespace: str,
    store: Store,
    start_kubelet: StartKubelet,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(failures, "WARN_SECONDS", 1.0)
    kubelet = start_kubelet(num_nodes=1)
    kubelet.may_end.clear()
    setup = Setup.make(connection, namespace, store, make_cells(1))
    running = setup.start()
    path = find_path(setup)
    patch(connection, path, {"metadata": {"finalizers": ["example.com/keep"]}})
    connection.request("delete", path, query={"propagationPolicy": "Foreground"})

    warning = wait_for(lambda: [line for line in setup.observed.warnings if "finalizers" in line], "a warning")[0]
    kubelet.may_end.set()
    patch(connection, path, {"metadata": {"finalizers": []}})
    running.result(DEADLINE_SECONDS)

    assert "its Job was deleted and is still there, kept by its finalizers (example.com/keep" in warning
    assert [result.status for result in setup.observed.results] == ["ok"]
    assert set(setup.count_records().values()) == {1}
