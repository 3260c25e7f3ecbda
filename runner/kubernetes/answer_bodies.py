"""Reads the bytes of an API server's answers: whole ones, and those of watches line by line, up to a size."""

from collections.abc import Iterator
from contextlib import suppress

import urllib3

from runner.kubernetes.answers import MAX_ANSWER_BYTES, AnswerError
from runner.kubernetes.api_errors import make_unreachable

MAX_LINE_BYTES = 16 * 2**20
"""Of a watch: one object, of which etcd takes 1.5 MB (--max-request-bytes)."""


def read_body(response: urllib3.BaseHTTPResponse) -> bytes:
    """Return the body of an answer; BusyError where it breaks off, AnswerError where it is too large or packed."""
    _refuse_packed(response)
    try:
        data: bytes = response.read(MAX_ANSWER_BYTES + 1, decode_content=False)
    except (urllib3.exceptions.HTTPError, OSError) as error:
        response.close()
        raise make_unreachable(error) from error
    if len(data) > MAX_ANSWER_BYTES:
        response.close()
        raise AnswerError(f"it is larger than {MAX_ANSWER_BYTES:,} bytes")
    response.release_conn()
    return data


def _refuse_packed(response: urllib3.BaseHTTPResponse) -> None:
    """Raise AnswerError for an answer that is packed: requests ask for none, and 300 KB can become gigabytes."""
    encoding = response.headers.get("Content-Encoding", "identity").strip().lower()
    if encoding not in ("", "identity"):
        response.close()
        raise AnswerError(f"it is packed (Content-Encoding: {encoding[:50]!r}), which was not asked for")


class AnswerLines:
    """The lines of an answer as they come, which another thread than their reader may end."""

    def __init__(self, response: urllib3.BaseHTTPResponse) -> None:
        self._response = response

    def __iter__(self) -> Iterator[bytes]:
        return iterate_lines(self._response)

    def end(self) -> None:
        """Have the reader, who may wait for a line, find the end of the answer, or an error that says so.

        Nothing happens where the answer is over, and with urllib3 before 2.3, which cannot do that.
        """
        with suppress(AttributeError, ValueError, RuntimeError, OSError):
            self._response.shutdown()


def iterate_lines(response: urllib3.BaseHTTPResponse) -> Iterator[bytes]:
    """Yield the lines of an answer as they come; AnswerError for one that is too long, or where they are packed."""
    _refuse_packed(response)
    parts: list[bytes] = []  # of a line whose end has not come: joined once, however many chunks it is long
    num_bytes = 0
    for chunk in response.stream(65_536, decode_content=False):
        *ended, rest = chunk.split(b"\n")
        if ended:
            yield b"".join([*parts, ended[0]])
            yield from ended[1:]
            parts, num_bytes = [], 0
        parts.append(rest)
        num_bytes += len(rest)
        if num_bytes > MAX_LINE_BYTES:
            raise AnswerError(f"a line of a watch is longer than {MAX_LINE_BYTES:,} bytes")
    if num_bytes:
        yield b"".join(parts)
