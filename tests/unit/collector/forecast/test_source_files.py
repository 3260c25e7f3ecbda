"""A server of a table that answers with garbage, half an answer, or one without end: one message, within a limit."""

import pytest

from bench.errors import UserError
from collector.forecast import source_files
from collector.forecast.source_files import read_source
from raw_server import answer_once, serve

OK = b"HTTP/1.1 200 OK\r\n"


@pytest.mark.parametrize(
    "answer",
    [
        b"",
        b"SSH-2.0-OpenSSH_9.2\x1b[31m\r\n",
        b"HTTP/1.1 200 OK\r\n" + b"a: b\r\n" * 200 + b"\r\n",
        b"HTTP/1.1 200 " + b"x" * 70_000 + b"\r\n\r\n",
        OK + b"Content-Length: 1000\r\n\r\ndate,value\n2020,1\n",
        OK + b"Transfer-Encoding: chunked\r\n\r\nzz\r\ndate,value\r\n",
        OK + b"Transfer-Encoding: chunked\r\n\r\nff\r\ndate,value\r\n",
    ],
    ids=["nothing", "another protocol", "200 headers", "a long line", "cut", "no chunk", "a cut chunk"],
)
def test_what_is_no_whole_answer_is_one_message(answer: bytes) -> None:
    with serve(answer_once(answer)) as url, pytest.raises(UserError) as caught:
        read_source(f"{url}/table.csv")
    message = str(caught.value)
    assert message.startswith(f"{url}/table.csv: cannot be downloaded (")
    assert len(message) < 300
    assert "\x1b" not in message


@pytest.mark.parametrize("beginning", [b"", OK, OK + b"\r\n"], ids=["before a header", "of headers", "of a body"])
def test_a_server_that_drips_holds_nobody_for_ever(beginning: bytes, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(source_files, "LIMIT_SECONDS", 0.5)
    with serve(answer_once(beginning, b"x")) as url, pytest.raises(UserError, match=r"it has not ended after 0\.5 s"):
        read_source(f"{url}/table.csv")


@pytest.mark.parametrize(
    ("place", "reason"),
    [
        ("ftp://127.0.0.1:1/table.csv", "it redirects to what is neither https nor what was asked for"),
        ("file:///etc/passwd", "HTTP status 302"),
    ],
)
def test_a_redirect_to_what_is_no_web_server_is_not_followed(place: str, reason: str) -> None:
    answer = f"HTTP/1.1 302 Found\r\nLocation: {place}\r\nContent-Length: 0\r\n\r\n".encode()
    with serve(answer_once(answer)) as url, pytest.raises(UserError, match=reason):
        read_source(f"{url}/table.csv")
