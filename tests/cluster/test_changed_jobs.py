"""A Job that somebody changes while a run goes on: the runner says so, and the run ends well."""

import json
from collections.abc import Callable

import pytest
from runs import Setup, check_all_once, make_cells, wait_for

from bench.store import Store
from fake_kubelet import FakeKubelet
from runner.kubernetes import pod_failures
from runner.kubernetes.connection import Connection

StartKubelet = Callable[..., FakeKubelet]


def set_parallelism(setup: Setup, number: int) -> None:
    (job,) = setup.list_jobs()
    path = f"/apis/batch/v1/namespaces/{setup.profile.namespace}/jobs/{job['metadata']['name']}"
    body = json.dumps({"spec": {"parallelism": number}}).encode()
    setup.connection.request("patch", path, body=body, content_type="application/merge-patch+json")


def test_a_job_that_may_have_no_pods_is_told(
    connection: Connection,
    namespace: str,
    store: Store,
    start_kubelet: StartKubelet,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(pod_failures, "UNEXPLAINED_SECONDS", 1.0)
    kubelet = start_kubelet()
    setup = Setup.make(connection, namespace, store, make_cells(1))
    running = setup.start()
    wait_for(setup.list_pods, "a pod")

    set_parallelism(setup, 0)
    warned = wait_for(lambda: [line for line in setup.observed.warnings if "no event says why" in line], "a warning")
    set_parallelism(setup, 1)
    kubelet.add_node(f"late-{namespace}")
    running.result()

    assert "`parallelism`" in warned[0]
    check_all_once(setup, kubelet, 1)
