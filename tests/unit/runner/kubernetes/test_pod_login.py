"""A runner in a pod logs in with the account of the pod, which messages name and do not show."""

from pathlib import Path

import pytest
from kubernetes.config import incluster_config

from bench.errors import UserError
from runner.kubernetes.connection import Connection


def test_the_token_of_a_pod_is_refused_by_name_and_not_shown(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from kubernetes.config import incluster_config

    (tmp_path / "ca.crt").write_text("x")
    monkeypatch.setenv("KUBERNETES_SERVICE_HOST", "127.0.0.1")
    monkeypatch.setenv("KUBERNETES_SERVICE_PORT", "1")
    monkeypatch.setattr(incluster_config, "SERVICE_TOKEN_FILENAME", str(tmp_path / "token"))
    monkeypatch.setattr(incluster_config, "SERVICE_CERT_FILENAME", str(tmp_path / "ca.crt"))
    (tmp_path / "token").write_text("hunter2\x01")
    with pytest.raises(UserError, match=r"--on in-cluster: the token of the service account") as caught:
        Connection(context="in-cluster")
    assert "hunter2" not in str(caught.value)


@pytest.mark.parametrize(
    ("host", "port", "token", "words"),
    [
        ("127.0.0.1", "9", b"\xff\xfe", "the token of the service account .*: its credentials cannot be read"),
        ("127.0.0.1", "9", b"hunter2 x", "the token of the service account .* is empty or has a space"),
        ("a b", "9", b"hunter2", "HOST and KUBERNETES_SERVICE_PORT. is no URL of a server"),
        (
            "127.0.0.1",
            "99999",
            b"hunter2",
            "HOST and KUBERNETES_SERVICE_PORT. is no URL of a server",
        ),
        ("", "9", b"hunter2", "in-cluster is for a runner in a pod"),
    ],
)
def test_a_pod_that_cannot_log_in_is_told_of_its_own_account(
    host: str, port: str, token: bytes, words: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its kubeconfig, which it does not have, was named in its place."""
    (tmp_path / "token").write_bytes(token)
    (tmp_path / "ca.crt").write_text("no certificate")
    monkeypatch.setattr(incluster_config, "SERVICE_TOKEN_FILENAME", str(tmp_path / "token"))
    monkeypatch.setattr(incluster_config, "SERVICE_CERT_FILENAME", str(tmp_path / "ca.crt"))
    monkeypatch.setenv("KUBERNETES_SERVICE_HOST", host)
    monkeypatch.setenv("KUBERNETES_SERVICE_PORT", port)

    with pytest.raises(UserError, match=words) as caught:
        Connection(context="in-cluster")

    assert ("kube/config" in str(caught.value), "hunter2" in str(caught.value)) == (False, False)
