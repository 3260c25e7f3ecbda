"""A cluster that does not say what a user may do refuses nothing."""

from pathlib import Path

import pytest

from kubeconfigs import write_kubeconfig
from lying_server import Answer, LyingServer
from runner.kubernetes.connection import Connection
from runner.kubernetes.setup import RUN_PERMISSIONS, check_permissions


class SilentServer(LyingServer):
    """Answers no review."""

    status = 404

    def answer(self, verb: str, path: str, body: bytes) -> Answer:
        return self.status, {}, b"{}"


@pytest.mark.parametrize("status", [403, 404])
def test_a_cluster_that_answers_no_such_question_refuses_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, status: int
) -> None:
    server = SilentServer()
    server.status = status
    write_kubeconfig(tmp_path / "kubeconfig", server.url)
    monkeypatch.setenv("KUBECONFIG", str(tmp_path / "kubeconfig"))
    try:
        check_permissions(Connection(context="tests", patience_seconds=0.0), "lab", RUN_PERMISSIONS, "a run")
    finally:
        server.stop()
