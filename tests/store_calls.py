"""Calls of the store for tests of what all of them do, and servers that answer it."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from bench.store import Store
from lying_server import Answer, LyingServer

Answers = list[tuple[int, str]]


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


class StoreServer(LyingServer):
    """Gives these answers in turn, the last one for ever, and has no object."""

    def __init__(self, texts: Answers, certificate: Path | None) -> None:
        super().__init__(certificate=certificate)
        self.texts = texts

    def answer(self, verb: str, path: str, body: bytes) -> Answer:
        if verb == "HEAD":
            return 404, {}, b""
        status, text = self.texts.pop(0) if len(self.texts) > 1 else self.texts[0]
        return status, {"ETag": '"0"'}, text.replace("{host}", self.headers["Host"]).encode()


@contextmanager
def serve(answers: Answers, certificate: Path | None = None) -> Iterator[str]:
    """Run such a server and yield its URL."""
    server = StoreServer(answers, certificate)
    try:
        yield server.url
    finally:
        server.stop()
