"""A server that answers with given bytes, part after part, as long as a client listens: answers that do not end."""

import itertools
import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress

PAUSE_SECONDS = 0.01
"""Between two parts of an answer: each comes in time."""
MAX_PARTS = 3_000
"""So that a client without a limit gets a whole answer in the end: its test fails instead of hanging."""

Answer = Callable[[], Iterator[bytes]]
"""Yields the parts of the answer to one request. The connection is closed behind the last one."""


def answer_once(answer: bytes, drip: bytes = b"") -> Answer:
    """Return these bytes as an answer, followed by `drip` again and again."""
    return lambda: itertools.chain([answer], itertools.repeat(drip, MAX_PARTS if drip else 0))


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
def serve(answer: Answer) -> Iterator[str]:
    """Answer each request so on a port of this machine until the block ends; yield the server's URL."""
    ended = threading.Event()
    clients: dict[socket.socket, threading.Thread] = {}
    listener = socket.create_server(("127.0.0.1", 0))

    def respond(client: socket.socket) -> None:
        with client, suppress(OSError):  # the client has had enough
            client.recv(65_536)
            for part in answer():
                client.sendall(part)
                if ended.wait(PAUSE_SECONDS):
                    return

    def accept() -> None:
        with suppress(OSError):  # the listener is shut down
            while True:
                client, _ = listener.accept()
                clients[client] = threading.Thread(target=respond, args=(client,), daemon=True)
                clients[client].start()

    acceptor = threading.Thread(target=accept, daemon=True)
    acceptor.start()
    try:
        yield f"http://127.0.0.1:{listener.getsockname()[1]}"
    finally:
        ended.set()
        listener.shutdown(socket.SHUT_RDWR)  # to close it would leave the thread waiting for a client
        acceptor.join()
        listener.close()
        for client, thread in clients.items():
            with suppress(OSError):  # it is closed already
                client.shutdown(socket.SHUT_RDWR)
            thread.join()
