"""Requests to an API server, or to what stands in its place: nothing counts as done that was not."""

import json
from collections.abc import Iterator
from functools import partial
from pathlib import Path

import pytest

from cluster_objects import load_object
from kubeconfigs import write_kubeconfig
from lying_server import Answer, LyingServer
from runner.kubernetes.connection import AnswerError, ApiError, Connection, to_user_error
from runner.kubernetes.objects import read_job_status

JOBS = "/apis/batch/v1/namespaces/x/jobs"


class Scripted(LyingServer):
    """Gives the answers of a list, one after the other, and the last one again and again."""

    def __init__(self) -> None:
        super().__init__()
        self.answers: list[Answer] = []
        self.paths: list[str] = []

    def answer(self, verb: str, path: str, body: bytes) -> Answer:
        self.paths.append(path)
        return self.answers.pop(0) if len(self.answers) > 1 else self.answers[0]


@pytest.fixture
def server() -> Iterator[Scripted]:
    started = Scripted()
    yield started
    started.stop()


@pytest.fixture
def connection(server: Scripted, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Connection:
    write_kubeconfig(tmp_path / "kubeconfig", server.url)
    monkeypatch.setenv("KUBECONFIG", str(tmp_path / "kubeconfig"))
    return Connection(context="tests", patience_seconds=0.0)


@pytest.mark.parametrize("verb", ["get", "create", "delete", "watch"])
def test_a_redirect_is_neither_followed_nor_taken_for_done(verb: str, server: Scripted, connection: Connection) -> None:
    """The other server would get the credentials; and a Job would count as deleted that is there."""
    server.answers = [(307, {"Location": f"{server.url}/elsewhere"}, b"{}")]

    def ask() -> None:
        if verb == "watch":
            with connection.stream(JOBS, {}, idle_seconds=60.0):
                pass
        else:
            connection.request(verb, JOBS)

    with pytest.raises(ApiError, match=r"none of Kubernetes: it sends requests elsewhere \(HTTP 307\)"):
        ask()
    assert server.paths == [JOBS]


@pytest.mark.parametrize("verb", ["create", "patch", "delete", "deletecollection"])
def test_a_page_in_place_of_an_answer_does_not_say_that_something_was_done(
    verb: str, server: Scripted, connection: Connection
) -> None:
    """`cancel` would say that it deleted Jobs which go on: nobody reads the answer to a deletion any further."""
    server.answers = [(200, {}, b"<html>Sign in</html>")]
    with pytest.raises(ApiError, match=f"its answer to a request to {verb} jobs is no JSON object"):
        connection.request(verb, JOBS)


@pytest.mark.parametrize(
    ("body", "words"),
    [
        (b"<!DOCTYPE html>\n<html>Log in</html>", "it is an HTML page; see the address of the server"),
        (b"\xff\xfe", "it is no JSON; see"),
        (b"[]", "it is no JSON object"),
        (b'{"items": [{"metadata": {"name": "a"}}]}', "one of the jobs, a: KeyError: "),
        (b'{"items": [7]}', "one of the jobs, without a name: TypeError: "),
    ],
)
def test_an_answer_that_is_none_of_kubernetes_is_one_message(
    body: bytes, words: str, server: Scripted, connection: Connection
) -> None:
    server.answers = [(200, {}, body)]
    with pytest.raises(AnswerError, match=f"none of Kubernetes: {words}") as caught:
        connection.read_items(JOBS, read_job_status)
    message = str(to_user_error(caught.value, "lab"))
    assert message.startswith("--on lab: the API server's answer is none of Kubernetes: ")
    assert "doctor" not in message


def test_a_list_is_read_page_by_page_and_begun_again_where_its_version_is_too_old(
    server: Scripted, connection: Connection
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
