"""A request to an API server has an end, whatever the server does."""

import gzip
from collections.abc import Iterator
from functools import partial
from pathlib import Path

import pytest

from kubeconfigs import write_kubeconfig
from raw_server import Answer, answer_once, continue_for_long, drip_body, drip_headers, serve
from runner.kubernetes import connection
from runner.kubernetes.api_errors import ApiError
from runner.kubernetes.connection import Connection


def connect(url: str, folder: Path, monkeypatch: pytest.MonkeyPatch) -> Connection:
    write_kubeconfig(folder / "kubeconfig", url)
    monkeypatch.setenv("KUBECONFIG", str(folder / "kubeconfig"))
    return Connection(context="tests", patience_seconds=0.0)


def watch(asked: Connection) -> list[bytes]:
    with asked.stream("/api/v1/pods", {}, idle_seconds=60.0) as lines:
        return list(lines)


@pytest.mark.parametrize(
    ("answer", "is_watch"),
    [
        (continue_for_long, False),
        (drip_headers, False),
        (drip_body, False),
        (continue_for_long, True),
        (drip_headers, True),
    ],
)
def test_an_answer_that_does_not_end_is_given_up(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, answer: Answer, is_watch: bool
) -> None:
    monkeypatch.setattr(connection, "FIRST_ANSWER_SECONDS", 0.5)
    with serve(answer) as url:
        asked = connect(url, tmp_path, monkeypatch)
        ask = partial(watch, asked) if is_watch else partial(asked.request, "get", "/version")
        with pytest.raises(ApiError, match="the API server does not answer: not done after 0.5 s"):
            ask()


@pytest.mark.parametrize("status", [301, 302, 303, 304, 307, 308])
@pytest.mark.parametrize("verb", ["get", "create", "patch", "delete", "watch"])
def test_a_redirect_is_neither_followed_nor_taken_for_done(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, verb: str, status: int
) -> None:
    """The other server would get the credentials; and a Job would count as deleted that is there."""
    other = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{}"
    asked_elsewhere = []

    def answer_elsewhere() -> Iterator[bytes]:
        asked_elsewhere.append(verb)
        yield other

    with serve(answer_elsewhere) as elsewhere:
        moved = f"HTTP/1.1 {status} Moved\r\nLocation: {elsewhere}/x\r\nContent-Length: 2\r\n\r\n{{}}"
        with serve(answer_once(moved.encode())) as url:
            asked = connect(url, tmp_path, monkeypatch)
            ask = partial(watch, asked) if verb == "watch" else partial(asked.request, verb, "/api/v1/pods")
            with pytest.raises(ApiError, match=rf"none of Kubernetes: it sends requests elsewhere \(HTTP {status}\)"):
                ask()
    assert asked_elsewhere == []


@pytest.mark.parametrize("body", [b"<html>Sign in</html>", b"", b"[]", b"null"])
@pytest.mark.parametrize("verb", ["create", "patch", "delete", "deletecollection"])
def test_a_page_in_place_of_an_answer_does_not_say_that_something_was_done(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, verb: str, body: bytes
) -> None:
    """`cancel` would say that it deleted Jobs which go on: nobody reads the answer to a deletion any further."""
    answer = b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n%b" % (len(body), body)
    with serve(answer_once(answer)) as url:
        asked = connect(url, tmp_path, monkeypatch)
        with pytest.raises(ApiError, match=f"its answer to a request to {verb} pods is no JSON object"):
            asked.request(verb, "/api/v1/namespaces/x/pods")


@pytest.mark.parametrize("status", [200, 403])
@pytest.mark.parametrize("is_watch", [False, True])
def test_a_packed_answer_is_refused_before_it_is_unpacked(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, status: int, is_watch: bool
) -> None:
    """Requests ask for none. A few hundred KB would become gigabytes."""
    body = gzip.compress(b"{}")
    head = f"HTTP/1.1 {status} X\r\nContent-Encoding: gzip\r\nContent-Length: {len(body)}\r\n\r\n"
    with serve(answer_once(head.encode() + body)) as url:
        asked = connect(url, tmp_path, monkeypatch)
        ask = partial(watch, asked) if is_watch else partial(asked.request, "get", "/version")
        with pytest.raises(ApiError, match=r"none of Kubernetes: it is packed \(Content-Encoding: 'gzip'\)"):
            ask()
