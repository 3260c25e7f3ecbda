"""A real HTTP server that keeps what webhooks send to it."""

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer


@dataclass(kw_only=True)
class Receiver:
    """What came, and how it is answered."""

    url: str = ""
    bodies: list[bytes] = field(default_factory=list)
    statuses: list[int] = field(default_factory=list)
    """Of the next answers; 200 where there is none left."""


@contextmanager
def receive(host: str = "127.0.0.1") -> Iterator[Receiver]:
    """Run a server on a port of this machine until the block ends. `host`: the address of the machine to listen at."""
    receiver = Receiver()

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:  # noqa: N802  (the name that the base class calls)
            receiver.bodies.append(self.rfile.read(int(self.headers["Content-Length"])))
            status = receiver.statuses.pop(0) if receiver.statuses else 200
            self.send_response(status)
            if status == 302:
                self.send_header("Location", receiver.url)
            self.send_header("Content-Length", "0")
            self.end_headers()

        def log_message(self, *_: object) -> None:
            pass

    server = ThreadingHTTPServer((host, 0), Handler)
    receiver.url = f"http://{host}:{server.server_port}/secret-path"
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True)
    thread.start()
    try:
        yield receiver
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
