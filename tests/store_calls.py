"""Calls of the store for tests of what all of them do, servers that answer it, and waiting for what it does."""

import ssl
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

from bench.store import Store

DEADLINE_SECONDS = 300.0
"""Only a test that fails takes so long."""
Answers = list[tuple[int, str]]


def wait_until(is_true: Callable[[], bool]) -> None:
    """Return when `is_true` returns True; AssertionError where it does not in time."""
    deadline = time.monotonic() + DEADLINE_SECONDS
    while not is_true():
        assert time.monotonic() < deadline
        time.sleep(0.005)


def list_calls(store: Store) -> list[Callable[[], object]]:
    """Return a call of every method of the store that asks it for something."""
    return [
        store.check_writable,
        lambda: store.put("x", b"1"),
        lambda: store.get("x"),
        lambda: list(store.get_listed(["x"])),
        lambda: list(store.list_keys("")),
        store.list_run_ids,
    ]


@contextmanager
def serve(answers: Answers, certificate: Path | None = None) -> Iterator[str]:
    """Run a server that gives these answers in turn, the last one for ever, has no object, and yield its URL."""

    class Handler(BaseHTTPRequestHandler):
        def answer(self) -> None:
            self.rfile.read(int(self.headers.get("Content-Length", 0)))
            status, text = answers.pop(0) if len(answers) > 1 else answers[0]
            text = text.replace("{host}", self.headers["Host"])
            self.send_response(status)
            self.send_header("ETag", '"0"')
            self.send_header("Content-Length", str(len(text)))
            self.end_headers()
            self.wfile.write(text.encode())

        def do_HEAD(self) -> None:
            self.send_error(404)

        do_GET = do_PUT = do_POST = answer  # noqa: N815

        def log_message(self, format: str, *args: object) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    if certificate is not None:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(certificate)
        server.socket = context.wrap_socket(server.socket, server_side=True)
    thread = threading.Thread(target=server.serve_forever, args=(0.01,))
    thread.start()
    try:
        yield f"{'http' if certificate is None else 'https'}://127.0.0.1:{server.server_port}"
    finally:
        server.shutdown()
        thread.join()
        server.server_close()
