"""An S3 server that lies: every call comes to an end, in words, and takes no memory for what is only promised."""

import threading
from collections.abc import Callable, Iterator

import pytest

from bench.store import Store, StoreError, StoreUnreachable, UnreadableObject
from lying_s3_server import Lie, LyingServer, serve_lies
from workspace import HANG_GUARD_SECONDS

WORKER_NAME = "bounded"
"""What `bench.bounded_work` names the threads that work for others."""
KEY = "runs/r1/results/c-00000000/1-a.json"


@pytest.fixture
def open_liar(monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[[Lie], Store]]:
    """Open the store of a server that tells the lie given.

    Calls that were given up on go on in threads of their own for as long as the server lies. They end with it: each
    would take a core from all tests that come after it.
    """
    servers: list[LyingServer] = []
    before = set(threading.enumerate())

    def start(lie: Lie) -> Store:
        servers.append(serve_lies(lie))
        monkeypatch.setenv("AWS_ENDPOINT_URL", f"http://127.0.0.1:{servers[-1].server_address[1]}")
        monkeypatch.setenv("AWS_ACCESS_KEY_ID", "id")
        monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "secret")
        return Store.open("s3://b")

    yield start
    for server in servers:
        server.stop()
    for thread in set(threading.enumerate()) - before:
        if thread.name == WORKER_NAME:
            thread.join(HANG_GUARD_SECONDS)
            assert not thread.is_alive()


def test_a_listing_that_repeats_itself_ends(open_liar: Callable[[Lie], Store]) -> None:
    with pytest.raises(StoreError, match="its listing does not end"):
        list(open_liar("same-page").list_objects("runs"))


def test_a_listing_without_keys_and_without_end_ends(
    open_liar: Callable[[Lie], Store], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("bench.store.store.LIST_PATIENCE_SECONDS", 1)
    with pytest.raises(StoreUnreachable, match="no page of its listing came within 1 s"):
        list(open_liar("no-keys").list_objects("runs"))


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


def test_a_server_that_sends_requests_elsewhere_is_told(open_liar: Callable[[Lie], Store]) -> None:
    listing = open_liar("elsewhere").backend.s3_listing
    assert listing is not None
    for call in (listing.check, lambda: listing.list_folders("runs")):
        with pytest.raises(StoreError, match="sends requests elsewhere; name the server itself"):
            call()


@pytest.mark.parametrize("lie", ["same-page", "no-keys"])
def test_a_list_of_runs_without_end_ends(
    lie: Lie, open_liar: Callable[[Lie], Store], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("bench.store.store.LIST_PATIENCE_SECONDS", 1)
    with pytest.raises(StoreUnreachable, match="its list of 'runs' did not end within 1 s"):
        open_liar(lie).list_run_ids()


def test_a_listing_that_fills_the_memory_ends(
    open_liar: Callable[[Lie], Store], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("bench.store.obstore_calls.MAX_LISTING_BYTES", -(2**40))  # any memory is more than that
    store = open_liar("no-keys")
    for call in (store.list_run_ids, lambda: list(store.list_keys("runs"))):
        with pytest.raises(StoreError, match="store s3://b: what the server sends as a listing does not end"):
            call()
