"""A real HTTP server whose answers do not end, though each part of them comes in time."""

import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress

PAUSE_SECONDS = 0.01
MAX_PARTS = 3_000
"""So that a client without a limit gets a whole answer in the end: its test fails instead of hanging."""

Answer = Callable[[], Iterator[bytes]]


def continue_for_long() -> Iterator[bytes]:
    """Yield the parts of an answer that tells the client again and again to go on."""
    for _ in range(MAX_PARTS):
        yield b"HTTP/1.1 100 Continue\r\n\r\n"
    yield b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{}"


def drip_headers() -> Iterator[bytes]:
    """Yield the parts of an answer whose header comes byte by byte."""
    yield b"HTTP/1.1 200 OK\r\nX-Long: "
    for _ in range(MAX_PARTS):
        yield b"a"
    yield b"\r\nContent-Length: 2\r\n\r\n{}"


def drip_body() -> Iterator[bytes]:
    """Yield the parts of an answer whose body comes byte by byte."""
    yield b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n{" % (MAX_PARTS + 2)
    for _ in range(MAX_PARTS):
        yield b" "
    yield b"}"


@contextmanager
def answer_for_long(answer: Answer) -> Iterator[str]:
    """Answer each request so on a port of this machine until the block ends; yield the URL."""
    ended = threading.Event()
    listener = socket.create_server(("127.0.0.1", 0))

    def serve(client: socket.socket) -> None:
        with client, suppress(OSError):  # the client has had enough
            client.recv(65_536)
            for part in answer():
                client.sendall(part)
                if ended.wait(PAUSE_SECONDS):
                    return

    def accept() -> None:
        with suppress(OSError):  # the listener is closed
            while True:
                threading.Thread(target=serve, args=(listener.accept()[0],), daemon=True).start()

    threading.Thread(target=accept, daemon=True).start()
    try:
        yield f"http://127.0.0.1:{listener.getsockname()[1]}/secret-path"
    finally:
        ended.set()
        listener.close()
