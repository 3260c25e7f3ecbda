"""Of several writers of a new object one learns that it was the first, where the server can tell."""

from collections.abc import Callable
from http.server import BaseHTTPRequestHandler
from pathlib import Path

import pytest

from bench.errors import TransientError
from bench.store import Store, run_key
from factories import make_run
from runner.runs import store_plan, warn_of_second_runner
from s3_server import S3Server

KEY = run_key("r")


def make_handler(*, knows_condition: bool) -> type[BaseHTTPRequestHandler]:
    """Return an S3 server of whole objects; a conditional request without `knows_condition` is not implemented."""
    objects: dict[str, bytes] = {}

    class Handler(BaseHTTPRequestHandler):
        def do_PUT(self) -> None:  # noqa: N802  (http.server looks for it)
            data = self.rfile.read(int(self.headers["Content-Length"]))
            is_conditional = self.headers.get("If-None-Match") == "*"
            if is_conditional and not knows_condition:
                self.reply(501, b"<Error><Code>NotImplemented</Code></Error>")
            elif is_conditional and self.path in objects:
                self.reply(412, b"<Error><Code>PreconditionFailed</Code></Error>")
            else:
                objects[self.path] = data
                self.reply(200, b"")

        def do_GET(self) -> None:  # noqa: N802
            self.reply(200, objects[self.path])

        def do_POST(self) -> None:  # noqa: N802  (the store library deletes by DeleteObjects)
            self.rfile.read(int(self.headers["Content-Length"]))
            objects.clear()
            self.reply(200, b"<DeleteResult><Deleted><Key>k</Key></Deleted></DeleteResult>")

        def reply(self, status: int, body: bytes) -> None:
            self.send_response(status)
            self.send_header("ETag", '"1"')
            self.send_header("Last-Modified", "Sun, 22 Nov 2026 10:00:00 GMT")
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_: object) -> None:
            pass

    return Handler


@pytest.fixture
def open_bucket(open_served: Callable[[type[BaseHTTPRequestHandler]], Store]) -> Callable[[bool], Store]:
    """Open a bucket of a server that knows conditions, or does not."""
    return lambda knows_condition: open_served(make_handler(knows_condition=knows_condition))


@pytest.mark.parametrize("kind", ["file", "s3"])
def test_one_of_two_writers_is_the_first(kind: str, tmp_path: Path, open_bucket: Callable[[bool], Store]) -> None:
    store = Store.open(f"file://{tmp_path}/store") if kind == "file" else open_bucket(True)

    assert store.put_new(KEY, b"mine")
    assert not store.put_new(KEY, b"theirs")
    assert store.put_new(KEY, b"mine")  # repeated, as where the answer was lost
    assert store.get(KEY) == b"mine"


@pytest.mark.usefixtures("few_retries")
def test_a_server_without_conditions_takes_the_object_all_the_same(open_bucket: Callable[[bool], Store]) -> None:
    store = open_bucket(False)

    assert store.put_new(KEY, b"mine")
    assert store.get(KEY) == b"mine"


@pytest.mark.usefixtures("few_retries")
@pytest.mark.parametrize("knows_condition", [True, False])
def test_whether_the_server_tells_the_first_writer_is_found_out(
    knows_condition: bool, open_bucket: Callable[[bool], Store]
) -> None:
    store = open_bucket(knows_condition)
    told: list[str] = []

    assert store.tells_first_writer() is knows_condition
    warn_of_second_runner(store, "r", told.append)
    warn_of_second_runner(store, None, told.append)

    expected = "s3://b: its server ignores If-None-Match, so a second runner that begins run r at the same moment would"
    assert [line[: len(expected)] for line in told] == ([] if knows_condition else [expected])


def test_a_server_that_ignores_the_condition_is_found_out_and_keeps_nothing(
    s3_server: S3Server, s3_store: Store
) -> None:
    assert not s3_store.tells_first_writer()
    assert list(s3_store.list_keys("")) == []


def test_a_directory_tells_the_first_writer(tmp_path: Path) -> None:
    assert Store.open(f"file://{tmp_path}/store").tells_first_writer()


def test_the_runner_that_comes_second_leaves_the_plan_of_the_first(tmp_path: Path) -> None:
    store = Store.open(f"file://{tmp_path}/store")
    first, second = make_run(run_id="r", order_seed=1), make_run(run_id="r", order_seed=2)

    store_plan(store, first)
    with pytest.raises(TransientError, match="run r: another runner has begun a run of this name at the same moment"):
        store_plan(store, second)

    assert store.get(KEY) == first.to_json()
