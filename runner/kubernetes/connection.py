"""Requests to one API server: over one pool of connections, repeated, rate-limited and counted.

Bodies are JSON bytes both ways: of the official client only the login is used, its typed objects are not needed.
"""

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

import kubernetes.client
import urllib3

from bench.bounded_work import WorkTooSlowError, run_bounded
from bench.errors import UserError
from bench.redaction import remember_secret
from runner.kubernetes.answer_bodies import AnswerLines, read_body
from runner.kubernetes.answers import AnswerError, ApiObject, decode_answer, decode_object, read_items
from runner.kubernetes.api_errors import ApiError, BusyError, make_unreachable, read_refusal
from runner.kubernetes.login import hash_authorities, log_in, read_authorization
from runner.kubernetes.rate_limiter import RateLimiter
from runner.kubernetes.request_retries import FIRST_PATIENCE_SECONDS, PATIENCE_SECONDS, Retries

NUM_CONNECTIONS = 32
POOL_SIZE = NUM_CONNECTIONS + 4
"""Watches hold connections of their own."""
CREDENTIALS_SECONDS = 1.0
"""How long a header with credentials is reused before the client is asked for it again."""
CONNECT_SECONDS = 5.0
READ_SECONDS = 60.0
"""How long an ordinary request may be without a byte of its answer; a watch has its own limit."""
ANSWER_SECONDS = 300.0
"""The limit of a whole answer, and of the head of a watch's."""
FIRST_ANSWER_SECONDS = 60.0
"""The same for a server that never answered."""
PAGE_SIZE = 500
"""Objects of one answer: `kubectl` asks for as many (--chunk-size). A finished Job takes up to 15 KB."""
MAX_PAGES = 2000
"""A million objects, ten times as many Jobs as a cluster has been seen with: a list of more does not end."""
MAX_LISTS = 10
"""How often a list is begun again whose first pages became too old: after five minutes, when etcd is compacted.
https://kubernetes.io/docs/reference/using-api/api-concepts/#retrieving-large-results-sets-in-chunks"""

T = TypeVar("T")


@dataclass(kw_only=True)
class Connection:
    """Requests to one API server; to be used from many threads."""

    context: str
    """Name of the kubeconfig's context, or `bench.cluster_contexts.IN_CLUSTER`."""
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
        """What the API server's certificate is checked by, as the record of a run has it; see `hash_authorities`."""
        return hash_authorities(self._client)

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

    def get_object(self, path: str, *, patience_seconds: float | None = None) -> ApiObject:
        """Ask the API server for one object and return it.

        Raises ApiError as `request` does, and where the answer is no object.
        """
        return decode_object_at(path, self.request("get", path, patience_seconds=patience_seconds))

    def list_items(self, path: str, **query: str) -> list[dict[str, Any]]:
        """Return the objects of a kind as they are; ApiError as `request`. For many objects, see `read_items`."""
        return self.read_items(path, _keep, query)

    def read_items(
        self,
        path: str,
        read: Callable[[ApiObject], T],
        query: Mapping[str, str] | None = None,
        *,
        patience_seconds: float | None = None,
    ) -> list[T]:
        """Return what `read` takes of each object of a kind, page by page, so that the rest is not kept.

        ApiError as `request`, and where an object is not as Kubernetes describes it.
        """
        for _ in range(MAX_LISTS):
            try:
                return [item for page in self._read_pages(path, read, query or {}, patience_seconds) for item in page]
            except ApiError as error:
                if error.status != HTTPStatus.GONE:  # else the first pages are too old for the rest: from the start
                    raise
                expired = error
        raise expired

    def _read_pages(
        self, path: str, read: Callable[[ApiObject], T], query: Mapping[str, str], patience_seconds: float | None
    ) -> Iterator[list[T]]:
        """Yield what is read of each page; ApiError with status 410 if the server no longer knows the first page's."""
        token = ""
        for _ in range(MAX_PAGES):
            following = {"continue": token} if token else {}
            asked = {"limit": str(PAGE_SIZE), **query, **following}
            page = decode_answer(self.request("list", path, query=asked, patience_seconds=patience_seconds))
            yield read_items(page, read, name_kind(path))
            token = str(page["metadata"].get("continue", ""))
            if not token:
                return
        raise make_endless(path)

    @contextmanager
    def stream(self, path: str, query: Mapping[str, str], *, idle_seconds: float) -> Iterator[AnswerLines]:
        """Open a watch or a log and hand out its lines. One that is silent for `idle_seconds` ends with ApiError."""
        response = self._limit_answer(partial(self._open, "watch", path, query, None, "application/json", idle_seconds))
        try:
            yield AnswerLines(response)
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

    def _send(
        self, verb: str, path: str, query: Mapping[str, str] | None, body: bytes | None, content_type: str
    ) -> bytes:
        def ask() -> bytes:
            return read_body(self._open(verb, path, query, body, content_type, READ_SECONDS))

        with self.rate_limiter.hold():
            data = self._limit_answer(ask)
        if _METHODS[verb] != "GET" and not data.lstrip().startswith(b"{"):  # a page of whoever answers in its place
            raise AnswerError(f"its answer to a request to {verb} {name_kind(path)} is no JSON object")
        self.rate_limiter.speed_up()
        return data

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
        url = f"{client.configuration.host}{path}"
        if query:
            url += f"?{urlencode(query)}"
        request = f"{verb} {name_kind(path)}"
        self.num_requests[request] += 1
        try:
            response: urllib3.BaseHTTPResponse = client.rest_client.pool_manager.request(
                _METHODS[verb],
                url,
                body=body,
                headers=headers | credentials,
                timeout=urllib3.Timeout(connect=CONNECT_SECONDS, read=self._limit_read(read_seconds)),
                retries=False,
                preload_content=False,
            )
            refusal = read_refusal(verb, response, read_body(response)) if response.status >= 400 else None
        except (urllib3.exceptions.HTTPError, OSError) as error:
            proxy = client.rest_client.pool_manager.proxy  # the configuration may have been read anew by now
            raise make_unreachable(error, is_known=self.is_known, proxy=proxy) from error
        if 300 <= response.status < 400:  # elsewhere nobody gets the credentials, and nothing was done here
            response.close()
            raise AnswerError(f"it sends requests elsewhere (HTTP {response.status})")
        if refusal is not None:
            refusal.client, refusal.was_allowed = client, request in self._allowed
            raise refusal
        self.is_known = True
        self._allowed.add(request)
        return response

    def _limit_answer(self, ask: Callable[[], T]) -> T:
        """Return what `ask` returns; BusyError where an answer does not end, though each part of it comes in time."""
        try:
            return run_bounded(ask, limit_seconds=ANSWER_SECONDS if self.is_known else FIRST_ANSWER_SECONDS)
        except WorkTooSlowError as late:
            raise make_unreachable(late) from None

    def _limit_read(self, seconds: float) -> float:
        """Return the seconds to wait for an answer, fewer as long as the server has never given one."""
        return seconds if self.is_known else min(seconds, FIRST_PATIENCE_SECONDS)

    def _read_credentials(self) -> dict[str, str]:
        """Return the header that the client logs in with; whether there is a new token is looked up once a second."""
        client, now = self._client, time.monotonic()
        known, until, headers = self._credentials
        if known is not client or now > until:
            try:
                headers = read_authorization(client, self.context)
            except ValueError as error:
                refusal = ApiError(HTTPStatus.UNAUTHORIZED, "Unauthorized", str(error))
                refusal.client = client
                raise refusal from None
            for value in headers.values():
                remember_secret(value.rpartition(" ")[2])  # `Bearer TOKEN`
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


def decode_object_at(path: str, body: bytes) -> ApiObject:
    """Return the object in an answer to a request for `path`; AnswerError where it is none of the kind there."""
    return decode_object(body, name_kind(path), f"its answer to {path}")


def _keep(item: ApiObject) -> dict[str, Any]:
    return item


def make_endless(path: str) -> AnswerError:
    """Return the error for a list of more than MAX_PAGES pages."""
    return AnswerError(f"its list of {name_kind(path)} does not end after {MAX_PAGES * PAGE_SIZE:,} objects")


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
