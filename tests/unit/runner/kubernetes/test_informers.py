"""Informers against servers that answer wrongly: what will not get better ends with one message, and not too soon."""

import json
import threading
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from cluster_objects import load_object
from kubeconfigs import write_kubeconfig
from lying_server import Answer, LyingServer
from runner.kubernetes import connection as connection_module
from runner.kubernetes import informers
from runner.kubernetes.connection import BusyError, Connection, Retries
from runner.kubernetes.informers import Informer
from runner.kubernetes.objects import JobStatus, read_job_status

PATH = "/apis/batch/v1/namespaces/lab/jobs"


class WatchServer(LyingServer):
    """Lists one Job of version 1, and answers each watch as the script says; the last answer is repeated."""

    script: Sequence[bytes | int] = ()
    num_lists = 0
    num_watches = 0

    def answer(self, verb: str, path: str, body: bytes) -> Answer:
        if "watch=1" not in path:
            self.num_lists += 1
            page = {"metadata": {"resourceVersion": "1"}, "items": [load_object("job-running")]}
            return 200, {}, json.dumps(page).encode()
        said = self.script[min(self.num_watches, len(self.script) - 1)]
        self.num_watches += 1
        return (said, {}, b"{}") if isinstance(said, int) else (200, {}, said)


@pytest.fixture
def server(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[WatchServer]:
    started: WatchServer = getattr(request, "param", WatchServer)()
    write_kubeconfig(tmp_path / "kubeconfig", started.url, context="lab")
    monkeypatch.setenv("KUBECONFIG", str(tmp_path / "kubeconfig"))
    monkeypatch.setattr(connection_module, "MIN_WAIT_SECONDS", 0.0)
    monkeypatch.setattr(informers, "Retries", partial(Retries, _wait_seconds=0.0))
    yield started
    started.stop()


class SortedServer(WatchServer):
    """Lists two pages of one Job each, the keys of each page in the order of the alphabet: metadata behind items."""

    def answer(self, verb: str, path: str, body: bytes) -> Answer:
        if "watch=1" in path:
            return super().answer(verb, path, body)
        self.num_lists += 1
        metadata = {"resourceVersion": "1"} | ({} if "continue=next" in path else {"continue": "next"})
        return 200, {}, json.dumps({"items": [load_object("job-running")], "metadata": metadata}).encode()


def follow(server: WatchServer, *script: bytes | int, patience: float = 0.0, most: int = 100) -> list[Any]:
    """Return what an informer notifies of until it fails, or has told of `most` things."""
    server.script = script
    told: list[Any] = []

    def note(call: Callable[[], None]) -> None:
        try:
            call()
        except BusyError as error:
            told.append(error)
        if len(told) >= most:
            informer.stop()

    informer = Informer(
        connection=Connection(context="lab", patience_seconds=patience),
        path=PATH,
        labels="x",
        read=read_job_status,
        post=note,
        on_list=told.append,
        on_change=lambda job, *, is_deleted: told.append(job),
    )
    thread = threading.Thread(target=informer.run, daemon=True)
    thread.start()
    thread.join(300)
    assert not thread.is_alive(), "the informer does not end"
    return told


def make_event(version: str, kind: str = "MODIFIED") -> bytes:
    job = load_object("job-running")
    job["metadata"]["resourceVersion"] = version
    return json.dumps({"type": kind, "object": job}).encode() + b"\n"


def test_a_watch_that_is_cut_off_in_a_line_goes_on_with_the_next(server: WatchServer) -> None:
    told = follow(server, make_event("2") + make_event("3")[:50], make_event("3"), patience=900.0, most=3)
    assert [type(one) for one in told] == [list, JobStatus, JobStatus]
    assert (server.num_lists, server.num_watches) == (1, 2)


@pytest.mark.parametrize(
    ("answer", "words"),
    [
        (b"", "ended a watch at once"),
        (b"<html>Sign in</html>\n", "a watch of jobs was cut off"),
        (make_event("1"), "ended a watch at once"),  # the same again and again
        (410, "knows no list long enough to watch from it"),
        (b'{"type": "ERROR", "object": {"code": 410, "message": "too old"}}\n', "knows no list long enough"),
    ],
    ids=["nothing", "a page", "one event", "gone", "gone in the watch"],
)
def test_a_watch_that_brings_nothing_new_is_not_tried_beyond_patience(
    server: WatchServer, answer: bytes | int, words: str
) -> None:
    failed = follow(server, answer)[-1]
    assert isinstance(failed, BusyError)
    assert words in str(failed)
    assert (server.num_lists, server.num_watches) == (1, 1)


def test_a_version_that_is_too_old_after_news_is_listed_anew(server: WatchServer) -> None:
    told = follow(server, make_event("2"), 410, make_event("3"), patience=900.0, most=4)
    assert [type(one) for one in told] == [list, JobStatus, list, JobStatus]
    assert server.num_lists == 2


@pytest.mark.parametrize("server", [SortedServer], indirect=True)
def test_the_next_page_is_found_wherever_the_list_names_it(server: WatchServer) -> None:
    listed = follow(server, make_event("2"), most=1)[0]
    assert (len(listed), server.num_lists) == (2, 2)
