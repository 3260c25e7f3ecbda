"""Credentials that cannot be right are refused by name, and no message shows them."""

import base64
import json
import threading
from collections.abc import Iterator
from datetime import UTC, datetime
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest
import yaml
from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from cryptography.hazmat.primitives.serialization import Encoding
from cryptography.x509.oid import NameOID

from bench.errors import UserError
from runner.kubernetes import connection as connection_module
from runner.kubernetes.api_errors import ApiError
from runner.kubernetes.connection import Connection

BAD_TOKENS = ("hunter2\r\nX-Evil: 1", "hunter2 and more", "hünter2", "hunter2\x01", "hunter2\nhunter3")


class Server(ThreadingHTTPServer):
    """Answers `{}` to everything and keeps the header that it was sent."""

    daemon_threads = True
    seen: str | None = None
    proxy_authorization: str | None = None


@pytest.fixture
def server() -> Iterator[Server]:
    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            started.seen = self.headers["Authorization"]
            started.proxy_authorization = self.headers["Proxy-Authorization"]
            self.send_response(200)
            self.send_header("Content-Length", "2")
            self.end_headers()
            self.wfile.write(b"{}")

        def log_message(self, *_: object) -> None:
            pass

    started = Server(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=started.serve_forever, args=(0.01,))
    thread.start()
    yield started
    started.shutdown()
    thread.join()
    started.server_close()


class Kubeconfig:
    """A file with one context, `lab`, whose user `me` is the test's."""

    def __init__(self, path: Path, url: str) -> None:
        self.path, self.url = path, url

    def write(self, user: dict[str, Any], **cluster: Any) -> None:
        document = {
            "apiVersion": "v1",
            "kind": "Config",
            "current-context": "lab",
            "contexts": [{"name": "lab", "context": {"cluster": "lab", "user": "me"}}],
            "clusters": [{"name": "lab", "cluster": {"server": self.url} | cluster}],
            "users": [{"name": "me", "user": user}],
        }
        self.path.write_text(yaml.safe_dump(document))


@pytest.fixture
def kubeconfig(tmp_path: Path, server: Server, monkeypatch: pytest.MonkeyPatch) -> Kubeconfig:
    monkeypatch.setenv("KUBECONFIG", str(tmp_path / "kubeconfig"))
    return Kubeconfig(tmp_path / "kubeconfig", f"http://127.0.0.1:{server.server_address[1]}")


def give_token(how: str, token: str, folder: Path) -> dict[str, Any]:
    """Return the entry of a kubeconfig's user that gives the token in the way that `how` names."""
    if how == "token":
        return {"token": token}
    if how == "tokenFile":
        (folder / "token").write_text(token, newline="")
        return {"tokenFile": str(folder / "token")}
    version = "client.authentication.k8s.io/v1"
    answer = {"apiVersion": version, "kind": "ExecCredential", "status": {"token": token}}
    (folder / "answer.json").write_text(json.dumps(answer))
    return {"exec": {"apiVersion": version, "command": "cat", "args": [str(folder / "answer.json")]}}


@pytest.mark.parametrize("how", ["token", "tokenFile", "exec"])
def test_the_line_break_behind_a_token_is_not_part_of_it(
    how: str, kubeconfig: Kubeconfig, server: Server, tmp_path: Path
) -> None:
    kubeconfig.write(give_token(how, "hunter2\n", tmp_path))
    Connection(context="lab").request("get", "/version")
    assert server.seen == "Bearer hunter2"


@pytest.mark.parametrize("token", BAD_TOKENS)
@pytest.mark.parametrize("how", ["token", "tokenFile", "exec"])
def test_a_token_that_no_header_can_carry_is_refused_by_name_and_not_shown(
    how: str, token: str, kubeconfig: Kubeconfig, tmp_path: Path
) -> None:
    kubeconfig.write(give_token(how, token, tmp_path))
    with pytest.raises(UserError, match=r"--on lab: .*kubeconfig: user `me`: .*token") as caught:
        Connection(context="lab")
    assert "nter2" not in str(caught.value)


def test_a_token_that_goes_bad_in_mid_run_is_an_error_of_the_api(
    kubeconfig: Kubeconfig, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(connection_module, "CREDENTIALS_SECONDS", 0.0)
    kubeconfig.write({"token": "hunter2"})
    connection = Connection(context="lab", patience_seconds=0.0)
    connection.request("get", "/version")
    connection._client.configuration.refresh_api_key_hook = None
    connection._client.configuration.api_key["BearerToken"] = "Bearer hunter2\x01"
    with pytest.raises(ApiError, match="token") as caught:
        connection.request("get", "/version")
    assert (caught.value.status, "hunter2" in caught.value.message) == (401, False)


@pytest.mark.parametrize(
    "user",
    [
        {"username": "me", "password": "hunter2€"},
        {"username": "me", "password": 2},
        {"client-key-data": "hunter2!", "client-certificate-data": "hunter2!"},
        {"token": {"hunter2": "x"}},
    ],
)
def test_credentials_of_another_kind_that_cannot_be_read_are_refused_and_not_shown(
    user: dict[str, Any], kubeconfig: Kubeconfig
) -> None:
    kubeconfig.write(user, server=kubeconfig.url.replace("http:", "https:"))
    with pytest.raises(UserError, match=r"--on lab: .*kubeconfig: user `me`") as caught:
        Connection(context="lab")
    assert "hunter" not in str(caught.value)


def test_a_client_certificate_that_is_none_is_refused_at_once_and_not_shown(kubeconfig: Kubeconfig) -> None:
    key = base64.b64encode(b"-----BEGIN PRIVATE KEY-----\nhunter2\n-----END PRIVATE KEY-----\n").decode()
    kubeconfig.write(
        {"client-certificate-data": key, "client-key-data": key}, server=kubeconfig.url.replace("http:", "https:")
    )
    with pytest.raises(UserError, match=r"user `me`: client-certificate.* or client-key") as caught:
        Connection(context="lab")
    assert ("hunter2" in str(caught.value), key in str(caught.value)) == (False, False)


def test_a_cluster_without_a_server_is_refused_at_once(kubeconfig: Kubeconfig) -> None:
    kubeconfig.write({"token": "fine"})
    document = yaml.safe_load(kubeconfig.path.read_text())
    del document["clusters"][0]["cluster"]["server"]
    kubeconfig.path.write_text(yaml.safe_dump(document))
    with pytest.raises(UserError, match=r"--on lab: .*kubeconfig: the cluster of this context has no server, expected"):
        Connection(context="lab")


def test_a_file_that_is_no_yaml_is_named_and_not_shown(kubeconfig: Kubeconfig) -> None:
    kubeconfig.path.write_text("users:\n- name: me\n  user: {token: 'hunter2\n  x: [")
    with pytest.raises(UserError, match="--on lab: .*kubeconfig") as caught:
        Connection(context="lab")
    assert "hunter2" not in str(caught.value)


def test_what_stands_where_a_name_belongs_is_not_shown(kubeconfig: Kubeconfig) -> None:
    kubeconfig.write({"token": "fine"})
    document = yaml.safe_load(kubeconfig.path.read_text())
    document["users"] = [{"name": {"name": "me", " ": {"token": "hunter2"}}}]
    kubeconfig.path.write_text(yaml.safe_dump(document))
    with pytest.raises(UserError, match="--on lab: .*kubeconfig") as caught:
        Connection(context="lab")
    assert "hunter2" not in str(caught.value)


def make_authority(name: str) -> tuple[bytes, str]:
    """Return the certificate of a new authority, in PEM, and its SHA-256 in hex."""
    key = Ed25519PrivateKey.generate()
    subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])
    begin = datetime(2026, 1, 1, tzinfo=UTC)
    made = x509.CertificateBuilder(subject, subject, key.public_key(), 1, begin, begin.replace(year=2046))
    made = made.add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
    certificate = made.sign(key, None)
    return certificate.public_bytes(Encoding.PEM), certificate.fingerprint(hashes.SHA256()).hex()


def test_clusters_of_one_name_are_told_apart_by_their_authorities(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As a pod finds them: both clusters are `in-cluster` to it."""
    from kubernetes.config import incluster_config

    (one, one_digest), (new, new_digest) = (make_authority("kubernetes") for _ in range(2))
    monkeypatch.setenv("KUBERNETES_SERVICE_HOST", "127.0.0.1")
    monkeypatch.setenv("KUBERNETES_SERVICE_PORT", "1")
    monkeypatch.setattr(incluster_config, "SERVICE_TOKEN_FILENAME", str(tmp_path / "token"))
    monkeypatch.setattr(incluster_config, "SERVICE_CERT_FILENAME", str(tmp_path / "ca.crt"))
    (tmp_path / "token").write_text("t")
    found = []
    for bundle in (one, one + new + one, new):
        (tmp_path / "ca.crt").write_bytes(bundle)
        found.append(Connection(context="in-cluster").authorities)
    assert found == [(one_digest,), tuple(sorted([one_digest, new_digest])), (new_digest,)]


def test_of_a_server_that_is_not_checked_no_authority_is_recorded(kubeconfig: Kubeconfig) -> None:
    kubeconfig.url = "https://127.0.0.1:1"
    data = base64.b64encode(make_authority("kubernetes")[0]).decode()
    kubeconfig.write({"token": "t"}, **{"certificate-authority-data": data})
    assert len(Connection(context="lab").authorities) == 1
    kubeconfig.write({"token": "t"}, **{"insecure-skip-tls-verify": True})
    assert Connection(context="lab").authorities == ()
    kubeconfig.write({"token": "t"})
    assert Connection(context="lab").authorities == ()


@pytest.mark.parametrize(
    "value",
    [
        "http://u:hunter2@127.0.0.1:port",
        "http://u:hunter2/x@127.0.0.1:9",
        "socks5://u:hunter2@127.0.0.1:9",
        "hunter2",
        5,
        ["hunter2"],
    ],
)
def test_a_proxy_of_the_kubeconfig_that_is_none_is_named_and_not_shown(kubeconfig: Kubeconfig, value: object) -> None:
    kubeconfig.write({"token": "t"}, **{"proxy-url": value})
    with pytest.raises(UserError, match=r"cluster `lab`: proxy-url (is no URL of a proxy|names a proxy of)") as caught:
        Connection(context="lab")
    assert "hunter2" not in str(caught.value)


@pytest.mark.parametrize("value", ["http://u:hunter2/x@127.0.0.1:9", "http://[::1", "socks5://u:hunter2@127.0.0.1"])
def test_a_proxy_of_the_environment_that_is_none_is_named_and_not_shown(
    kubeconfig: Kubeconfig, value: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("NO_PROXY", raising=False)
    monkeypatch.setenv("http_proxy", value)
    kubeconfig.write({"token": "t"})
    with pytest.raises(UserError, match="--on lab: http_proxy ") as caught:
        Connection(context="lab")
    assert "hunter2" not in str(caught.value)


def test_a_proxy_that_does_not_answer_is_named_without_its_password(kubeconfig: Kubeconfig) -> None:
    kubeconfig.write({"token": "t"}, **{"proxy-url": "http://u:hunter2@127.0.0.1:1"})
    with pytest.raises(ApiError, match=r"asked by the proxy http://127\.0\.0\.1:1 ") as caught:
        Connection(context="lab").request("get", "/version", patience_seconds=0)
    assert "hunter2" not in str(caught.value)


def test_requests_go_by_the_proxy_with_its_password(kubeconfig: Kubeconfig, server: Server) -> None:
    proxy = kubeconfig.url.replace("//", "//u:p%2Fw@")
    kubeconfig.url = "http://absent.invalid"
    kubeconfig.write({"token": "t"}, **{"proxy-url": proxy})
    assert Connection(context="lab").request("get", "/version") == b"{}"
    assert server.proxy_authorization == "Basic dTpwL3c="  # base64 of u:p/w


def test_a_connection_that_is_refused_is_told_as_such(kubeconfig: Kubeconfig) -> None:
    kubeconfig.write({"token": "fine"}, server="http://127.0.0.1:1")
    with pytest.raises(ApiError, match="the API server does not answer: .*Connection refused") as caught:
        Connection(context="lab", patience_seconds=0.0).request("get", "/version")
    assert "(no text)" not in caught.value.message
