"""Requests of other threads have ended when the work that sent them has, but for a Ctrl-C."""

import threading
import time
from collections.abc import Iterator
from functools import partial
from pathlib import Path

import pytest

from kubeconfigs import write_kubeconfig
from lying_server import Answer, LyingServer
from runner.kubernetes.connection import Connection
from runner.kubernetes.dispatcher import Dispatcher

HANG_GUARD_SECONDS = 600.0
ANSWER_SECONDS = 0.5
"""How long an answer takes after the error, or the end, that is to wait for it."""


class SlowServer(LyingServer):
    """Answers a request some time after the other thread's work has failed or ended."""

    def __init__(self) -> None:
        super().__init__()
        self.is_asked, self.may_answer = threading.Event(), threading.Event()
        self.num_open = 0

    def answer(self, verb: str, path: str, body: bytes) -> Answer:
        self.num_open += 1
        self.is_asked.set()
        self.may_answer.wait(HANG_GUARD_SECONDS)
        time.sleep(ANSWER_SECONDS)
        self.num_open -= 1
        return 200, {}, b"{}"


@pytest.fixture
def server() -> Iterator[SlowServer]:
    started = SlowServer()
    yield started
    started.may_answer.set()
    started.stop()


@pytest.fixture
def connection(server: SlowServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Connection:
    write_kubeconfig(tmp_path / "kubeconfig", server.url)
    monkeypatch.setenv("KUBECONFIG", str(tmp_path / "kubeconfig"))
    return Connection(context="tests", patience_seconds=0.0)


@pytest.fixture
def others() -> frozenset[threading.Thread]:
    """The threads that tests before this one have left behind."""
    return frozenset(threading.enumerate())


def list_alive(others: frozenset[threading.Thread], *names: str) -> list[str]:
    """Return the names of the request threads of a test that have not ended."""
    return [thread.name for thread in {*threading.enumerate()} - others if thread.name.startswith(names)]


def ask(connection: Connection) -> bytes:
    return connection.request("get", "/version")


def fail(server: SlowServer) -> None:
    """Fail while the other thread's request is under way."""
    server.is_asked.wait(HANG_GUARD_SECONDS)
    server.may_answer.set()
    raise ValueError("the other thread's")


def test_a_dispatcher_that_ends_with_an_error_waits_for_the_requests_under_way(
    server: SlowServer, connection: Connection, others: frozenset[threading.Thread]
) -> None:
    dispatcher = Dispatcher(warn_user=lambda message: None, patience_seconds=0.0)

    with pytest.raises(ValueError, match="the other thread's"), dispatcher:  # noqa: PT012  (its end is under test)
        dispatcher.request(partial(ask, connection), lambda answer: None)
        dispatcher.submit(partial(fail, server), lambda nothing: None)
        while True:
            dispatcher.run_next()

    assert server.num_open == 0
    assert list_alive(others, "submit-", "record-") == []


def test_a_dispatcher_that_ends_well_waits_for_the_requests_under_way(
    server: SlowServer, connection: Connection, others: frozenset[threading.Thread]
) -> None:
    with Dispatcher(warn_user=lambda message: None, patience_seconds=0.0) as dispatcher:
        dispatcher.request(partial(ask, connection), lambda answer: None)
        server.is_asked.wait(HANG_GUARD_SECONDS)
        server.may_answer.set()

    assert server.num_open == 0
    assert list_alive(others, "submit-", "record-") == []


def test_at_ctrl_c_a_request_under_way_is_not_waited_for(
    server: SlowServer, connection: Connection, others: frozenset[threading.Thread]
) -> None:
    dispatcher = Dispatcher(warn_user=lambda message: None, patience_seconds=0.0)

    with pytest.raises(KeyboardInterrupt), dispatcher:  # noqa: PT012  (its end is under test)
        dispatcher.request(partial(ask, connection), lambda answer: None)
        server.is_asked.wait(HANG_GUARD_SECONDS)
        raise KeyboardInterrupt

    assert server.num_open == 1
    assert len(list_alive(others, "record-")) >= 1
