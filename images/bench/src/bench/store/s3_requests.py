"""Asks an S3 server for the pages of a listing, by a client of its own, which no answer can lead astray.

The store library has no limit for the body of an answer, and follows redirects: a page without end took 2 GB, one that
announced 2^40 bytes ended the process, and the host that a redirect named got the session token. Here an answer has
MAX_PAGE_BYTES, whatever it announces, and a redirect is an error.

The certificates are the system's, or those that SSL_CERT_FILE names, as the store library has them, which sends all
other requests; both are given the same proxy (`bench.proxies`).
"""

import http.client
import ssl
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any
from urllib.parse import quote, urlsplit

from botocore.auth import S3SigV4Auth
from botocore.awsrequest import AWSRequest
from botocore.credentials import Credentials

from bench.proxies import Proxy
from bench.store.store_errors import (
    ELSEWHERE,
    StoreError,
    classify_error,
    explain_error,
    get_headline,
    is_transient,
    name_place,
)

MAX_PAGE_BYTES = 16 * 2**20
"""A page of 1,000 keys has 0.3 MB; 7 MB where each key has the 1,024 bytes that S3 allows, all of them escaped."""
PIECE_BYTES = 65_536
CONNECT_SECONDS, SILENCE_SECONDS = 5.0, 30.0
"""As the store library. Whoever asks for a page limits the whole (`await_listing`)."""
FIRST_PAUSE_SECONDS, MAX_PAUSE_SECONDS = 0.1, 5.0


@dataclass(frozen=True)
class _Answer:
    status: int
    reason: str
    body: bytes


@dataclass(frozen=True, kw_only=True)
class S3Requests:
    """What the requests to one bucket have in common. Errors are StoreError, without the URL of the store."""

    endpoint: str
    proxy: Proxy | None
    bucket: str
    region: str
    get_credentials: Callable[[], Mapping[str, Any]]
    """Returns the present `access_key_id`, `secret_access_key` and `token`, or raises an error."""
    make_bucket: str
    """How to make a bucket that does not exist."""
    retry_seconds: float
    """For which a request is repeated that got no answer, or one that may pass."""

    def connect(self) -> "S3Connection":
        """Return a connection that is opened by its first request, and again after each that failed."""
        return S3Connection(self)

    def sign(self, url: str) -> dict[str, str]:
        """Return the headers of a GET of this URL."""
        try:
            found = self.get_credentials()
        except Exception as error:
            raise self.explain(f"External AWS credential provider: {type(error).__name__}: {error}") from None
        request = AWSRequest(method="GET", url=url, headers={"User-Agent": "benchmatrix"})
        keys = Credentials(found["access_key_id"], found["secret_access_key"], found.get("token"))
        S3SigV4Auth(keys, "s3", self.region).add_auth(request)
        return {"Host": urlsplit(url).netloc, "Accept-Encoding": "identity", **dict(request.headers.items())}

    def explain(self, failure: str) -> StoreError:
        """Return the error for a failure in the words of the store library."""
        place = name_place(self.endpoint, self.proxy)
        reason = explain_error(failure, place, self.make_bucket) or get_headline(failure)
        return classify_error(failure)(reason)


class S3Connection:
    """One connection, for requests one after the other; the next one may be sent before its answer is asked for."""

    def __init__(self, requests: S3Requests) -> None:
        self._requests = requests
        self._connection: Any  # typeshed's has a socket that is None for ever
        self._connection, self._for_proxy = _make_connection(requests.endpoint, requests.proxy)
        self._sent: dict[str, str] | None = None

    def send(self, parameters: Mapping[str, str]) -> None:
        """Have the server begin with the answer to `get` of these parameters, which comes next."""
        try:
            self._send(parameters)
            self._sent = dict(parameters)
        except (http.client.HTTPException, OSError):  # `get` sends it again
            self._connection.close()

    def get(self, parameters: Mapping[str, str]) -> bytes:
        """Return the body of the bucket's answer to a GET with these parameters of the URL."""
        give_up_at, pause = time.monotonic() + self._requests.retry_seconds, FIRST_PAUSE_SECONDS
        while True:
            was_sent, self._sent = self._sent == parameters, None
            try:
                if not was_sent:
                    self._send(parameters)
                answer = self._receive()
                failure = None if answer.status == 200 else _describe(answer)
            except (http.client.HTTPException, OSError) as error:
                self._connection.close()
                if was_sent:  # the server waited for longer than it does
                    continue
                failure = f"HTTP error: {_name_cause(error)}"
            if failure is None:
                return answer.body
            if not is_transient(failure) or time.monotonic() + pause > give_up_at:
                raise self._requests.explain(failure)
            time.sleep(pause)
            pause = min(2 * pause, MAX_PAUSE_SECONDS)

    def close(self) -> None:
        """End the connection."""
        self._connection.close()

    def _send(self, parameters: Mapping[str, str]) -> None:
        query = "&".join(f"{name}={quote(value, safe='-_.~')}" for name, value in sorted(parameters.items()))
        url = f"{self._requests.endpoint.rstrip('/')}/{self._requests.bucket}?{query}"
        headers = self._requests.sign(url)
        if self._connection.sock is None:
            self._connection.connect()
            self._connection.sock.settimeout(SILENCE_SECONDS)  # type: ignore[attr-defined]  # typeshed: always None
        if self._for_proxy is None:
            self._connection.request("GET", url.removeprefix("/".join(url.split("/", 3)[:3])), headers=headers)
        else:
            self._connection.request("GET", url, headers={**headers, **self._for_proxy})

    def _receive(self) -> _Answer:
        with self._connection.getresponse() as response:  # holds the socket until it is read to its end or closed
            if 300 <= response.status < 400 and response.headers.get("Location"):
                self._connection.close()
                raise StoreError(ELSEWHERE.format(place=self._requests.endpoint))
            return _Answer(response.status, response.reason, _read_body(response, self._connection))


def _describe(answer: _Answer) -> str:
    """Return what an answer says of a failure, in the words of the store library."""
    if 300 <= answer.status < 400:  # without a Location: where S3 knows the bucket in another region
        return "redirect without LOCATION"
    status = f"{answer.status} {answer.reason}"
    return f"Server returned non-2xx status code: {status}: {answer.body.decode(errors='replace')}"


def _name_cause(error: Exception) -> str:
    """Return why a request got no answer, in words that hold nothing the server sent."""
    if isinstance(error, TimeoutError):
        return "timed out"
    reason = error.strerror if isinstance(error, OSError) else None
    if isinstance(error, OSError) and type(error).__name__ == "gaierror":
        return f"failed to look up the address: {reason}"
    return reason or type(error).__name__


def _read_body(response: http.client.HTTPResponse, connection: http.client.HTTPConnection) -> bytes:
    """Return the body; raise StoreError for one that is, or is said to be, larger than a page."""
    pieces, num_bytes = [], response.length or 0
    if num_bytes <= MAX_PAGE_BYTES:
        num_bytes = 0
        while num_bytes <= MAX_PAGE_BYTES and (piece := response.read(PIECE_BYTES)):
            pieces.append(piece)
            num_bytes += len(piece)
    if num_bytes > MAX_PAGE_BYTES:
        connection.close()
        raise StoreError(f"a page of its listing has more than {MAX_PAGE_BYTES:,} bytes; is it an S3 server?")
    if response.length:  # of what it announced, the rest did not come
        raise http.client.IncompleteRead(b"", response.length)
    return b"".join(pieces)


@cache
def _trust() -> ssl.SSLContext:
    return ssl.create_default_context()


def _make_connection(url: str, proxy: Proxy | None) -> tuple[http.client.HTTPConnection, dict[str, str] | None]:
    """Return a connection to the server or its proxy, and the headers for a proxy that gets whole URLs, else None."""
    parts = urlsplit(url)
    is_secure = parts.scheme == "https"
    host, port = str(parts.hostname), parts.port or (443 if is_secure else 80)
    first_host, first_port = (host, port) if proxy is None else (proxy.host, proxy.port)
    if not is_secure:
        plain = http.client.HTTPConnection(first_host, first_port, timeout=CONNECT_SECONDS)
        return plain, None if proxy is None else proxy.headers
    secure = http.client.HTTPSConnection(first_host, first_port, timeout=CONNECT_SECONDS, context=_trust())
    if proxy is not None:
        secure.set_tunnel(host, port, headers=proxy.headers)
    return secure, None
