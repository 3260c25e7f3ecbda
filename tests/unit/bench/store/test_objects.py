"""What every store keeps: objects, listings, and keys that it refuses."""

import itertools
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from bench.store import KeyMissing, Store, UnreadableObject
from store_calls import DEADLINE_SECONDS


@pytest.mark.parametrize("data", [b"", b"{}", bytes(range(256)) * 40_000], ids=["empty", "small", "10 MB"])
def test_what_is_put_is_got(store: Store, data: bytes) -> None:
    store.put("runs/r1/run.json", data)
    assert store.get("runs/r1/run.json") == data


def test_whether_an_object_is_there_is_known(store: Store) -> None:
    assert not store.holds("runs/r1/run.json")
    store.put("runs/r1/run.json", b"{}")
    assert store.holds("runs/r1/run.json")
    assert not store.holds("runs/r1")


def test_a_missing_object_is_named(store: Store) -> None:
    with pytest.raises(KeyMissing, match=r"no object 'runs/r1/run\.json'"):
        store.get("runs/r1/run.json")


def test_a_folder_is_no_object(store: Store) -> None:
    store.put("runs/r1/run.json", b"{}")
    with pytest.raises(KeyMissing):
        store.get("runs/r1")


def test_a_second_put_replaces_the_object(store: Store) -> None:
    store.put("runs/r1/run.json", b"first and longer")
    store.put("runs/r1/run.json", b"second")
    assert store.get("runs/r1/run.json") == b"second"
    assert list(store.list_keys("")) == ["runs/r1/run.json"]


def test_listing_is_recursive_and_stays_in_its_folder(store: Store) -> None:
    for key in (
        "runs/r1/run.json",
        "runs/r1/results/c/1-a.json",
        "runs/r1/results/c/2-b.json",
        "runs/r10/results/c/1-a.json",
    ):
        store.put(key, b"{}")
    assert set(store.list_keys("runs/r1/results/")) == {"runs/r1/results/c/1-a.json", "runs/r1/results/c/2-b.json"}
    assert set(store.list_keys("runs/r1/results")) == {"runs/r1/results/c/1-a.json", "runs/r1/results/c/2-b.json"}
    assert len(list(store.list_keys(""))) == 4
    assert list(store.list_keys("runs/r2/")) == []


def test_run_ids_are_the_names_of_folders_in_order(store: Store) -> None:
    assert store.list_run_ids() == []
    for key in (
        "runs/r2/run.json",
        "runs/r1/results/c/1-a.json",
        "runs/notes.txt",
        "runs/Not a run/x",
        "other/r3/run.json",
    ):
        store.put(key, b"{}")
    assert store.list_run_ids() == ["r1", "r2"]


def test_many_objects_are_got(store: Store) -> None:
    objects = {f"runs/r1/results/c/{i}-a.json": str(i).encode() * i for i in range(1, 301)}
    with ThreadPoolExecutor(8) as pool:
        list(pool.map(store.put, objects.keys(), objects.values()))
    assert dict(store.get_listed(store.list_keys("runs/r1/results/"), num_parallel=7)) == objects
    assert dict(store.get_listed([])) == {}


def test_an_object_that_is_gone_since_it_was_listed_is_left_out(store: Store) -> None:
    store.put("a", b"1")
    assert list(store.get_listed(["a", "b"])) == [("a", b"1")]


@pytest.mark.parametrize(
    ("key", "limit"), [("runs/r1/results/c/1-a.json", 16 * 2**20), ("runs/r1/run.json", 128 * 2**20)]
)
def test_an_object_larger_than_its_kind_can_be_is_not_read(store: Store, key: str, limit: int) -> None:
    store.put(key, bytes(limit + 1))
    with pytest.raises(UnreadableObject, match=f"'{key}' .*{limit:,}"):
        store.get(key)
    assert [type(data) for _, data in store.get_listed([key])] == [UnreadableObject]


def test_a_reader_never_sees_part_of_an_object(store: Store) -> None:
    versions = [bytes([i]) * 8_000_000 for i in range(4)]
    store.put("big", versions[0])
    seen: set[bytes] = set()
    is_over = threading.Event()

    def write() -> None:
        for data in itertools.cycle(versions):
            store.put("big", data)
            if is_over.is_set():
                return

    deadline = time.monotonic() + DEADLINE_SECONDS
    with ThreadPoolExecutor(1) as pool:
        writer = pool.submit(write)
        try:  # until three versions were seen: then reads were among the writes
            while len(seen) < 3 and seen <= set(versions) and not writer.done() and time.monotonic() < deadline:
                seen.add(store.get("big"))
        finally:
            is_over.set()
        writer.result()
    assert len(seen) >= 3
    assert seen <= set(versions)


def test_the_check_leaves_nothing_behind(store: Store, tmp_path: Path) -> None:
    store.check_writable()
    assert list(store.list_keys("")) == []
    assert [path for path in (tmp_path / "results").rglob("*")] == []


@pytest.mark.parametrize(
    "key", ["", "/a", "a/", "a//b", "..", "../a", "a/../b", ".", "a/./b", "a\\b", "a\nb", "a\0b", "a.json#1", "a#2/b"]
)
def test_hostile_keys_are_refused(tmp_path: Path, key: str) -> None:
    store = Store.open(f"file://{tmp_path}/results")
    for call in (lambda: store.put(key, b""), lambda: store.get(key), lambda: list(store.get_listed([key]))):
        with pytest.raises(ValueError, match="is not allowed"):
            call()
    assert list((tmp_path / "results").iterdir()) == []


def test_a_hostile_prefix_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="is not allowed"):
        list(Store.open(f"file://{tmp_path}/results").list_keys("../"))


def test_awkward_keys_of_others_can_be_read(store: Store) -> None:
    for key in ("notes/.hidden", "notes/50% + é & more.txt", "notes/a#b"):
        store.put(key, key.encode())
    assert dict(store.get_listed(store.list_keys("notes"))) == {key: key.encode() for key in store.list_keys("notes")}
    assert set(store.list_keys("notes")) == {"notes/.hidden", "notes/50% + é & more.txt", "notes/a#b"}


def test_objects_are_deleted_and_others_stay(store: Store) -> None:
    keys = [f"runs/r1/results/c/{number}-a.json" for number in range(1, 6)]
    for key in (*keys, "runs/r1/run.json"):
        store.put(key, b"{}")

    store.delete_many([keys[0], "runs/r1/results/c/9-gone.json", *keys[1:4]])

    assert set(store.list_keys("")) == {keys[4], "runs/r1/run.json"}


def test_nothing_is_deleted_outside_the_store(store: Store) -> None:
    store.put("runs/r1/run.json", b"{}")
    with pytest.raises(ValueError, match="not allowed"):
        store.delete_many(["runs/r1/run.json", "../runs/r1/run.json"])
    assert list(store.list_keys("")) == ["runs/r1/run.json"]


def test_the_store_has_a_clock_and_keeps_nothing_of_the_question(store: Store) -> None:
    before = datetime.now(UTC)
    assert abs(store.read_clock() - before) < timedelta(minutes=15)
    assert list(store.list_keys("")) == []
