"""Fixtures of the tests that need a cluster: a real API server, started from envtest's binaries."""

import uuid
from collections.abc import Iterator
from pathlib import Path

import pytest
from clusters import make_cluster as make_cluster
from commands import call_main as call_main
from disruptions import LostNode, lose_node
from doctor_calls import add_nodes as add_nodes
from doctor_calls import examine as examine
from releases import helm as helm
from releases import place as place
from runs import DEADLINE_SECONDS, Site, make_namespace, take_away

from bench.store import Store
from control_plane import ControlPlane, find_assets
from faulty_server import FaultyServer
from runner.kubernetes.connection import Connection


# Not for the session: idle, it takes 3 % of a core from the tests that come after those of this folder.
@pytest.fixture(scope="package")
def control_plane(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ControlPlane]:
    """A control plane for all tests of this folder; tests that break it start one of their own."""
    assets = find_assets()
    if assets is None:
        pytest.skip("no kube-apiserver: put envtest's binaries into $KUBEBUILDER_ASSETS or /usr/local/kubebuilder/bin")
    plane = ControlPlane(folder=tmp_path_factory.mktemp("control-plane"), assets=assets)
    try:
        plane.start()
        yield plane
    finally:
        plane.stop()


@pytest.fixture
def connection(control_plane: ControlPlane, monkeypatch: pytest.MonkeyPatch) -> Connection:
    """The administrator's connection; the environment leads the code under test to the same API server."""
    monkeypatch.setenv("KUBECONFIG", str(control_plane.kubeconfig))
    return Connection(context=control_plane.context, patience_seconds=DEADLINE_SECONDS)


@pytest.fixture
def namespace(connection: Connection) -> Iterator[str]:
    """A fresh namespace with the service account of the cells; its Jobs and pods are gone afterwards.

    The namespace stays: to delete it is a hundred requests of the control plane, one tenth of all its CPU.
    """
    name = f"test-{uuid.uuid4().hex[:8]}"
    make_namespace(connection, name)
    yield name
    for kind in ("apis/batch/v1/namespaces/{}/jobs", "api/v1/namespaces/{}/pods"):
        connection.request("delete", "/" + kind.format(name), query={"propagationPolicy": "Background"})


@pytest.fixture
def site(connection: Connection, namespace: str, store: Store) -> Iterator[Site]:
    """Where the runs of this test take place."""
    site = Site(connection=connection, namespace=namespace, store=store)
    yield site
    for kubelet in site.kubelets:
        take_away(kubelet)


@pytest.fixture
def faulty(
    control_plane: ControlPlane, connection: Connection, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Iterator[FaultyServer]:
    """A server in front of the API server, to which the environment leads now; its faults are the test's."""
    server = FaultyServer(port=control_plane.port)
    control_plane.write_kubeconfig(tmp_path / "kubeconfig", server=server.start())
    monkeypatch.setenv("KUBECONFIG", str(tmp_path / "kubeconfig"))
    yield server
    server.stop()


@pytest.fixture
def through(control_plane: ControlPlane, faulty: FaultyServer) -> Connection:
    """A connection through the faulty server."""
    return Connection(context=control_plane.context, patience_seconds=DEADLINE_SECONDS)


@pytest.fixture(scope="package")
def lost_node(control_plane: ControlPlane, tmp_path_factory: pytest.TempPathFactory) -> Iterator[LostNode]:
    """A run whose node went silent: begun by the first test that names it, so that the last need not wait."""
    with pytest.MonkeyPatch.context() as patched:
        patched.setenv("KUBECONFIG", str(control_plane.kubeconfig))
        connection, through = (
            Connection(context=control_plane.context, patience_seconds=DEADLINE_SECONDS) for _ in range(2)
        )
    with lose_node(connection, through, tmp_path_factory.mktemp("lost")) as lost:
        yield lost
