"""A kubeconfig's context in, requests to its API server out: one pool of connections, patient, polite and counted.

Bodies are JSON bytes both ways: the official client knows how to log in, its typed objects are not needed.
"""

import json
import random
import re
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import urlencode

import kubernetes.client
import kubernetes.config
import urllib3
import yaml
from kubernetes.config.config_exception import ConfigException

from bench.errors import UserError
from runner.kubernetes.credentials import IN_CLUSTER, describe_fault, find_kubeconfig, log_in, read_authorization
from runner.kubernetes.rate_limiter import MAX_PAUSE_SECONDS, RateLimiter

CURRENT = "current"
NUM_CONNECTIONS = 32
POOL_SIZE = NUM_CONNECTIONS + 4
"""The watches keep theirs."""
CREDENTIALS_SECONDS = 1.0
"""How long a header with credentials is sent before the client is asked again."""
CONNECT_SECONDS = 5.0
READ_SECONDS = 60.0
"""Of an ordinary request; a watch has its own."""
PATIENCE_SECONDS = 900.0
"""How long requests are repeated to an API server that does not answer."""
FIRST_PATIENCE_SECONDS = 30.0
"""The same where it never did: perhaps it is not there at all."""
LOGIN_PATIENCE_SECONDS = 60.0
"""The same where it no longer knows a user whom it had let in: an expired token is soon replaced."""
TELL_SECONDS = 5.0
"""Requests that are repeated for so long are told about."""
MIN_WAIT_SECONDS, MAX_WAIT_SECONDS = 0.5, 30.0
UNAUTHORIZED, FORBIDDEN, NOT_FOUND, CONFLICT, TOO_MANY_REQUESTS = 401, 403, 404, 409, 429
UNREACHABLE = "Unreachable"
ANONYMOUS = 'User "system:anonymous"'
"""Whom the API server sees where a program that gives credentials gave none."""
# https://kubernetes.io/docs/reference/using-api/api-concepts/: what a request may be repeated for
PASSING = frozenset({TOO_MANY_REQUESTS, 500, 502, 503, 504})


class ApiError(Exception):
    """The API server refused a request. `status` is the HTTP code, `reason` and `message` its own words."""

    def __init__(self, status: int, reason: str, message: str) -> None:
        super().__init__(message)
        self.status = status
        self.reason = reason
        self.message = message
        self.client: kubernetes.client.ApiClient | None = None
        """Whose login was refused."""


@dataclass(kw_only=True)
class Connection:
    """Requests to one API server; to be used from many threads."""

    context: str
    """Name of the kubeconfig's context, or IN_CLUSTER."""
    patience_seconds: float = PATIENCE_SECONDS
    num_requests: Counter[str] = field(default_factory=Counter)
    """Requests that were sent, by verb and kind, `create jobs` for one; repeated ones are counted again."""
    rate_limiter: RateLimiter = field(default_factory=lambda: RateLimiter(NUM_CONNECTIONS))
    warn: Callable[[str], None] = field(default=lambda message: None, repr=False)
    """Told, from any thread, why requests have been repeated for some time."""
    is_known: bool = False
    """The API server has answered a request: who sends them was let in."""
    _client: kubernetes.client.ApiClient = field(init=False, repr=False)
    _credentials: tuple[kubernetes.client.ApiClient | None, float, dict[str, str]] = field(
        default=(None, 0.0, {}), init=False, repr=False
    )
    _lock: threading.Lock = field(default_factory=threading.Lock, repr=False)

    def __post_init__(self) -> None:
        self._client = log_in(self.context, num_connections=POOL_SIZE)

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

        `verb`: a word of RBAC, `create` for one. Repeated while the server is away, busy or ailing, for as long as the
        patience lasts and until `stop`; ApiError where it refuses, or when that is over.
        """
        retries = Retries(
            connection=self,
            patience_seconds=self.patience_seconds if patience_seconds is None else patience_seconds,
        )
        while True:
            try:
                return self._send(verb, path, query, body, content_type)
            except ApiError as error:
                if isinstance(error, BusyError):
                    self.rate_limiter.slow_down(error.retry_after)
                retries.wait(error, stop)
                if stop is not None and stop.is_set():
                    raise

    def get_object(self, path: str) -> dict[str, Any]:
        """Return one object; ApiError as `request`."""
        found: dict[str, Any] = json.loads(self.request("get", path))
        return found

    def list_items(self, path: str, **query: str) -> list[dict[str, Any]]:
        """Return the objects of a kind, all in one page; ApiError as `request`."""
        items: list[dict[str, Any]] = json.loads(self.request("list", path, query=query))["items"]
        return items

    @contextmanager
    def stream(self, path: str, query: Mapping[str, str], *, idle_seconds: float) -> Iterator[Iterator[bytes]]:
        """Open a watch or a log and hand out its lines. One that is silent for `idle_seconds` ends with ApiError."""
        response = self._open("watch", path, query, None, "application/json", idle_seconds, preload=False)
        try:
            yield _iterate_lines(response)
        except (urllib3.exceptions.HTTPError, OSError) as error:
            raise _unreachable(error) from error
        finally:
            response.close()
            response.release_conn()

    def log_in_anew(self, refused: "kubernetes.client.ApiClient | None") -> None:
        """Read credentials again, once for all the threads whom `refused` failed: tokens expire in a long run."""
        with self._lock:
            if self._client is refused:
                with suppress(UserError):  # a kubeconfig that is just being written: the old login is tried again
                    self._client = log_in(self.context, num_connections=POOL_SIZE)

    def _send(
        self, verb: str, path: str, query: Mapping[str, str] | None, body: bytes | None, content_type: str
    ) -> bytes:
        with self.rate_limiter.hold():
            response = self._open(verb, path, query, body, content_type, READ_SECONDS, preload=True)
        self.rate_limiter.speed_up()
        data: bytes = response.data
        return data

    def _open(
        self,
        verb: str,
        path: str,
        query: Mapping[str, str] | None,
        body: bytes | None,
        content_type: str,
        read_seconds: float,
        *,
        preload: bool,
    ) -> urllib3.BaseHTTPResponse:
        client, credentials = self._client, self._read_credentials()
        headers = {
            "Accept": "application/json",
            "Content-Type": content_type,
            "User-Agent": "benchmatrix",
            **credentials,
        }
        url = f"{client.configuration.host}{path}"
        if query:
            url += f"?{urlencode(query)}"
        self.num_requests[f"{verb} {_name_kind(path)}"] += 1
        try:
            response: urllib3.BaseHTTPResponse = client.rest_client.pool_manager.request(
                _METHODS[verb],
                url,
                body=body,
                headers=headers,
                timeout=urllib3.Timeout(connect=CONNECT_SECONDS, read=read_seconds),
                retries=False,
                preload_content=preload,
            )
            refusal = _read_refusal(verb, response) if response.status >= 400 else None
        except (urllib3.exceptions.HTTPError, OSError) as error:
            raise _unreachable(error) from error
        if refusal is not None:
            refusal.client = client
            raise refusal
        self.is_known = True
        return response

    def _read_credentials(self) -> dict[str, str]:
        """Return the header that the client logs in with; whether there is a new token is looked up once a second."""
        client, now = self._client, time.monotonic()
        known, until, headers = self._credentials
        if known is not client or now > until:
            try:
                headers = read_authorization(client, self.context)
            except ValueError as error:
                refusal = ApiError(UNAUTHORIZED, "Unauthorized", str(error))
                refusal.client = client
                raise refusal from None
            self._credentials = (client, now + CREDENTIALS_SECONDS, headers)
        return headers


class BusyError(ApiError):
    """The server asks for a pause, or is not there. `retry_after` in seconds, None where it says nothing."""

    def __init__(self, status: int, reason: str, message: str, retry_after: float | None) -> None:
        super().__init__(status, reason, message)
        self.retry_after = retry_after


@dataclass(kw_only=True)
class Retries:
    """Something that is tried again after what passes: with waits that double, until patience is over."""

    connection: Connection
    patience_seconds: float
    _since: float | None = None
    _wait_seconds: float = MIN_WAIT_SECONDS

    def reset(self) -> None:
        """It went well: the next trouble is a new one."""
        self._since, self._wait_seconds = None, MIN_WAIT_SECONDS

    def wait(self, error: ApiError, stop: threading.Event | None = None) -> None:
        """Wait before the next try, until `stop` at most; raise `error` where there shall be none."""
        now = time.monotonic()
        self._since = now if self._since is None else self._since
        if now - self._since + self._wait_seconds > self._find_patience(error):
            raise error
        if now - self._since >= TELL_SECONDS:
            self.connection.warn(f"{error.message}; it is tried again")
        if not isinstance(error, BusyError):
            self.connection.log_in_anew(error.client)
        asked = min(error.retry_after or 0.0, MAX_PAUSE_SECONDS) if isinstance(error, BusyError) else 0.0
        (stop or threading.Event()).wait(max(asked, self._wait_seconds * random.uniform(0.5, 1.0)))
        self._wait_seconds = min(2 * self._wait_seconds, MAX_WAIT_SECONDS)

    def _find_patience(self, error: ApiError) -> float:
        if isinstance(error, BusyError):
            is_first = error.reason == UNREACHABLE and not self.connection.is_known
            return min(FIRST_PATIENCE_SECONDS, self.patience_seconds) if is_first else self.patience_seconds
        is_unknown = error.status == UNAUTHORIZED or (error.status == FORBIDDEN and ANONYMOUS in error.message)
        return min(LOGIN_PATIENCE_SECONDS, self.patience_seconds) if is_unknown and self.connection.is_known else 0.0


def find_context(on: str) -> str:
    """Return the context that `--on` names; `current` is the kubeconfig's own. UserError where there is none."""
    if on == IN_CLUSTER:
        return on
    try:
        contexts, active = kubernetes.config.list_kube_config_contexts(find_kubeconfig())  # type: ignore[no-untyped-call]
    except (ConfigException, OSError, yaml.YAMLError) as error:
        hint = "set KUBECONFIG, or leave --on out to run here"
        raise UserError(f"--on {on}: {describe_fault(error)}; {hint}") from None
    names = [str(context["name"]) for context in contexts]
    if on == CURRENT:
        return str(active["name"])
    if on not in names:
        raise UserError(f"--on {on}: no such context; yours are {', '.join(names)}, and `local` is this machine")
    return on


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


def _unreachable(error: Exception) -> ApiError:
    words = re.sub(r"^.*\(host=[^)]*\): |<[^>]* object at 0x[0-9a-f]+>(: )?", "", describe_fault(error))
    return BusyError(503, UNREACHABLE, f"the API server does not answer: {words}", None)


def _read_refusal(verb: str, response: urllib3.BaseHTTPResponse) -> ApiError:
    """Return the error that a Status object in the body tells, or the bare code."""
    text = response.data.decode(errors="replace")
    try:
        status = json.loads(text)
        reason, message = str(status.get("reason", "")), str(status.get("message", ""))
    except (ValueError, AttributeError):
        reason, message = str(response.reason), text.strip()
    # A create that conflicts met another request inside the server, at a quota for one.
    if response.status in PASSING or (verb == "create" and reason == "Conflict"):
        return BusyError(response.status, reason, message, _read_retry_after(response.headers.get("Retry-After")))
    return ApiError(response.status, reason, message or f"HTTP {response.status}")


def _read_retry_after(text: str | None) -> float | None:
    return float(text) if text and text.isdigit() else None


def _iterate_lines(response: urllib3.BaseHTTPResponse) -> Iterator[bytes]:
    rest = b""
    for chunk in response.stream(65_536, decode_content=True):
        *lines, rest = (rest + chunk).split(b"\n")
        yield from lines
    if rest:
        yield rest


def _name_kind(path: str) -> str:
    """Return the kind that a path is about: `/apis/batch/v1/namespaces/x/jobs/y` is about jobs."""
    parts = path.strip("/").split("/")
    after = parts.index("namespaces") + 2 if "namespaces" in parts else (2 if parts[0] == "api" else 3)
    named = parts[after : after + 3]
    if len(named) == 3:
        return f"{named[0]}/{named[2]}"
    return named[0] if named else parts[-1]
