"""Requests to one API server: over one pool of connections, repeated and counted.

Bodies are JSON bytes both ways: of the official client only the login and the pool are used. Its typed objects take 76
KB for a Job, and 100,000 of them are followed.
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
from functools import partial
from http import HTTPStatus
from typing import Any, TypeVar
from urllib.parse import urlencode

import urllib3

from bench.errors import TransientError, UserError
from bench.redaction import hide_secrets
from bench.store.store import submit
from runner.kubernetes.login import Login, describe_error, log_in, name_user

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
MAX_PAUSE_SECONDS = 30.0
"""The longest Retry-After that is obeyed."""
MAX_MESSAGE_CHARACTERS, MAX_PAGE_CHARACTERS = 4000, 300
"""Of what a server says itself (admission webhooks explain at length), and of a page of a proxy."""

JsonObject = dict[str, Any]
T = TypeVar("T")


# Errors: as exceptions, and as messages to the user.

UNREACHABLE, INVALID_ANSWER = "Unreachable", "InvalidAnswer"
"""Reasons of ApiError that are this module's own."""
ANONYMOUS = 'User "system:anonymous"'
"""The user name that Kubernetes reports for requests without valid credentials."""
REFUSED_CREDENTIALS = "the API server does not accept the credentials (401 Unauthorized), which may have expired"
NOT_READY = "not yet ready to handle request"
"""What admission plugins answer with 403 while the API server starts:
https://github.com/kubernetes/kubernetes/blob/master/staging/src/k8s.io/apiserver/pkg/admission/plugin/namespace/lifecycle/admission.go
"""
NO_RIGHT = re.compile(r"User .* cannot \w+ resource ")
"""What an authorizer answers with 403: also RBAC's for a while, to users who have the right, when the server starts."""
TRANSIENT = (429, 500, 502, 503, 504)
"""https://kubernetes.io/docs/reference/using-api/api-concepts/: what a request may be repeated for."""


class ApiError(Exception):
    """The API server refused a request. `status` is the HTTP code; `reason` and `message` are the server's."""

    def __init__(self, status: int, reason: str, message: str) -> None:
        super().__init__(message)
        self.status = status
        self.reason = reason
        self.message = message
        self.login: Login | None = None
        """That whose credentials were sent."""
        self.was_allowed = False
        """Whether a request of the same verb and kind was allowed before."""


class BusyError(ApiError):
    """The server asks for a pause or does not answer. `retry_after` in seconds; None if the server names none."""

    def __init__(self, status: int, reason: str, message: str, retry_after: float | None = None) -> None:
        super().__init__(status, reason, message)
        self.retry_after = retry_after


class AnswerError(ApiError):
    """The API server, or what stands in its place, sent an answer that is none of Kubernetes."""

    def __init__(self, found: str) -> None:
        super().__init__(HTTPStatus.OK, INVALID_ANSWER, f"the API server's answer is none of Kubernetes: {found}")


def read_refusal(verb: str, response: urllib3.BaseHTTPResponse, body: bytes) -> ApiError:
    try:
        status = json.loads(body)
        reason, message = str(status.get("reason") or ""), _write_line(status.get("message"), MAX_MESSAGE_CHARACTERS)
    except (ValueError, AttributeError):  # of a proxy: perhaps a page of HTML
        reason, message = str(response.reason), _write_line(body.decode(errors="replace"), MAX_PAGE_CHARACTERS)
    is_starting = response.status == HTTPStatus.FORBIDDEN and NOT_READY in message
    # A create that conflicts met another request inside the server, for example at a quota.
    if response.status in TRANSIENT or is_starting or (verb == "create" and reason == "Conflict"):
        pause = response.headers.get("Retry-After", "")
        return BusyError(response.status, reason, message, float(pause) if pause.isdecimal() else None)
    return ApiError(response.status, reason, message or f"HTTP {response.status}")


def read_watch_error(status: JsonObject) -> ApiError:
    code = status.get("code", HTTPStatus.INTERNAL_SERVER_ERROR)
    message = status.get("message") or f"the API server ended a watch with an error and no message (code {code})"
    kind = BusyError if code >= HTTPStatus.INTERNAL_SERVER_ERROR else ApiError
    return kind(code, str(status.get("reason") or ""), _write_line(message, MAX_MESSAGE_CHARACTERS))


def _write_line(text: object, max_characters: int) -> str:
    """Return what a server says without credentials and on one line, so that no part looks like this tool's message."""
    whole = " ".join(str(text or "").encode(errors="replace").decode().split())
    line = hide_secrets(whole[: 2 * MAX_MESSAGE_CHARACTERS])
    return line if len(line) <= max_characters else f"{line[: max_characters - 1]}…"


def make_unreachable(error: Exception, proxy: object = None) -> BusyError:
    """Return the error for a server that does not answer. `proxy`: the URL of one that was asked, without password."""
    via = f", asked by the proxy {proxy} (proxy-url of the kubeconfig, or of the environment)," if proxy else ""
    message = re.sub(r"^.*\(host=[^)]*\): |<[^>]* object at 0x[0-9a-f]+>(: )?", "", describe_error(error))
    text = f"the API server{via} does not answer: {message}"
    return BusyError(HTTPStatus.SERVICE_UNAVAILABLE, UNREACHABLE, text)


def to_user_error(error: ApiError, context: str) -> UserError:
    if isinstance(error, BusyError):
        hint = "the Jobs go on; give the same command again when it is back"
        who = "" if error.reason == UNREACHABLE else f"the API server answers {int(error.status)}: "
        return TransientError(f"--on {context}: {who}{error.message}; {hint}")
    if is_unauthorized(error):
        hint = "Jobs that were submitted go on, and the same command resumes the run"
        remedy = f"log in again, or write new ones there; {hint}"
        return UserError(f"--on {context}: {REFUSED_CREDENTIALS}: {name_user(context)}; {remedy}")
    hint = "`benchmatrix doctor` says what is missing"
    if error.reason == INVALID_ANSWER:
        hint = "another program may answer in the server's place, or an extension of it is broken"
    return UserError(f"--on {context}: {error.message}; {hint}")


def is_unauthorized(error: ApiError) -> bool:
    """Return whether the API server refused the credentials without a word more; a login of ours says what failed."""
    return error.status == HTTPStatus.UNAUTHORIZED and error.message in ("Unauthorized", "HTTP 401")


@dataclass(kw_only=True)
class Connection:
    """Requests to one API server; to be used from many threads."""

    context: str
    """Name of the kubeconfig's context, or `runner.profiles.IN_CLUSTER`."""
    patience_seconds: float = PATIENCE_SECONDS
    num_requests: Counter[str] = field(default_factory=Counter)
    """Requests that were sent, by verb and kind, such as `create jobs`; repeated ones are counted again."""
    warn: Callable[[str, str], None] = field(default=lambda message, dedup_key: None, repr=False)
    """Called, from any thread, with the reason why requests have been repeated for some time, and its dedup key."""
    login: Login = field(init=False, repr=False)
    _allowed: set[str] = field(default_factory=set, repr=False)
    """The keys of num_requests that the server has answered without an error."""
    _lock: threading.Lock = field(default_factory=threading.Lock, repr=False)

    def __post_init__(self) -> None:
        self.login = log_in(self.context)

    @property
    def is_known(self) -> bool:
        """Return whether the API server has answered a request, so it has accepted the user."""
        return bool(self._allowed)

    @contextmanager
    def explain_refusals(self) -> Iterator[None]:
        try:
            yield
        except ApiError as error:
            raise to_user_error(error, self.context) from error

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
        if verb == "create":  # else a field that Kubernetes does not know would be left out without a word
            query = {"fieldValidation": "Strict", **(query or {})}
        while True:
            try:
                return self._open(verb, path, query, body, content_type, READ_SECONDS).data
            except ApiError as error:
                retries.wait(error, stop)
                if stop is not None and stop.is_set():
                    raise

    def get_object(self, path: str, *, patience_seconds: float | None = None) -> JsonObject:
        return decode_answer(self.request("get", path, patience_seconds=patience_seconds))

    def find_object(self, path: str) -> JsonObject | None:
        try:
            return self.get_object(path)
        except ApiError as error:
            if error.status == HTTPStatus.NOT_FOUND:
                return None
            raise

    def list_items(self, path: str, **query: str) -> list[JsonObject]:
        return self.read_items(path, lambda item: item, query)

    def read_items(
        self,
        path: str,
        read: Callable[[JsonObject], T],
        query: Mapping[str, str] | None = None,
        *,
        patience_seconds: float | None = None,
    ) -> list[T]:
        return self.read_list(path, read, query or {}, patience_seconds=patience_seconds)[1]

    def read_list(
        self,
        path: str,
        read: Callable[[JsonObject], T],
        query: Mapping[str, str],
        *,
        patience_seconds: float | None = None,
        stop: threading.Event | None = None,
    ) -> tuple[str, list[T]]:
        """Return the version of a list, and what `read` takes of each object, so that the rest is not kept.

        It comes in pages: while one is read, the server is at work on the next. Raise ApiError as `request` does, and
        where an answer is not as Kubernetes describes it.
        """
        fetch = partial(self.request, "list", path, patience_seconds=patience_seconds, stop=stop)
        for _ in range(MAX_LISTS):
            items: list[T] = []
            asked, token = {"limit": str(PAGE_SIZE), **query}, ""
            try:
                body = fetch(query=asked)
                while True:
                    token = _find_continue(body)
                    following = submit(partial(fetch, query=asked | {"continue": token})) if token else None
                    page = decode_answer(body)
                    items += map(read, page.get("items") or ())
                    metadata = page.get("metadata") or {}
                    if following is None and (token := metadata.get("continue", "")):  # it stood behind the items
                        following = submit(partial(fetch, query=asked | {"continue": token}))
                    if following is None:
                        return metadata.get("resourceVersion", ""), items
                    body = following.result()
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

    def log_in_again(self, refused: Login | None) -> None:
        """Read the credentials anew, as tokens expire: once for all threads whose login, `refused`, was refused."""
        with self._lock:
            if self.login is refused:
                with suppress(UserError):  # a kubeconfig that is just being written: the old login is tried again
                    self.login = log_in(self.context)

    def _open(
        self,
        verb: str,
        path: str,
        query: Mapping[str, str] | None,
        body: bytes | None,
        content_type: str,
        read_seconds: float,
    ) -> urllib3.BaseHTTPResponse:
        login = self.login
        headers = {"Accept": "application/json", "Content-Type": content_type, "User-Agent": "benchmatrix"}
        request = f"{verb} {name_kind(path)}"
        self.num_requests[request] += 1
        read_limit = read_seconds if self.is_known else min(read_seconds, FIRST_PATIENCE_SECONDS)
        try:
            response: urllib3.BaseHTTPResponse = login.pool.request(
                _METHODS.get(verb, "GET"),
                f"{login.server}{path}{f'?{urlencode(query)}' if query else ''}",
                body=body,
                headers=headers | login.headers,
                timeout=urllib3.Timeout(connect=CONNECT_SECONDS, read=read_limit),
                retries=False,
                preload_content=verb != "watch",
            )
            refused = response.data if response.status >= 300 else b""
        except (urllib3.exceptions.HTTPError, OSError) as error:
            raise make_unreachable(error, login.pool.proxy) from error
        if 300 <= response.status < 400:  # elsewhere nobody gets the credentials, and nothing was done here
            raise AnswerError(f"it sends requests elsewhere (HTTP {response.status})")
        if response.status >= 400:
            refusal = read_refusal(verb, response, refused)
            refusal.login, refusal.was_allowed = login, request in self._allowed
            raise refusal
        self._allowed.add(request)
        return response


# The verbs of RBAC: https://kubernetes.io/docs/reference/access-authn-authz/authorization/#determine-the-request-verb
_METHODS = {"create": "POST", "patch": "PATCH", "delete": "DELETE", "deletecollection": "DELETE"}
"""Of the verbs that are no GET."""


@dataclass
class Retries:
    """The waits between the tries of one request: exponential backoff with jitter, until patience is over."""

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
            self.connection.log_in_again(error.login)
        asked = min(error.retry_after or 0.0, MAX_PAUSE_SECONDS) if isinstance(error, BusyError) else 0.0
        seconds = max(asked, self._wait_seconds * random.uniform(0.5, 1.0))
        (stop or threading.Event()).wait(min(seconds, left))  # the last try is made when patience ends
        self._wait_seconds = min(2 * self._wait_seconds, MAX_WAIT_SECONDS)

    def _find_patience(self, error: ApiError) -> float:
        if isinstance(error, BusyError):
            is_first = error.reason == UNREACHABLE and not self.connection.is_known
            return min(FIRST_PATIENCE_SECONDS, self.patience_seconds) if is_first else self.patience_seconds
        lost_right = error.was_allowed and NO_RIGHT.search(error.message) is not None
        is_forbidden = error.status == HTTPStatus.FORBIDDEN and (ANONYMOUS in error.message or lost_right)
        is_unknown = error.status == HTTPStatus.UNAUTHORIZED or is_forbidden
        return min(LOGIN_PATIENCE_SECONDS, self.patience_seconds) if is_unknown and self.connection.is_known else 0.0


def delete_exactly(connection: Connection, path: str, uid: str | None) -> None:
    """Delete the object with this uid (None: any), and what it owns; do nothing if it is gone or has another."""
    body: JsonObject = {"propagationPolicy": "Background"} | ({"preconditions": {"uid": uid}} if uid else {})
    try:
        connection.request("delete", path, body=json.dumps(body).encode())
    except ApiError as error:
        if error.status not in (HTTPStatus.NOT_FOUND, HTTPStatus.CONFLICT):
            raise


def decode_answer(body: bytes) -> JsonObject:
    try:
        found: JsonObject = json.loads(body)
    except ValueError:
        begin = _write_line(body[:60].decode(errors="replace"), 60)
        words = f"it is no JSON but begins with {begin!r}; see the address of the server, and what stands before it"
        raise AnswerError(words) from None
    return found


def name_kind(path: str) -> str:
    """Return the kind that a path is about: `/apis/batch/v1/namespaces/x/jobs/y` is about jobs."""
    found = re.match(r"/apis?/(?:[^/]+/)?v\d\w*(?:/namespaces/[^/]+)?/([^/]+)(?:/[^/]+(/[^/]+))?", path)
    return "".join(filter(None, found.groups())) if found else path.rpartition("/")[2]


def _find_continue(body: bytes) -> str:
    """Return the token of the next page, which stands before the items but in lists of custom resources."""
    match = re.search(rb'"continue":"([^"]*)"', body.partition(b'"items"')[0])
    return match[1].decode() if match else ""
