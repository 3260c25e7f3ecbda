"""A kubeconfig's context in, requests to its API server out: one pool of connections, patient, polite and counted.

Bodies are JSON bytes both ways: the official client knows how to log in, its typed objects are not needed.
"""

import json
import os
import random
import threading
import time
from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import urlencode

import kubernetes.client
import kubernetes.config
import urllib3
from kubernetes.config.config_exception import ConfigException

from bench.errors import UserError
from runner.cluster.pace import Pace

IN_CLUSTER = "in-cluster"
CURRENT = "current"
NUM_CONNECTIONS = 32
CONNECT_SECONDS = 5.0
READ_SECONDS = 60.0
"""Of an ordinary request; a watch has its own."""
PATIENCE_SECONDS = 900.0
"""How long requests are repeated to an API server that does not answer."""
MIN_WAIT_SECONDS, MAX_WAIT_SECONDS = 0.5, 30.0
TOO_MANY_REQUESTS, UNAUTHORIZED = 429, 401
# https://kubernetes.io/docs/reference/using-api/api-concepts/: what a request may be repeated for
PASSING = frozenset({TOO_MANY_REQUESTS, 500, 502, 503, 504})


class ApiError(Exception):
    """The API server refused a request. `status` is the HTTP code, `reason` and `message` its own words."""

    def __init__(self, status: int, reason: str, message: str) -> None:
        super().__init__(message)
        self.status = status
        self.reason = reason
        self.message = message


@dataclass(kw_only=True)
class Connection:
    """Requests to one API server; to be used from many threads."""

    context: str
    """Name of the kubeconfig's context, or IN_CLUSTER."""
    patience_seconds: float = PATIENCE_SECONDS
    num_requests: Counter[str] = field(default_factory=Counter)
    """Requests that were sent, by verb and kind, `create jobs` for one; repeated ones are counted again."""
    pace: Pace = field(default_factory=lambda: Pace(NUM_CONNECTIONS))
    _client: kubernetes.client.ApiClient = field(init=False, repr=False)
    _lock: threading.Lock = field(default_factory=threading.Lock, repr=False)

    def __post_init__(self) -> None:
        self._client = _log_in(self.context)

    def request(
        self,
        verb: str,
        path: str,
        *,
        query: Mapping[str, str] | None = None,
        body: bytes | None = None,
        content_type: str = "application/json",
        patience_seconds: float | None = None,
    ) -> bytes:
        """Send a request and return the body of the answer.

        `verb`: a word of RBAC, `create` for one. Repeated while the server is away, busy or ailing, for as long as the
        patience lasts; ApiError where it refuses, or when that is over.
        """
        patience = self.patience_seconds if patience_seconds is None else patience_seconds
        deadline = time.monotonic() + patience
        wait, has_logged_in_anew = MIN_WAIT_SECONDS, False
        while True:
            try:
                return self._send(verb, path, query, body, content_type)
            except ApiError as error:
                if error.status == UNAUTHORIZED and not has_logged_in_anew:
                    has_logged_in_anew = True
                    self.log_in_anew()
                    continue
                if not isinstance(error, BusyError) or time.monotonic() + wait > deadline:
                    raise
                self.pace.slow_down(error.retry_after)
            time.sleep(wait * random.uniform(0.5, 1.0))
            wait = min(2 * wait, MAX_WAIT_SECONDS)

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

    def log_in_anew(self) -> None:
        """Read credentials again: tokens expire in the course of a long run."""
        with self._lock:
            self._client = _log_in(self.context)

    def _send(
        self, verb: str, path: str, query: Mapping[str, str] | None, body: bytes | None, content_type: str
    ) -> bytes:
        with self.pace.hold():
            response = self._open(verb, path, query, body, content_type, READ_SECONDS, preload=True)
        self.pace.speed_up()
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
        client = self._client
        headers = {"Accept": "application/json", "Content-Type": content_type, "User-Agent": "benchmatrix"}
        queries: list[tuple[str, str]] = []
        client.update_params_for_auth(headers, queries, ["BearerToken"], path, verb, None)
        text = urlencode([*(query or {}).items(), *queries])
        url = f"{client.configuration.host}{path}{'?' if text else ''}{text}"
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
        except (urllib3.exceptions.HTTPError, OSError) as error:
            raise _unreachable(error) from error
        if response.status >= 400:
            raise _read_refusal(response)
        return response


class BusyError(ApiError):
    """The server asks for a pause, or is not there. `retry_after` in seconds, None where it says nothing."""

    def __init__(self, status: int, reason: str, message: str, retry_after: float | None) -> None:
        super().__init__(status, reason, message)
        self.retry_after = retry_after


def find_context(on: str) -> str:
    """Return the context that `--on` names; `current` is the kubeconfig's own. UserError where there is none."""
    if on == IN_CLUSTER:
        return on
    try:
        contexts, active = kubernetes.config.list_kube_config_contexts(_find_kubeconfig())  # type: ignore[no-untyped-call]
    except (ConfigException, OSError) as error:
        raise UserError(f"--on {on}: {_describe(error)}; set KUBECONFIG, or leave --on out to run here") from error
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


def _log_in(context: str) -> kubernetes.client.ApiClient:
    configuration = kubernetes.client.Configuration()
    try:
        if context == IN_CLUSTER:
            kubernetes.config.load_incluster_config(configuration)  # type: ignore[no-untyped-call]
        else:
            kubernetes.config.load_kube_config(  # type: ignore[no-untyped-call]
                config_file=_find_kubeconfig(), context=context, client_configuration=configuration
            )
    except (ConfigException, OSError) as error:
        raise UserError(f"--on {context}: {_describe(error)}; `kubectl config get-contexts` lists yours") from error
    configuration.connection_pool_maxsize = NUM_CONNECTIONS + 4  # the watches keep theirs
    configuration.retries = False
    return kubernetes.client.ApiClient(configuration)


def _find_kubeconfig() -> str:
    """Return what the client would take by default; it looks only once, when it is imported."""
    return os.environ.get("KUBECONFIG", "~/.kube/config")


def _describe(error: Exception) -> str:
    return " ".join(str(error).split()) or type(error).__name__


def _unreachable(error: Exception) -> ApiError:
    return BusyError(503, "Unreachable", f"the API server does not answer: {_describe(error)}", None)


def _read_refusal(response: urllib3.BaseHTTPResponse) -> ApiError:
    """Return the error that a Status object in the body tells, or the bare code."""
    text = response.data.decode(errors="replace")
    try:
        status = json.loads(text)
        reason, message = str(status.get("reason", "")), str(status.get("message", ""))
    except (ValueError, AttributeError):
        reason, message = str(response.reason), text.strip()
    if response.status in PASSING:
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
