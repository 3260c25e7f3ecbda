"""An S3 server that lies: every call comes to an end, in words, and takes no memory for what is only promised."""

from collections.abc import Callable
from http.server import BaseHTTPRequestHandler

import pytest

from bench.store import Store, StoreError, StoreUnreachable, UnreadableObject
from lying_s3_server import Lie, make_liar, make_witness
from store_calls import list_calls

KEY = "runs/r1/results/c-00000000/1-a.json"


@pytest.fixture
def open_liar(open_served: Callable[[type[BaseHTTPRequestHandler]], Store]) -> Callable[..., Store]:
    """Open the store of a server that tells the lie given; one that names another address, the one given."""
    return lambda lie, *elsewhere: open_served(make_liar(lie, *elsewhere))


def test_a_listing_that_repeats_itself_ends(open_liar: Callable[[Lie], Store]) -> None:
    with pytest.raises(StoreError, match="its listing does not end"):
        list(open_liar("same-page").list_objects("runs"))


@pytest.mark.parametrize("lie", ["same-page", "no-keys"])
def test_a_list_of_runs_that_repeats_itself_ends(lie: Lie, open_liar: Callable[[Lie], Store]) -> None:
    with pytest.raises(StoreError, match="its listing does not end"):
        open_liar(lie).list_run_ids()


def test_a_listing_that_says_it_goes_on_and_not_how_is_no_whole_one(open_liar: Callable[[Lie], Store]) -> None:
    store = open_liar("no-token")
    for call in (store.list_run_ids, lambda: list(store.list_objects("runs"))):
        with pytest.raises(StoreError, match="http://127.* says that a listing goes on, and not how .*ListObjectsV2"):
            call()


def test_pages_without_keys_and_without_end_end(
    open_liar: Callable[[Lie], Store], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("bench.store.store.LIST_PATIENCE_SECONDS", 1)
    store = open_liar("new-tokens")
    with pytest.raises(StoreUnreachable, match="no page of its listing came within 1 s"):
        list(store.list_objects("runs"))
    with pytest.raises(StoreUnreachable, match="its list of 'runs' did not end within 1 s"):
        store.list_run_ids()


@pytest.mark.parametrize("lie", ["huge-page", "endless-page"])
def test_of_a_page_without_end_no_more_is_read_than_a_page_can_have(
    lie: Lie, open_liar: Callable[[Lie], Store]
) -> None:
    store = open_liar(lie)
    for call in (store.list_run_ids, lambda: list(store.list_objects("runs"))):
        with pytest.raises(
            StoreError, match="a page of its listing has more than 16,777,216 bytes; is it an S3 server"
        ):
            call()


@pytest.mark.parametrize("lie", ["many-entries", "entities", "web-page"])
def test_a_page_that_no_s3_server_sends_is_no_listing(lie: Lie, open_liar: Callable[[Lie], Store]) -> None:
    with pytest.raises(StoreError, match="answers a listing with what is none"):
        list(open_liar(lie).list_objects("runs"))


def test_a_redirect_is_refused_and_no_other_host_is_asked(
    open_liar: Callable[..., Store],
    run_server: Callable[[type[BaseHTTPRequestHandler]], str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("AWS_SESSION_TOKEN", "token-of-a-session")
    monkeypatch.setattr("bench.store.backend.RETRY_SECONDS", 0.1)
    monkeypatch.setattr("bench.store.backend.PUT_RETRY_SECONDS", 0.1)
    seen: list[str] = []
    store = open_liar("elsewhere", run_server(make_witness(seen)).replace("127.0.0.1", "localhost"))
    calls: list[Callable[[], object]] = [
        *list_calls(store),
        lambda: store.holds("x"),
        lambda: store.delete("x"),
        lambda: store.delete_many(["x"]),
    ]
    for call in calls:
        with pytest.raises(StoreError, match="sends requests elsewhere; name the server itself") as caught:
            call()
        assert not isinstance(caught.value, StoreUnreachable)
    assert seen == []


def test_an_object_that_is_said_to_be_huge_takes_no_memory(open_liar: Callable[[Lie], Store]) -> None:
    with pytest.raises(UnreadableObject, match="has 1,099,511,627,776 bytes, expected at most 16,777,216"):
        open_liar("huge-object").get(KEY)


def test_an_entry_of_more_bytes_than_a_row_can_say_is_a_problem_of_its_own(open_liar: Callable[[Lie], Store]) -> None:
    store = open_liar("huge-entries")
    listed = list(store.list_objects("runs"))
    assert {(found.num_bytes, found.problem) for found in listed} == {(0, f"is listed with {2**63:,} bytes")}
    assert list(store.list_keys("runs")) == []


def test_keys_that_the_store_library_refuses_keep_no_others_from_being_listed(
    open_liar: Callable[[Lie], Store],
) -> None:
    store = open_liar("odd-keys")
    good = {f"runs/r1/results/c-00000000/{number}-a.json" for number in (1, 2)}
    listed = list(store.list_objects("runs"))
    assert len(listed) == 6
    assert {found.key for found in listed if not found.problem} >= good
    assert all("is not allowed" in found.problem for found in listed if "//" in found.key or ".." in found.key)
    assert store.list_run_ids() == ["r1", "r2"]


def test_a_page_for_browsers_is_no_empty_bucket(open_liar: Callable[[Lie], Store]) -> None:
    with pytest.raises(StoreError, match="answers a listing with what is none, such as a web page; is it the address"):
        open_liar("web-page").list_run_ids()


def test_a_listing_that_fills_the_memory_ends(
    open_liar: Callable[[Lie], Store], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("bench.store.obstore_calls.MAX_LISTING_BYTES", -(2**40))  # any memory is more than that
    store = open_liar("new-tokens")
    for call in (store.list_run_ids, lambda: list(store.list_keys("runs"))):
        with pytest.raises(StoreError, match="store s3://b: what the server sends as a listing does not end"):
            call()


class EchoHandler(BaseHTTPRequestHandler):
    """Answers with an error that repeats the request."""

    def do_GET(self) -> None:  # noqa: N802  (http.server looks for it)
        sent = self.headers["Authorization"] or self.path
        body = f"<Error><Message>{sent} {dict(self.headers)} {self.path}</Message></Error>".encode()
        self.send_response(400)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: object) -> None:
        pass


@pytest.mark.parametrize(
    "variables",
    [
        {"AZURE_STORAGE_SAS_TOKEN": "sig=hunter2hunter2%3D&sv=2"},
        {"AZURE_STORAGE_TOKEN": "hunter2hunter2"},
    ],
    ids=lambda variables: next(iter(variables)),
)
def test_an_error_that_repeats_the_request_shows_no_credential_of_azure(
    variables: dict[str, str],
    run_server: Callable[[type[BaseHTTPRequestHandler]], str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    place = {"AZURE_STORAGE_ENDPOINT": f"{run_server(EchoHandler)}/a", "AZURE_STORAGE_ACCOUNT_NAME": "a"}
    for name, value in (place | variables | {"AZURE_ALLOW_HTTP": "true"}).items():
        monkeypatch.setenv(name, value)
    with pytest.raises(StoreError, match=r"\(hidden\)") as caught:
        Store.open("az://c").list_run_ids()
    assert "hunter2" not in str(caught.value)
