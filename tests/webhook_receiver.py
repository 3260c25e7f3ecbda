"""A real HTTP server that keeps what webhooks send to it."""

from collections.abc import Iterator
from contextlib import contextmanager

from lying_server import Answer, LyingServer


class Receiver(LyingServer):
    """What came, and how it is answered."""

    def __init__(self, host: str) -> None:
        super().__init__(host)
        self.url += "/secret-path"
        self.bodies: list[bytes] = []
        self.statuses: list[int] = []
        """Of the next answers; 200 where there is none left."""

    def answer(self, verb: str, path: str, body: bytes) -> Answer:
        self.bodies.append(body)
        status = self.statuses.pop(0) if self.statuses else 200
        return status, {"Location": self.url} if status == 302 else {}, b""


@contextmanager
def receive(host: str = "127.0.0.1") -> Iterator[Receiver]:
    """Run a server on a port of this machine until the block ends. `host`: the address of the machine to listen at."""
    receiver = Receiver(host)
    try:
        yield receiver
    finally:
        receiver.stop()
