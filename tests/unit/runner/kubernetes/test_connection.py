"""Requests to the API server: repeated, and their errors in words."""

import json
import threading
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import cast

import pytest
import urllib3

from bench.errors import TransientError, UserError
from bench.redaction import remember_secret
from cluster_objects import load_object
from kubeconfigs import write_kubeconfig
from lying_server import Answer, LyingServer
from runner.kubernetes import connection as connection_module
from runner.kubernetes.connection import (
    FIRST_PATIENCE_SECONDS,
    LOGIN_PATIENCE_SECONDS,
    MAX_WAIT_SECONDS,
    MIN_WAIT_SECONDS,
    UNREACHABLE,
    AnswerError,
    ApiError,
    BusyError,
    Connection,
    Retries,
    read_refusal,
    read_watch_error,
    to_user_error,
)
from runner.kubernetes.objects import read_job_status

JOBS = "/apis/batch/v1/namespaces/x/jobs"


@pytest.fixture
def connection(server: LyingServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Connection:
    write_kubeconfig(tmp_path / "kubeconfig", server.url)
    monkeypatch.setenv("KUBECONFIG", str(tmp_path / "kubeconfig"))
    return Connection(context="tests", patience_seconds=0.0)


@pytest.mark.parametrize(
    ("status", "body", "words"),
    [
        # The other server would get the credentials; and a Job would count as deleted that is there.
        (307, b"{}", r"it sends requests elsewhere \(HTTP 307\)"),
        (200, b"<html>\nLog in</html>", "it is no JSON but begins with '<html> Log in</html>'; see"),
    ],
)
def test_an_answer_that_is_none_of_kubernetes_is_one_message(
    status: int, body: bytes, words: str, server: LyingServer, connection: Connection
) -> None:
    server.answers = [(status, {"Location": f"{server.url}/elsewhere"}, body)]
    with pytest.raises(AnswerError, match=f"none of Kubernetes: {words}") as caught:
        connection.read_items(JOBS, read_job_status)
    assert server.paths == [f"{JOBS}?limit=500"]
    message = str(to_user_error(caught.value, "lab"))
    assert message.startswith("--on lab: the API server's answer is none of Kubernetes: ")
    assert "doctor" not in message


def test_a_list_is_read_page_by_page_and_begun_again_where_its_version_is_too_old(
    server: LyingServer, connection: Connection
) -> None:
    def make_page(name: str, token: str) -> Answer:
        job = load_object("job-running")
        job["metadata"]["name"] = name
        return 200, {}, json.dumps({"metadata": {"continue": token}, "items": [job]}).encode()

    empty: Answer = (200, {}, b'{"metadata": {}, "items": null}')  # a slice of Go without elements
    server.answers = [make_page("a", "t"), (410, {}, b"{}"), make_page("b", "t"), make_page("c", "t"), empty]
    read = partial(connection.read_items, JOBS, read_job_status)
    assert [job.name for job in read()] == ["b", "c"]
    assert server.paths[3] == f"{JOBS}?limit=500&continue=t"


class Clock(threading.Event):
    """Stands for time.monotonic, and for the event that ends a wait: waiting moves the clock on."""

    def __init__(self) -> None:
        super().__init__()
        self.now = 1000.0
        self.waits: list[float] = []

    def monotonic(self) -> float:
        return self.now

    def wait(self, timeout: float | None = None) -> bool:
        assert timeout is not None
        self.waits.append(timeout)
        self.now += timeout
        return False


class Server:
    """What the retries know of a connection."""

    def __init__(self, *, is_known: bool) -> None:
        self.is_known = is_known
        self.warnings: list[str] = []
        self.num_logins = 0

    def warn(self, message: str, dedup_key: str, /) -> None:
        self.warnings.append(message)

    def log_in_again(self, refused: object) -> None:
        self.num_logins += 1


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    clock = Clock()
    monkeypatch.setattr(connection_module, "time", clock)
    return clock


def wait_until_raised(error: ApiError, clock: Clock, *, is_known: bool = True, patience: float = 900.0) -> Server:
    """Repeat a request that always fails with this error, until the retries raise it."""
    server = Server(is_known=is_known)
    retries = Retries(cast(Connection, server), patience)

    def repeat() -> None:
        while True:
            retries.wait(error, clock)

    with pytest.raises(ApiError) as caught:
        repeat()
    assert caught.value is error
    return server


def make_busy(status: int = 503, retry_after: float | None = None) -> BusyError:
    return BusyError(status, "", "slow down", retry_after)


def test_the_whole_patience_is_used_with_waits_that_double(clock: Clock) -> None:
    server = wait_until_raised(make_busy(), clock, patience=900.0)

    assert sum(clock.waits) == pytest.approx(900.0)
    for number, seconds in enumerate(clock.waits[:-1]):
        longest = min(MIN_WAIT_SECONDS * 2**number, MAX_WAIT_SECONDS)
        assert longest / 2 <= seconds <= longest
    assert set(server.warnings) == {"slow down; it is tried again, for 900 s in all"}
    assert server.num_logins == 0

    clock.waits.clear()
    wait_until_raised(make_busy(429, retry_after=7.0), clock, patience=10.0)
    assert clock.waits[0] == 7.0


def make_forbidden(message: str, *, was_allowed: bool) -> ApiError:
    error = ApiError(403, "Forbidden", message)
    error.was_allowed = was_allowed
    return error


NO_RIGHT = 'jobs.batch is forbidden: User "x" cannot list resource "jobs" in API group'


@pytest.mark.parametrize(
    ("error", "is_known", "seconds"),
    [
        (BusyError(503, UNREACHABLE, "connection refused"), False, FIRST_PATIENCE_SECONDS),
        (ApiError(401, "Unauthorized", "Unauthorized"), True, LOGIN_PATIENCE_SECONDS),
        (ApiError(401, "Unauthorized", "Unauthorized"), False, 0.0),
        (make_forbidden(NO_RIGHT, was_allowed=True), True, LOGIN_PATIENCE_SECONDS),  # a server that starts
        (make_forbidden(NO_RIGHT, was_allowed=False), True, 0.0),
        (make_forbidden('jobs "y" is forbidden: exceeded quota: small', was_allowed=True), True, 0.0),
        (ApiError(404, "NotFound", "not found"), True, 0.0),
    ],
)
def test_each_error_has_its_own_patience(error: ApiError, is_known: bool, seconds: float, clock: Clock) -> None:
    server = wait_until_raised(error, clock, is_known=is_known)

    assert sum(clock.waits) == pytest.approx(seconds)
    assert server.num_logins == (0 if isinstance(error, BusyError) else len(clock.waits))


def test_a_try_that_went_well_starts_anew(clock: Clock) -> None:
    server = Server(is_known=True)
    retries = Retries(cast(Connection, server), 900.0)
    for _ in range(10):
        retries.wait(make_busy(), clock)
    retries.reset()
    retries.wait(make_busy(), clock)
    assert clock.waits[-1] <= MIN_WAIT_SECONDS < clock.waits[-2]


@pytest.mark.parametrize(
    ("verb", "status", "reason", "message", "is_busy"),
    [
        ("list", 429, "TooManyRequests", "slow down", True),
        ("list", 500, "InternalError", "etcdserver: request timed out", True),
        ("create", 409, "Conflict", "the object has been modified", True),
        ("create", 409, "AlreadyExists", "jobs.batch x already exists", False),
        ("patch", 409, "Conflict", "the object has been modified", False),
        ("create", 403, "Forbidden", 'jobs "x" is forbidden: not yet ready to handle request', True),
        ("create", 403, "Forbidden", 'jobs "x" is forbidden: exceeded quota: small', False),
        ("get", 404, "NotFound", "not found", False),
    ],
)
def test_what_passes_is_told_from_a_refusal(verb: str, status: int, reason: str, message: str, is_busy: bool) -> None:
    body = json.dumps({"kind": "Status", "reason": reason, "message": message}).encode()

    error = read_refusal(verb, urllib3.HTTPResponse(status=status, headers={"Retry-After": "3"}), body)

    assert (error.status, error.reason, error.message) == (status, reason, message)
    assert isinstance(error, BusyError) == is_busy
    if isinstance(error, BusyError):
        assert error.retry_after == 3.0


def test_a_server_that_stays_away_is_another_exit_code_than_a_refusal() -> None:
    away, refused = (to_user_error(error, "lab") for error in (make_busy(), ApiError(403, "Forbidden", "no")))
    assert (type(away), str(away)[:58]) == (
        TransientError,
        "--on lab: the API server answers 503: slow down; the Jobs ",
    )
    assert (type(refused), str(refused)[:14]) == (UserError, "--on lab: no; ")


def refuse(status: int, body: object) -> ApiError:
    text = body if isinstance(body, str) else json.dumps(body)
    response = urllib3.HTTPResponse(status=status, reason="Refused", preload_content=False)
    return read_refusal("get", response, text.encode())


TOKEN = "token-of-a-service-account"


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: refuse(401, {"message": f"no: Bearer {TOKEN}"}), "no: Bearer (hidden)"),
        (lambda: refuse(403, {"message": "no\n\nerror: all is well\r\n"}), "no error: all is well"),
        (lambda: refuse(422, {"message": "x" * 20_000}), "x" * 3999 + "…"),
        (
            lambda: refuse(502, "<html>\n<body>Bad\tgateway" + "x" * 10_000),
            "<html> <body>Bad gateway" + "x" * 275 + "…",
        ),
        (lambda: read_watch_error({"code": 500, "message": f"no\nerror: {TOKEN}"}), "no error: (hidden)"),
        (lambda: read_watch_error({"code": 403, "message": "no"}), "no"),
    ],
)
def test_what_a_server_says_is_one_line_of_some_length_without_the_token(
    make: Callable[[], ApiError], message: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("bench.redaction._remembered", set())
    remember_secret(TOKEN)
    assert make().message == message


def test_refused_credentials_name_the_user(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write_kubeconfig(tmp_path / "kubeconfig", context="c")
    monkeypatch.setenv("KUBECONFIG", str(tmp_path / "kubeconfig"))
    message = str(to_user_error(refuse(401, {"message": "Unauthorized"}), "c"))
    assert f"which may have expired: {tmp_path}/kubeconfig: user `me`; log in again" in message
