"""Fixtures of the tests that need a real Kueue, which is started once for all of them."""

import os
from collections.abc import Iterator

import pytest
from commands import patch
from queues import Queues
from runs import DEADLINE_SECONDS

from control_plane import ControlPlane
from kueue_controller import MANAGED_LABEL, METRICS_CERTIFICATES, KueueController, find_kueue
from runner.kubernetes.connection import Connection


@pytest.fixture(scope="package")
def kueue(control_plane: ControlPlane, tmp_path_factory: pytest.TempPathFactory) -> Iterator[KueueController]:
    """Kueue beside the control plane, while the tests of this folder run."""
    assets = find_kueue()
    if assets is None:
        pytest.skip("no Kueue: put the program `kueue` and its kueue-config/ into $KUEUE_ASSETS")
    if os.getuid() != 0 and not os.access(METRICS_CERTIFICATES, os.W_OK):
        pytest.skip(f"Kueue reads {METRICS_CERTIFICATES}, into which this user cannot write")
    with pytest.MonkeyPatch.context() as patched:
        patched.setenv("KUBECONFIG", str(control_plane.kubeconfig))
        connection = Connection(context=control_plane.context, patience_seconds=DEADLINE_SECONDS)
    folder = tmp_path_factory.mktemp("kueue") / "kueue"
    controller = KueueController(control_plane=control_plane, connection=connection, folder=folder, assets=assets)
    try:
        controller.start()
        yield controller
    finally:
        controller.stop()


@pytest.fixture
def queues(kueue: KueueController, connection: Connection, namespace: str) -> Iterator[Queues]:
    """What makes queues; those of the namespace are gone after the test. Kueue manages the namespace's Jobs."""
    patch(connection, f"/api/v1/namespaces/{namespace}", {"metadata": {"labels": {MANAGED_LABEL: ""}}})
    made = Queues(connection=connection, namespace=namespace)
    yield made
    made.delete()
