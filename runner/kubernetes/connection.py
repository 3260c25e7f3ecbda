"""Requests to one API server: over one pool of connections, repeated, rate-limited and counted.

Bodies are JSON bytes both ways: of the official client only the login and the pool are used. Its typed objects take 76
KB for a Job, and 100,000 of them are followed.
"""

import hashlib
import json
import random
import re
import ssl
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from http import HTTPStatus
from typing import Any, TypeVar
from urllib.parse import urlencode

import kubernetes.client
import urllib3

from bench.errors import UserError
from runner.kubernetes.api_errors import (
    ANONYMOUS,
    NO_RIGHT,
    REFUSED_CREDENTIALS,
    UNREACHABLE,
    AnswerError,
    ApiError,
    BusyError,
    is_unauthorized,
    make_unreachable,
    read_refusal,
)
from runner.kubernetes.login import LoginError, log_in, read_authorization
from runner.kubernetes.rate_limiter import MAX_PAUSE_SECONDS, RateLimiter

NUM_CONNECTIONS = 32
POOL_SIZE = NUM_CONNECTIONS + 4
"""Watches hold connections of their own."""
CREDENTIALS_SECONDS = 1.0
"""How long a header with credentials is reused before the client is asked for it again."""
CONNECT_SECONDS = 5.0
READ_SECONDS = 60.0
"""How long an ordinary request may be without a byte of its answer; a watch has its own limit."""
PAGE_SIZE = 500
"""Objects of one answer: `kubectl` asks for as many (--chunk-size). A finished Job takes up to 15 KB."""
MAX_LISTS = 10
"""How often a list is begun again whose first pages became too old: after five minutes, when etcd is compacted.
https://kubernetes.io/docs/reference/using-api/api-concepts/#retrieving-large-results-sets-in-chunks"""

PATIENCE_SECONDS = 900.0
"""How long requests are repeated to an API server that does not answer."""
FIRST_PATIENCE_SECONDS = 30.0
"""The same for a server that never answered: perhaps there is none at that address."""
LOGIN_PATIENCE_SECONDS = 60.0
"""The same for a server that no longer accepts a user it had accepted, or a request that it had allowed: an expired
token is soon replaced, and a server that starts does not know the roles at first."""
SHORT_PATIENCE_SECONDS = 10.0
"""How long a request is repeated that a run goes on without: lists of nodes, the facts of one node or placement."""
WARN_SECONDS = 5.0
"""Requests that are repeated for so long are reported."""
MIN_WAIT_SECONDS, MAX_WAIT_SECONDS = 0.5, 30.0

JsonObject = dict[str, Any]
T = TypeVar("T")


@dataclass(kw_only=True)
class Connection:
    """Requests to one API server; to be used from many threads."""

    context: str
    """Name of the kubeconfig's context, or `runner.cluster_contexts.IN_CLUSTER`."""
    patience_seconds: float = PATIENCE_SECONDS
    num_requests: Counter[str] = field(default_factory=Counter)
    """Requests that were sent, by verb and kind, such as `create jobs`; repeated ones are counted again."""
    rate_limiter: RateLimiter = field(default_factory=lambda: RateLimiter(NUM_CONNECTIONS))
    warn: Callable[[str, str], None] = field(default=lambda message, dedup_key: None, repr=False)
    """Called, from any thread, with the reason why requests have been repeated for some time, and its dedup key."""
    is_known: bool = False
    """The API server has answered a request, so it has accepted the user."""
    _client: kubernetes.client.ApiClient = field(init=False, repr=False)
    _credentials: tuple[kubernetes.client.ApiClient | None, float, dict[str, str]] = field(
        default=(None, 0.0, {}), init=False, repr=False
    )
    _allowed: set[str] = field(default_factory=set, repr=False)
    """The keys of num_requests that the server has answered without an error."""
    _lock: threading.Lock = field(default_factory=threading.Lock, repr=False)

    def __post_init__(self) -> None:
        self._client = log_in(self.context, num_connections=POOL_SIZE)

    @property
    def authorities(self) -> tuple[str, ...]:
        """The SHA-256 of each certificate that the API server's own is checked by, in hex, sorted.

        By them clusters are told apart that have the same name: every pod may read those of its cluster, and kubeadm,
        kind, k3s and the clouds make new ones for each. While they are replaced, the file has the old ones and the new
        ones. Empty where they are the system's, or nothing is checked.
        """
        configuration = self._client.configuration
        if not (configuration.ssl_ca_cert and configuration.verify_ssl):
            return ()
        tls = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        tls.load_verify_locations(configuration.ssl_ca_cert)
        return tuple(sorted({hashlib.sha256(data).hexdigest() for data in tls.get_ca_certs(binary_form=True)}))

    def request(
        self,
        verb: str,
        path: str,
        *,
        query: Mapping[str, str] | None = None,
        body: bytes | None = None,
        content_type: str = "application/json",
        patience_seconds: float | None = None,
        stop: threading.Event | None = None,
    ) -> bytes:
        """Send a request and return the body of the answer.

        `verb`: as RBAC names it, such as `create`. Repeated while the server is away, busy or failing, until patience
        is over or `stop` is set; ApiError then, or if the server refuses.
        """
        retries = Retries(self, self.patience_seconds if patience_seconds is None else patience_seconds)
        while True:
            try:
                with self.rate_limiter.hold():
                    data = self._read(self._open(verb, path, query, body, content_type, READ_SECONDS))
                self.rate_limiter.speed_up()
                if verb not in ("get", "list") and not data.lstrip().startswith(b"{"):
                    # A page of whoever answers in its place: nothing was created or deleted.
                    raise AnswerError(f"its answer to a request to {verb} {name_kind(path)} is no JSON object")
                return data
            except ApiError as error:
                if isinstance(error, BusyError):
                    self.rate_limiter.slow_down(error.retry_after)
                retries.wait(error, stop)
                if stop is not None and stop.is_set():
                    raise

    def get_object(self, path: str, *, patience_seconds: float | None = None) -> JsonObject:
        """Return one object; ApiError as `request`, and where the answer is no object."""
        return decode_answer(self.request("get", path, patience_seconds=patience_seconds))

    def list_items(self, path: str, **query: str) -> list[JsonObject]:
        """Return the objects of a kind as they are; ApiError as `request`. For many objects, see `read_items`."""
        return self.read_items(path, lambda item: item, query)

    def read_items(
        self,
        path: str,
        read: Callable[[JsonObject], T],
        query: Mapping[str, str] | None = None,
        *,
        patience_seconds: float | None = None,
    ) -> list[T]:
        """Return what `read` takes of each object of a kind, page by page, so that the rest is not kept.

        ApiError as `request`, and where an object is not as Kubernetes describes it.
        """
        for _ in range(MAX_LISTS):
            items: list[T] = []
            asked = {"limit": str(PAGE_SIZE), **(query or {})}
            try:
                while True:
                    page = decode_answer(self.request("list", path, query=asked, patience_seconds=patience_seconds))
                    items += (read_item(item, read, name_kind(path)) for item in page.get("items") or ())
                    token = page.get("metadata", {}).get("continue")
                    if not token:
                        return items
                    asked["continue"] = token
            except ApiError as error:
                if error.status != HTTPStatus.GONE:  # else the first pages are too old for the rest: from the start
                    raise
                expired = error
        raise expired

    @contextmanager
    def stream(self, path: str, query: Mapping[str, str], *, idle_seconds: float) -> Iterator[urllib3.BaseHTTPResponse]:
        """Open a watch and hand out its answer. One that is silent for `idle_seconds` ends with ApiError."""
        response = self._open("watch", path, query, None, "application/json", idle_seconds)
        try:
            yield response
        except (urllib3.exceptions.HTTPError, OSError) as error:
            raise make_unreachable(error) from error
        finally:
            response.close()
            response.release_conn()

    def log_in_again(self, refused: "kubernetes.client.ApiClient | None") -> None:
        """Read the credentials anew, as tokens expire: once for all threads whose client, `refused`, was refused."""
        with self._lock:
            if self._client is refused:
                with suppress(UserError):  # a kubeconfig that is just being written: the old login is tried again
                    self._client = log_in(self.context, num_connections=POOL_SIZE)

    def _open(
        self,
        verb: str,
        path: str,
        query: Mapping[str, str] | None,
        body: bytes | None,
        content_type: str,
        read_seconds: float,
    ) -> urllib3.BaseHTTPResponse:
        client, credentials = self._client, self._read_credentials()
        headers = {"Accept": "application/json", "Content-Type": content_type, "User-Agent": "benchmatrix"}
        request = f"{verb} {name_kind(path)}"
        self.num_requests[request] += 1
        read_limit = read_seconds if self.is_known else min(read_seconds, FIRST_PATIENCE_SECONDS)
        try:
            response: urllib3.BaseHTTPResponse = client.rest_client.pool_manager.request(
                _METHODS[verb],
                f"{client.configuration.host}{path}{f'?{urlencode(query)}' if query else ''}",
                body=body,
                headers=headers | credentials,
                timeout=urllib3.Timeout(connect=CONNECT_SECONDS, read=read_limit),
                retries=False,
                preload_content=False,
            )
        except (urllib3.exceptions.HTTPError, OSError) as error:
            proxy = client.rest_client.pool_manager.proxy  # the configuration may have been read anew by now
            raise make_unreachable(error, is_known=self.is_known, proxy=proxy) from error
        if 300 <= response.status < 400:  # elsewhere nobody gets the credentials, and nothing was done here
            response.close()
            raise AnswerError(f"it sends requests elsewhere (HTTP {response.status})")
        if response.status >= 400:
            refusal = read_refusal(verb, response, self._read(response))
            refusal.client, refusal.was_allowed = client, request in self._allowed
            raise refusal
        self.is_known = True
        self._allowed.add(request)
        return response

    def _read(self, response: urllib3.BaseHTTPResponse) -> bytes:
        try:
            data: bytes = response.read()
        except (urllib3.exceptions.HTTPError, OSError) as error:
            response.close()
            raise make_unreachable(error) from error
        response.release_conn()
        return data

    def _read_credentials(self) -> dict[str, str]:
        """Return the header that the client logs in with; whether there is a new token is looked up once a second."""
        client, now = self._client, time.monotonic()
        known, until, headers = self._credentials
        if known is not client or now > until:
            try:
                headers = read_authorization(client, self.context)
            except LoginError as error:
                refusal = ApiError(HTTPStatus.UNAUTHORIZED, "Unauthorized", str(error))
                refusal.client = client
                raise refusal from None
            self._credentials = (client, now + CREDENTIALS_SECONDS, headers)
        return headers


# The verbs of RBAC: https://kubernetes.io/docs/reference/access-authn-authz/authorization/#determine-the-request-verb
_METHODS = {
    "get": "GET",
    "list": "GET",
    "watch": "GET",
    "create": "POST",
    "patch": "PATCH",
    "delete": "DELETE",
    "deletecollection": "DELETE",
}


@dataclass
class Retries:
    """The waits between the tries of one request: exponential backoff with jitter, until patience is over.

    This is about single requests. Why a Job is created again is in session.py.
    """

    connection: Connection
    patience_seconds: float
    _since: float | None = None
    _wait_seconds: float = MIN_WAIT_SECONDS

    def reset(self) -> None:
        """Note a try that went well: the next error starts with the shortest wait."""
        self._since, self._wait_seconds = None, MIN_WAIT_SECONDS

    def wait(self, error: ApiError, stop: threading.Event | None = None) -> None:
        """Wait before the next try, until `stop` at most; raise `error` if there is to be none."""
        now = time.monotonic()
        self._since = now if self._since is None else self._since
        left = self._find_patience(error) - (now - self._since)
        if left <= 0:
            raise error
        if now - self._since >= WARN_SECONDS:
            why = REFUSED_CREDENTIALS if is_unauthorized(error) else error.message
            message = f"{why}; it is tried again, for {self._find_patience(error):g} s in all"
            self.connection.warn(message, f"API server {error.reason or error.status}")
        if not isinstance(error, BusyError):
            self.connection.log_in_again(error.client)
        asked = min(error.retry_after or 0.0, MAX_PAUSE_SECONDS) if isinstance(error, BusyError) else 0.0
        seconds = max(asked, self._wait_seconds * random.uniform(0.5, 1.0))
        (stop or threading.Event()).wait(min(seconds, left))  # the last try is made when patience ends
        self._wait_seconds = min(2 * self._wait_seconds, MAX_WAIT_SECONDS)

    def _find_patience(self, error: ApiError) -> float:
        """Return for how many seconds the request is repeated after this error; 0 if it is a refusal."""
        if isinstance(error, BusyError):
            is_first = error.reason == UNREACHABLE and not self.connection.is_known
            return min(FIRST_PATIENCE_SECONDS, self.patience_seconds) if is_first else self.patience_seconds
        lost_right = error.was_allowed and NO_RIGHT.search(error.message) is not None
        is_forbidden = error.status == HTTPStatus.FORBIDDEN and (ANONYMOUS in error.message or lost_right)
        is_unknown = error.status == HTTPStatus.UNAUTHORIZED or is_forbidden
        return min(LOGIN_PATIENCE_SECONDS, self.patience_seconds) if is_unknown and self.connection.is_known else 0.0


def decode_answer(body: bytes) -> JsonObject:
    """Return the JSON object of an answer; AnswerError where it is none."""
    try:
        found = json.loads(body)
    except (ValueError, RecursionError):
        kind = "an HTML page" if re.match(rb"\s*<(!doctype )?html", body, re.IGNORECASE) else "no JSON"
        raise AnswerError(f"it is {kind}; see the address of the server, and what stands before it") from None
    if not isinstance(found, dict):
        raise AnswerError("it is no JSON object")
    return found


def read_item(item: JsonObject, read: Callable[[JsonObject], T], kind: str) -> T:
    """Return what `read` takes of an object; AnswerError, which names it, where it is not as Kubernetes has it."""
    try:
        return read(item)
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        metadata = item.get("metadata") if isinstance(item, dict) else None
        name = metadata.get("name") if isinstance(metadata, dict) else None
        raise AnswerError(f"one of the {kind}, {name or 'without a name'}: {type(error).__name__}: {error}") from error


def name_kind(path: str) -> str:
    """Return the kind that a path is about: `/apis/batch/v1/namespaces/x/jobs/y` is about jobs."""
    parts = path.strip("/").split("/")
    after = parts.index("namespaces") + 2 if "namespaces" in parts else (2 if parts[0] == "api" else 3)
    named = parts[after : after + 3]
    if len(named) == 3:
        return f"{named[0]}/{named[2]}"
    if named:
        return named[0]
    return "namespaces" if "namespaces" in parts else parts[-1]
