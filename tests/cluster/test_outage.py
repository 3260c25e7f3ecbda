"""A run whose API server is killed and started again."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from runs import DEADLINE_SECONDS, Setup, make_cells, make_namespace, wait_for

from bench.store import Store
from control_plane import ControlPlane, find_assets
from fake_kubelet import FakeKubelet
from runner.kubernetes.connection import Connection

NAMESPACE = "outage"
UNREACHABLE = "the API server does not answer: "


@pytest.fixture
def plane(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[ControlPlane]:
    """A control plane of its own, in which no node counts as lost because the API server was away for long."""
    assets = find_assets()
    if assets is None:
        pytest.skip("no kube-apiserver")
    plane = ControlPlane(folder=tmp_path / "plane", assets=assets, node_grace_seconds=int(DEADLINE_SECONDS))
    try:
        plane.start()
        monkeypatch.setenv("KUBECONFIG", str(plane.kubeconfig))
        yield plane
    finally:
        plane.stop()


@pytest.fixture
def kubelet(plane: ControlPlane, store: Store) -> Iterator[FakeKubelet]:
    connection = Connection(context=plane.context, patience_seconds=DEADLINE_SECONDS)
    make_namespace(connection, NAMESPACE)
    kubelet = FakeKubelet(connection=connection, store=store, run_seconds=0.5)
    for number in range(2):
        kubelet.add_node(f"node-{number}")
    kubelet.start()
    yield kubelet
    kubelet.stop()


def list_outages(setup: Setup) -> list[str]:
    """Return the warnings about the API server; on busy cores there may be others about pods that wait."""
    return [warning for warning in setup.observed.warnings if warning.startswith(UNREACHABLE)]


def test_a_run_outlives_an_api_server_that_is_killed_and_started_again(
    plane: ControlPlane, kubelet: FakeKubelet, store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("runner.kubernetes.connection.WARN_SECONDS", 1.0)
    setup = Setup.make(kubelet.connection, NAMESPACE, store, make_cells(12), max_in_flight=6)
    through = Connection(context=plane.context, patience_seconds=DEADLINE_SECONDS)
    running = setup.start(through)
    wait_for(lambda: len(setup.observed.results) >= 2, "two records")
    plane.stop_api_server()
    wait_for(lambda: list_outages(setup), "a warning")
    plane.forget_history()
    plane.start_api_server()
    wait_for(lambda: len(setup.observed.results) >= 5, "five records")
    plane.stop_api_server()
    plane.start_api_server()

    running.result(DEADLINE_SECONDS)

    assert [result.status for result in setup.observed.results] == ["ok"] * 12
    assert len(setup.count_records()) == 12
    # The runner makes no Job twice. A pod may be measured twice: where the Job controller got no answer to the request
    # that created a pod, it creates another one.
    assert len(setup.list_jobs()) == 12
    assert not [warning for warning in setup.observed.warnings if "created again" in warning]
    assert len(list_outages(setup)) == 1  # the second is of the same kind, and too soon after the first
    assert through.num_requests["list jobs"] >= 2  # the version that the watch had seen is gone: 410
