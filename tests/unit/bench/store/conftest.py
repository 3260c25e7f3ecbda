"""Stores over directories and S3 servers."""

import ssl
import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from bench.store import Store
from s3_server import S3Server


@contextmanager
def serve(handler: type[BaseHTTPRequestHandler], certificate: Path | None = None) -> Iterator[str]:
    """Run a server that answers as the class given does, and yield its URL; with a `certificate` it speaks TLS."""
    server = ThreadingHTTPServer(("127.0.0.1", 0), handler)
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


@pytest.fixture(params=["file", "s3", "s3-prefix"])
def store(request: pytest.FixtureRequest, tmp_path: Path) -> Store:
    if request.param == "file":
        return Store.open(f"file://{tmp_path}/results")
    server = request.getfixturevalue("s3_server")
    return Store.open(f"s3://{server.bucket}" + ("/team/a b" if request.param == "s3-prefix" else ""))


@pytest.fixture
def s3_store(s3_server: S3Server) -> Store:
    return Store.open(f"s3://{s3_server.bucket}")


@pytest.fixture
def run_server() -> Iterator[Callable[..., str]]:
    """Start servers that answer as the classes given do, until the test ends; return their URLs."""
    with ExitStack() as running:
        yield lambda handler, certificate=None: running.enter_context(serve(handler, certificate))


OpenServed = Callable[..., Store]


@pytest.fixture
def open_served(monkeypatch: pytest.MonkeyPatch, run_server: Callable[..., str]) -> OpenServed:
    """Open the store of a made-up S3 server, which answers as the class given does; with a certificate, by TLS."""

    def start(handler: type[BaseHTTPRequestHandler], certificate: Path | None = None) -> Store:
        monkeypatch.setenv("AWS_ENDPOINT_URL", run_server(handler, certificate))
        monkeypatch.setenv("AWS_ACCESS_KEY_ID", "id")
        monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "secret")
        return Store.open("s3://b")

    return start


@pytest.fixture
def few_retries(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("bench.store.buckets.RETRY_SECONDS", 0.1)
    monkeypatch.setattr("bench.store.buckets.PUT_RETRY_SECONDS", 0.1)
    monkeypatch.setattr("bench.store.buckets.LIST_ATTEMPTS", 1)


@pytest.fixture
def answers(monkeypatch: pytest.MonkeyPatch, s3_server: S3Server) -> Iterator[list[tuple[int, str]]]:
    """A list of (status, what the error says in XML) that the endpoint answers with in turn, the last one for ever."""
    queue: list[tuple[int, str]] = []

    class Handler(BaseHTTPRequestHandler):
        def answer(self) -> None:
            self.rfile.read(int(self.headers.get("Content-Length", 0)))
            status, code = queue.pop(0) if len(queue) > 1 else queue[0]
            body = f"<Error>{code}</Error>".encode()
            self.send_response(status)
            self.send_header("ETag", '"0"')
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        do_GET = do_PUT = do_POST = answer  # noqa: N815

        def log_message(self, format: str, *args: object) -> None:
            pass

    with serve(Handler) as url:
        monkeypatch.setenv("AWS_ENDPOINT_URL", url)
        yield queue
