"""A server that answers one connection with given bytes, and then drips."""

import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress


@contextmanager
def serve(answer: bytes, drip: bytes = b"") -> Iterator[str]:
    """Answer one connection with these bytes, then with `drip` ten times a second until the other side hangs up."""
    ended = threading.Event()

    def answer_one() -> None:
        with suppress(OSError), listener.accept()[0] as connection:
            connection.recv(65_536)
            connection.sendall(answer)
            while drip and not ended.wait(0.1):
                connection.sendall(drip)

    with socket.create_server(("127.0.0.1", 0)) as listener:
        thread = threading.Thread(target=answer_one, daemon=True)
        thread.start()
        yield f"http://127.0.0.1:{listener.getsockname()[1]}/table.csv"
        ended.set()
        thread.join()
