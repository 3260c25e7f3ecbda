"""Stands in front of an S3 server and injects faults into its answers: a test says which request gets which.

Requests are passed on as they come, with the client's `Host`, so that their signatures stay valid.
"""

import http.client
import threading
from collections import Counter
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Literal

Fault = Literal["cut", "cut-before", "delayed", "doubled", "lost-answer", "overtaken", "swapped", "shortened", "denied"]
"""What happens to a request. cut: the answer ends in the middle; cut-before: the connection ends, nothing is done;
delayed: the answer comes late; doubled: the request is carried out twice, as by a network that repeats it; lost-answer:
it is carried out and answered with 500; overtaken: it waits until another one was carried out; swapped: the body of the
answer to another GET of an object; shortened: half of the body, as if that were all; denied: the server refuses this
object (403), as where a policy of the bucket says so."""
TIMEOUT_SECONDS = 300.0
DELAY_SECONDS = 0.2
"""Longer than any request takes here, so that others overtake it, and far shorter than the client's patience."""
HOP_HEADERS = {"connection", "content-length", "date", "server", "transfer-encoding"}


@dataclass(frozen=True)
class Answer:
    """What the server answered."""

    status: int
    headers: tuple[tuple[str, str], ...]
    body: bytes


@dataclass(kw_only=True)
class FaultyS3Server:
    """Stands in front of the server at `port` of the loopback device."""

    port: int
    choose_fault: Callable[[str, str], Fault | None] = lambda method, path: None
    """Gets method and path of each request, from one thread at a time."""
    faults: Counter[Fault] = field(default_factory=Counter)
    """How often each was injected."""
    _last_object: dict[str, bytes] = field(default_factory=dict)
    _lock: threading.Lock = field(default_factory=threading.Lock)
    _carried_out: threading.Condition = field(default_factory=threading.Condition)
    _num_carried_out: int = 0

    def start(self) -> str:
        """Begin to answer, and return the URL."""
        faulty = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def handle_any(self) -> None:
                with suppress(OSError, http.client.HTTPException):  # a client that was killed
                    faulty.answer(self)

            do_GET = do_PUT = do_POST = do_HEAD = do_DELETE = handle_any  # noqa: N815  (http.server looks for these)

            def log_message(self, *_: object) -> None:
                pass

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._server.daemon_threads = True
        threading.Thread(target=self._server.serve_forever, daemon=True).start()
        return f"http://127.0.0.1:{self._server.server_address[1]}"

    def stop(self) -> None:
        self._server.shutdown()
        self._server.server_close()

    def answer(self, handler: BaseHTTPRequestHandler) -> None:
        body = handler.rfile.read(int(handler.headers.get("Content-Length", 0)))
        with self._lock:
            fault = self.choose_fault(handler.command, handler.path)
            fault = fault if fault is None or self._can_happen(fault, handler) else None
            if fault is not None:
                self.faults[fault] += 1
        if fault == "cut-before":
            handler.close_connection = True
            return
        if fault in ("overtaken", "delayed"):
            self._wait(DELAY_SECONDS, for_another=fault == "overtaken")
        answer = self._pass_on(handler, body)
        if fault == "doubled":
            self._pass_on(handler, body)
        _send(handler, self._change(answer, fault, handler), is_cut=fault == "cut")

    def _can_happen(self, fault: Fault, handler: BaseHTTPRequestHandler) -> bool:
        """Return whether a fault means anything for a request: only answers with an object can be another's."""
        if fault in ("swapped", "shortened"):
            is_object = handler.command == "GET" and "?" not in handler.path
            return is_object and (fault == "shortened" or any(path != handler.path for path in self._last_object))
        return fault != "cut" or handler.command in ("GET", "PUT", "POST")

    def _wait(self, seconds: float, *, for_another: bool) -> None:
        with self._carried_out:
            before = self._num_carried_out
            self._carried_out.wait_for(lambda: for_another and self._num_carried_out > before, seconds)

    def _pass_on(self, handler: BaseHTTPRequestHandler, body: bytes) -> Answer:
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=TIMEOUT_SECONDS)
        try:
            connection.putrequest(handler.command, handler.path, skip_host=True, skip_accept_encoding=True)
            for name, value in handler.headers.items():
                connection.putheader(name, value)
            connection.endheaders(body)
            response = connection.getresponse()
            answer = Answer(response.status, tuple(response.getheaders()), response.read())
        finally:
            connection.close()
        with self._carried_out:
            self._num_carried_out += 1
            self._carried_out.notify_all()
        return answer

    def _change(self, answer: Answer, fault: Fault | None, handler: BaseHTTPRequestHandler) -> Answer:
        if fault == "lost-answer":
            return Answer(500, (), b"<Error><Code>InternalError</Code><Message>lost</Message></Error>")
        if fault == "denied":
            return Answer(403, (), b"<Error><Code>AccessDenied</Code><Message>denied</Message></Error>")
        if handler.command != "GET" or "?" in handler.path or answer.status != 200:
            return answer
        with self._lock:
            others = [body for path, body in self._last_object.items() if path != handler.path]
            self._last_object = {handler.path: answer.body, **dict(list(self._last_object.items())[:1])}
        if fault == "swapped" and others:
            return Answer(answer.status, answer.headers, others[0])
        if fault == "shortened":
            return Answer(answer.status, answer.headers, shorten(answer.body))
        return answer


def shorten(body: bytes) -> bytes:
    """Return the first half of a body."""
    return body[: len(body) // 2]


def _send(handler: BaseHTTPRequestHandler, answer: Answer, *, is_cut: bool) -> None:
    """Send the answer; cut: half of the body, or without one not even all headers, and the connection's end."""
    handler.close_connection = handler.close_connection or is_cut
    handler.send_response(answer.status)
    for name, value in answer.headers:
        if name.lower() not in HOP_HEADERS:
            handler.send_header(name, value)
    declared = dict((name.lower(), value) for name, value in answer.headers).get("content-length")
    length = declared if handler.command == "HEAD" and declared is not None else str(len(answer.body))
    if answer.status != 204:
        handler.send_header("Content-Length", length)
    if is_cut and not answer.body:
        handler.flush_headers()
        return
    handler.end_headers()
    if handler.command != "HEAD":
        handler.wfile.write(shorten(answer.body) if is_cut else answer.body)
