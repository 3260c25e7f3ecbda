"""Credentials that cannot be used are refused by name, and no message shows them."""

import base64
import json
from collections.abc import Callable
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from cryptography.hazmat.primitives.serialization import Encoding
from cryptography.x509.oid import NameOID
from kubernetes.config import incluster_config

from bench.errors import UserError
from kubeconfigs import EXEC, write_kubeconfig
from lying_server import LyingServer
from runner.kubernetes.connection import ApiError, Connection
from runner.kubernetes.login import find_context

Write = Callable[..., None]


@pytest.fixture
def write(tmp_path: Path, server: LyingServer, monkeypatch: pytest.MonkeyPatch) -> Write:
    """Writes the kubeconfig, whose one context `lab` leads to the server as the test's user."""
    monkeypatch.setenv("KUBECONFIG", str(tmp_path / "kubeconfig"))
    return partial(write_kubeconfig, tmp_path / "kubeconfig", server.url, context="lab")


def give_token(how: str, token: str, folder: Path) -> dict[str, Any]:
    """Return the entry of a kubeconfig's user that gives the token in the way that `how` names."""
    if how == "token":
        return {"token": token}
    if how == "tokenFile":
        (folder / "token").write_text(token, newline="")
        return {"tokenFile": str(folder / "token")}
    answer = {"apiVersion": EXEC, "kind": "ExecCredential", "status": {"token": token}}
    (folder / "answer.json").write_text(json.dumps(answer))
    return {"exec": {"apiVersion": EXEC, "command": "cat", "args": [str(folder / "answer.json")]}}


@pytest.mark.parametrize("how", ["token", "tokenFile", "exec"])
def test_the_line_break_behind_a_token_is_not_part_of_it(
    how: str, write: Write, server: LyingServer, tmp_path: Path
) -> None:
    write(user=give_token(how, "hunter2\n", tmp_path))
    Connection(context="lab").request("get", "/version")
    assert server.headers["Authorization"] == "Bearer hunter2"


NO_KEY = base64.b64encode(b"hunter2").decode()
NO_SCRIPT = {"apiVersion": EXEC, "command": "no-such-program"}
SCRIPT = {"apiVersion": EXEC, "command": "sh", "args": ["-c", "echo hunter2 >&2; exit 3"]}


@pytest.mark.parametrize(
    ("user", "words"),
    [
        ({"token": "hunter2\nhunter3"}, "its token is empty or has a character"),
        ({"token": "hünter2"}, "its token is empty or has a character"),
        ({"client-key-data": "hunter2!", "client-certificate-data": "hunter2!"}, "its login cannot be used"),
        ({"client-key-data": NO_KEY, "client-certificate-data": NO_KEY}, "its login cannot be used"),
        (
            {"exec": NO_SCRIPT},
            "it has no credentials; where a program .exec or auth-provider. gives them, call it by hand",
        ),
        ({"exec": SCRIPT}, "it has no credentials; "),
        ({"exec": {"apiVersion": EXEC, "command": "echo", "args": ["hunter2"]}}, "it has no credentials; "),
    ],
)
def test_credentials_that_cannot_be_used_are_refused_by_name_and_not_shown(
    user: dict[str, Any], words: str, write: Write, capfd: pytest.CaptureFixture[str]
) -> None:
    write(user=user, server="https://127.0.0.1:1")
    with pytest.raises(UserError, match=f"--on lab: .*user `me`: .*{words}") as caught:
        Connection(context="lab")
    assert "nter2" not in str(caught.value) + "".join(capfd.readouterr())


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("users:\n- name: me\n  user: {token: 'hunter2\n  x: [", "is no YAML, see line"),
        ("contexts: 5\nusers: [{name: me, user: {token: hunter2}}]", "kubeconfig"),
        ("", "kubeconfig"),
    ],
)
def test_a_kubeconfig_that_is_none_is_named_and_not_shown(text: str, words: str, write: Write, tmp_path: Path) -> None:
    (tmp_path / "kubeconfig").write_text(text)
    for use in (lambda: find_context("lab"), lambda: Connection(context="lab")):
        with pytest.raises(UserError, match=f"--on lab: .*{words}") as caught:
            use()
        assert "hunter2" not in str(caught.value)


@pytest.mark.parametrize("url", [None, "127.0.0.1:6443"])
def test_a_cluster_without_a_server_is_refused_at_once(write: Write, url: str | None) -> None:
    write(server=url)
    with pytest.raises(UserError, match=r"--on lab: .*(has no server such as https|login cannot be used)"):
        Connection(context="lab")


def test_a_context_that_is_not_there_is_refused_with_those_that_are(write: Write) -> None:
    write()
    assert find_context("current") == "lab"
    with pytest.raises(UserError, match="--on other: no such context; yours are lab, and `local` is this machine"):
        find_context("other")


@pytest.fixture
def pod(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder of the files that a kubelet gives a pod: `token` and `ca.crt`."""
    monkeypatch.setenv("KUBERNETES_SERVICE_HOST", "127.0.0.1")
    monkeypatch.setenv("KUBERNETES_SERVICE_PORT", "1")
    monkeypatch.setattr(incluster_config, "SERVICE_TOKEN_FILENAME", str(tmp_path / "token"))
    monkeypatch.setattr(incluster_config, "SERVICE_CERT_FILENAME", str(tmp_path / "ca.crt"))
    return tmp_path


@pytest.mark.parametrize("token", ["hunter2 x", "", None])
def test_a_pod_that_cannot_log_in_is_told_of_its_own_account(token: str | None, pod: Path) -> None:
    (pod / "ca.crt").write_bytes(make_authority("kubernetes")[0])
    if token is not None:
        (pod / "token").write_text(token)
    with pytest.raises(UserError, match=r"--on in-cluster: the token of the service account") as caught:
        Connection(context="in-cluster")
    assert ("kube/config" in str(caught.value), "hunter2" in str(caught.value)) == (False, False)


def make_authority(name: str) -> tuple[bytes, str]:
    """Return the certificate of a new authority, in PEM, and its SHA-256 in hex."""
    key = Ed25519PrivateKey.generate()
    subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])
    begin = datetime(2026, 1, 1, tzinfo=UTC)
    made = x509.CertificateBuilder(subject, subject, key.public_key(), 1, begin, begin.replace(year=2046))
    made = made.add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
    certificate = made.sign(key, None)
    return certificate.public_bytes(Encoding.PEM), certificate.fingerprint(hashes.SHA256()).hex()


def test_clusters_of_one_name_are_told_apart_by_their_authorities(pod: Path) -> None:
    """As a pod finds them: both clusters are `in-cluster` to it."""
    (one, one_digest), (new, new_digest) = (make_authority("kubernetes") for _ in range(2))
    (pod / "token").write_text("t")
    found = []
    for bundle in (one, one + new + one, new):
        (pod / "ca.crt").write_bytes(bundle)
        found.append(Connection(context="in-cluster").login.authorities)
    assert found == [(one_digest,), tuple(sorted([one_digest, new_digest])), (new_digest,)]


@pytest.mark.parametrize("url", ["http://u:hunter2@127.0.0.1:1", "http://u:hunter2@127.0.0.1:port"])
def test_a_proxy_that_cannot_be_used_is_told_without_its_password(url: object, write: Write) -> None:
    write(**{"proxy-url": url})
    with pytest.raises(
        (ApiError, UserError), match=r"asked by the proxy http://127\.0\.0\.1:1 |cannot be used"
    ) as caught:
        Connection(context="lab").request("get", "/version", patience_seconds=0)
    assert "hunter2" not in str(caught.value)


def test_requests_go_by_the_proxy_with_its_password(write: Write, server: LyingServer) -> None:
    proxy = server.url.replace("//", "//u:p%2Fw@")
    write(server="http://absent.invalid", **{"proxy-url": proxy})
    assert Connection(context="lab").request("get", "/version") == b"{}"
    assert server.headers["Proxy-Authorization"] == "Basic dTpwL3c="  # base64 of u:p/w
