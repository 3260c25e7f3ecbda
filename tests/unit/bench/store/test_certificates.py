"""S3 servers whose certificate cannot be verified: an error of the user, which no later try mends."""

from collections.abc import Callable
from http.server import BaseHTTPRequestHandler
from pathlib import Path
from typing import Any

import pytest

from bench.errors import TransientError
from bench.store import KeyMissing, Store, StoreUntrusted
from bench.store.s3_requests import _trust
from bench.store.store_errors import find_certificate_problem
from store_calls import list_calls
from tls_certificates import PAST, Authority

CASES: dict[str, tuple[dict[str, Any], bool, tuple[str, str]]] = {
    "authority": ({}, False, ("its authority is not known here", "unable to get local issuer certificate")),
    "expired": ({"end": PAST}, True, ("it has expired", "certificate has expired")),
    "host": ({"address": "127.0.0.9"}, True, ("it is for another host", "IP address mismatch, certificate is not ")),
}
"""What the server's certificate is, whether its authority is trusted, and what each of the two clients says."""


class Empty(BaseHTTPRequestHandler):
    """Has no object."""

    def do_GET(self) -> None:
        self.send_response(404)
        self.send_header("Content-Length", "0")
        self.end_headers()

    def log_message(self, *_: object) -> None:
        pass


@pytest.fixture
def open_secure(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, few_retries: None, open_served: Callable[..., Store]
) -> Callable[..., Store]:
    """Open the store of an S3 server with a certificate; `is_trusted`: whether that of its authority is."""

    def start(is_trusted: bool, **certificate: Any) -> Store:
        authority, other = Authority(), Authority("another")
        trusted = (authority if is_trusted else other).write_own(tmp_path / "ca.pem")
        monkeypatch.setenv("SSL_CERT_FILE", str(trusted))
        _trust.cache_clear()
        return open_served(Empty, authority.write_server(tmp_path / "server.pem", **certificate))

    return start


@pytest.mark.parametrize("case", CASES.values(), ids=CASES)
def test_a_certificate_that_is_not_accepted_is_the_users_to_fix(
    open_secure: Callable[..., Store], case: tuple[dict[str, Any], bool, tuple[str, str]]
) -> None:
    certificate, is_trusted, words = case
    store = open_secure(is_trusted, **certificate)
    for call in list_calls(store):
        with pytest.raises(StoreUntrusted) as caught:
            call()
        message = str(caught.value)
        assert f"the certificate of {store.backend.place} is not accepted (" in message
        assert any(f"({word}" in message for word in words)
        assert "its authority's certificate (PEM) in SSL_CERT_FILE" in message
        assert "the host that the endpoint names (AWS_ENDPOINT_URL" in message
        assert not isinstance(caught.value, TransientError)


def test_a_certificate_of_the_authority_that_the_variable_names_is_accepted(open_secure: Callable[..., Store]) -> None:
    with pytest.raises(KeyMissing):
        open_secure(is_trusted=True).get("x")


def test_a_server_cannot_say_that_its_own_certificate_is_not_accepted() -> None:
    """An error of its own passes, whatever its page says."""
    details = "Debug source:\n   error: InvalidCertificate(\n UnknownIssuer,\n)"
    page = f"Server returned non-2xx status code: 503 Busy: certificate verify failed: x {details}"
    assert find_certificate_problem(f"Generic S3 error: - HTTP error: {page}") is None
    assert find_certificate_problem(f"Generic S3 error: - HTTP error: error sending request {details}") is not None
