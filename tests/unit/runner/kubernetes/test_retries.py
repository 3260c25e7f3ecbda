"""Which errors of the API server are waited out, for how long, and which are refusals."""

import json
import socket
import ssl
import threading
from http import HTTPStatus
from typing import cast

import pytest
import urllib3

from bench.errors import TransientError, UserError
from runner.kubernetes import connection
from runner.kubernetes.connection import (
    FIRST_PATIENCE_SECONDS,
    LOGIN_PATIENCE_SECONDS,
    MAX_WAIT_SECONDS,
    MIN_WAIT_SECONDS,
    UNREACHABLE,
    WARN_SECONDS,
    ApiError,
    BusyError,
    Connection,
    Retries,
    make_unreachable,
    read_refusal,
    to_user_error,
)


def make_ssl_error(reason: str) -> ssl.SSLError:
    error = ssl.SSLError(1, f"[SSL: {reason}]")
    error.reason = reason
    return error


def make_certificate_error(message: str) -> ssl.SSLCertVerificationError:
    error = ssl.SSLCertVerificationError(1, message)
    error.verify_message = message
    return error


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
        self.dedup_keys: set[str] = set()
        self.num_logins = 0

    def warn(self, message: str, dedup_key: str, /) -> None:
        self.warnings.append(message)
        self.dedup_keys.add(dedup_key)

    def log_in_again(self, refused: object) -> None:
        self.num_logins += 1


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    clock = Clock()
    monkeypatch.setattr(connection, "time", clock)
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


def test_an_outage_is_one_cause_however_the_server_fails_to_answer(clock: Clock) -> None:
    server = Server(is_known=True)
    retries = Retries(cast(Connection, server), 900.0)
    while clock.now < 1000.0 + 10 * WARN_SECONDS:
        retries.wait(make_unreachable(OSError(f"refused for the {len(clock.waits)}th time")), clock)

    assert len(set(server.warnings)) > 1
    assert len(server.dedup_keys) == 1


def test_a_pause_that_the_server_asks_for_is_kept(clock: Clock) -> None:
    wait_until_raised(make_busy(429, retry_after=7.0), clock, patience=10.0)

    assert clock.waits[0] == 7.0


def test_a_server_that_never_answered_is_given_up_sooner(clock: Clock) -> None:
    error = BusyError(503, UNREACHABLE, "connection refused", None)

    wait_until_raised(error, clock, is_known=False)

    assert sum(clock.waits) == pytest.approx(FIRST_PATIENCE_SECONDS)


def test_a_known_user_who_is_refused_logs_in_again_for_a_while(clock: Clock) -> None:
    server = wait_until_raised(ApiError(401, "Unauthorized", "Unauthorized"), clock)

    assert sum(clock.waits) == pytest.approx(LOGIN_PATIENCE_SECONDS)
    assert server.num_logins == len(clock.waits)


@pytest.mark.parametrize(
    ("message", "was_allowed", "patience"),
    [
        ('jobs.batch is forbidden: User "x" cannot list resource "jobs" in API group', True, LOGIN_PATIENCE_SECONDS),
        ('jobs.batch is forbidden: User "x" cannot list resource "jobs" in API group', False, 0.0),
        ('jobs "y" is forbidden: exceeded quota: small', True, 0.0),
    ],
)
def test_a_right_that_a_starting_server_does_not_know_yet_is_waited_for(
    message: str, was_allowed: bool, patience: float, clock: Clock
) -> None:
    error = ApiError(403, "Forbidden", message)
    error.was_allowed = was_allowed

    wait_until_raised(error, clock)

    assert sum(clock.waits) == pytest.approx(patience)


@pytest.mark.parametrize(
    ("error", "is_known"),
    [
        (ApiError(401, "Unauthorized", "Unauthorized"), False),
        (ApiError(403, "Forbidden", 'jobs is forbidden: User "x" cannot list'), True),
        (ApiError(404, "NotFound", "not found"), True),
    ],
)
def test_a_refusal_is_raised_at_once(error: ApiError, is_known: bool, clock: Clock) -> None:
    server = wait_until_raised(error, clock, is_known=is_known)

    assert (clock.waits, server.warnings, server.num_logins) == ([], [], 0)


def test_a_try_that_went_well_starts_anew(clock: Clock) -> None:
    server = Server(is_known=True)
    retries = Retries(cast(Connection, server), 900.0)
    while clock.now < 1000.0 + 2 * WARN_SECONDS:
        retries.wait(make_busy(), clock)
    num_warnings = len(server.warnings)

    retries.reset()
    retries.wait(make_busy(), clock)

    assert clock.waits[-1] <= MIN_WAIT_SECONDS
    assert len(server.warnings) == num_warnings


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


def test_an_answer_that_is_no_status_is_told_by_its_code() -> None:
    error = read_refusal("get", urllib3.HTTPResponse(status=418), b"")

    assert (error.status, error.message) == (HTTPStatus.IM_A_TEAPOT, "HTTP 418")


def test_a_page_of_a_proxy_is_told_by_its_start_on_one_line() -> None:
    error = read_refusal("get", urllib3.HTTPResponse(status=502), b"<html>\n<body>Bad\tgateway" + b"x" * 10_000)

    assert error.message.startswith("<html> <body>Bad gatewayxxx")
    assert (len(error.message), error.message[-1]) == (300, "…")


@pytest.mark.parametrize(
    ("error", "kind"), [(make_busy(), TransientError), (ApiError(403, "Forbidden", "no"), UserError)]
)
def test_a_server_that_stays_away_is_another_exit_code_than_a_refusal(error: ApiError, kind: type[UserError]) -> None:
    found = to_user_error(error, "lab")

    assert type(found) is kind
    who = "" if kind is UserError else f"the API server answers {error.status}: "
    assert str(found).startswith(f"--on lab: {who}{error.message}; ")


@pytest.mark.parametrize(
    ("cause", "words"),
    [
        (socket.gaierror(socket.EAI_NONAME, "Name or service not known"), "there is no host of the API server's name"),
        (make_ssl_error("WRONG_VERSION_NUMBER"), "does not speak TLS"),
        (make_certificate_error("self-signed certificate"), "is not accepted: self-signed certificate; look"),
        (make_certificate_error("it is not valid for '127.0.0.2'."), "it is not valid for '127.0.0.2'; look"),
        *[
            (make_certificate_error(reason), f"is not accepted: {reason}, if this machine's clock is right; look")
            for reason in ("certificate has expired", "certificate is not yet valid")
        ],
    ],
)
def test_a_fault_of_the_kubeconfig_is_told_at_once(cause: Exception, words: str, clock: Clock) -> None:
    wrapped = urllib3.exceptions.SSLError(cause)  # urllib3 keeps the cause as an argument

    error = make_unreachable(wrapped, is_known=False)
    message = to_user_error(error, "lab")
    wait_until_raised(error, clock, is_known=False)

    assert words in str(message)
    assert not isinstance(message, TransientError)
    assert clock.waits == []
    assert isinstance(make_unreachable(wrapped), BusyError)  # it has answered before: it may again
    assert isinstance(make_unreachable(OSError("refused"), is_known=False), BusyError)
