"""A server in front of an API server that injects faults: a test says whether and how each request is answered.

It speaks HTTP to the code under test and HTTPS to the API server. Watches are passed on as they come and can be cut.
"""

import socket
import ssl
import threading
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from http.client import HTTPException, HTTPResponse, HTTPSConnection
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Literal

Fault = Literal["too-many-requests", "lost-answer", "cut-off", "gone"]
"""429 with Retry-After; carried out and answered with 500; the connection ends without an answer; 410, as a server
answers a watch from a version that it has forgotten."""
TIMEOUT_SECONDS = 300.0


@dataclass(kw_only=True)
class FaultyServer:
    """Stands in front of an API server. `choose_fault` gets method and path of each request."""

    port: int
    """Of the API server on the loopback device."""
    choose_fault: Callable[[str, str], Fault | None] = lambda method, path: None
    num_faults: int = 0
    num_cut_watches: int = 0
    _watches: set[HTTPSConnection] = field(default_factory=set)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def start(self) -> str:
        """Begin to answer, and return the URL."""
        faulty = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def handle_any(self) -> None:
                faulty.answer(self)

            do_GET = do_POST = do_PATCH = do_DELETE = handle_any  # noqa: N815  (http.server looks for these)

            def log_message(self, *_: object) -> None:
                pass

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._server.daemon_threads = True
        threading.Thread(target=self._server.serve_forever, daemon=True).start()
        return f"http://127.0.0.1:{self._server.server_address[1]}"

    def stop(self) -> None:
        self._server.shutdown()
        self._server.server_close()
        self.cut_watches()

    @property
    def num_open_watches(self) -> int:
        with self._lock:
            return len(self._watches)

    def cut_watches(self) -> None:
        """Break all watches that are open, in the middle of an event."""
        with self._lock:
            watches, self._watches = self._watches, set()
        for connection in watches:
            self.num_cut_watches += 1
            with suppress(OSError):
                connection.sock.shutdown(socket.SHUT_RDWR)  # wakes the thread that reads from it

    def answer(self, handler: BaseHTTPRequestHandler) -> None:
        body = handler.rfile.read(int(handler.headers.get("Content-Length", 0)))
        fault = self.choose_fault(handler.command, handler.path)
        self.num_faults += fault is not None
        handler.close_connection = fault == "cut-off"
        if fault == "too-many-requests":
            _send(handler, 429, b'{"reason": "TooManyRequests", "message": "slow down"}', {"Retry-After": "1"})
        if fault == "gone":
            _send(handler, 410, b'{"reason": "Expired", "message": "too old resource version"}', {})
        if fault in ("too-many-requests", "cut-off", "gone"):
            return
        headers = {name.lower(): value for name, value in handler.headers.items() if name.lower() != "host"}
        connection = HTTPSConnection(
            "127.0.0.1", self.port, timeout=TIMEOUT_SECONDS, context=ssl._create_unverified_context()
        )
        try:
            connection.request(handler.command, handler.path, body=body or None, headers=headers)
            response = connection.getresponse()
            if "watch=1" in handler.path and response.status == 200:
                self._pass_on(handler, connection, response)
            elif fault == "lost-answer":
                response.read()
                _send(handler, 500, b'{"reason": "InternalError", "message": "etcdserver: request timed out"}', {})
            else:
                _send(handler, response.status, response.read(), {})
        except (OSError, HTTPException):
            handler.close_connection = True
        finally:
            with self._lock:
                self._watches.discard(connection)  # its reader may have gone first
            connection.close()

    def _pass_on(self, handler: BaseHTTPRequestHandler, connection: HTTPSConnection, response: HTTPResponse) -> None:
        with self._lock:
            self._watches.add(connection)
        handler.send_response(200)
        handler.send_header("Transfer-Encoding", "chunked")
        handler.end_headers()
        handler.close_connection = True  # however it ends: a cut one has no last chunk
        for piece in _read_pieces(response):
            handler.wfile.write(f"{len(piece):x}\r\n".encode() + piece + b"\r\n")
            handler.wfile.flush()
        with self._lock:
            is_whole = connection in self._watches
            self._watches.discard(connection)
        if is_whole:
            handler.wfile.write(b"0\r\n\r\n")


def _read_pieces(response: HTTPResponse) -> Iterator[bytes]:
    try:
        while piece := response.read1(65_536):
            yield piece
    except (OSError, ValueError, AttributeError, HTTPException):  # cut
        return


def _send(handler: BaseHTTPRequestHandler, status: int, body: bytes, headers: dict[str, str]) -> None:
    handler.send_response(status)
    for name, value in ({"Content-Type": "application/json", "Content-Length": str(len(body))} | headers).items():
        handler.send_header(name, value)
    handler.end_headers()
    handler.wfile.write(body)
