"""What every store promises: objects, listings, new objects and keys, on directories and on a real S3 server."""

from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from bench.store import KeyMissing, Store

PLAN = "runs/r1/run.json"
RESULTS = [f"runs/r1/results/c/{number}-a.json" for number in range(1, 6)]


@pytest.mark.parametrize("data", [b"", b"{}", bytes(range(256)) * 40_000], ids=["empty", "small", "10 MB"])
def test_what_is_put_is_got(store: Store, data: bytes) -> None:
    store.put(PLAN, data)
    assert store.get(PLAN) == data
    store.put(PLAN, b"second")
    assert store.get(PLAN) == b"second"
    assert list(store.list_keys("")) == [PLAN]


def test_a_missing_object_is_named_and_a_folder_is_none(store: Store) -> None:
    assert not store.holds(PLAN)
    with pytest.raises(KeyMissing, match=rf"no object '{PLAN}'"):
        store.get(PLAN)
    store.put(PLAN, b"{}")
    assert store.holds(PLAN)
    assert not store.holds("runs/r1")
    with pytest.raises(KeyMissing):
        store.get("runs/r1")


def test_listings_are_recursive_and_stay_in_their_folder(store: Store) -> None:
    others = ["runs/r1/run.json", "runs/r10/results/c/1-a.json"]
    for key in (*RESULTS, *others):
        store.put(key, b"{}")
    for prefix in ("runs/r1/results/", "runs/r1/results"):
        assert sorted(store.list_keys(prefix)) == RESULTS
    assert sorted(store.list_keys("")) == sorted([*RESULTS, *others])
    assert list(store.list_keys("runs/r2/")) == []


def test_a_listing_says_what_is_stored_and_since_when(store: Store) -> None:
    store.put(PLAN, b"first")
    (first,) = store.list_objects("runs")
    assert first.modified_at is not None
    assert (first.key, first.num_bytes, first.problem) == (PLAN, 5, "")
    assert abs(first.modified_at - datetime.now(UTC)) < timedelta(minutes=15)
    store.put(PLAN, b"other")
    (second,) = store.list_objects("runs")
    assert second.version != first.version


def test_a_listing_of_many_pages_has_each_key_once(
    store: Store, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    keys = {f"runs/r1/results/c/{number}-a.json" for number in range(1, 2402)}
    root = tmp_path / "results"
    if store.url.startswith("s3"):
        root = request.getfixturevalue("s3_server").root / store.url[5:]
    (root / RESULTS[0]).parent.mkdir(parents=True)
    for key in keys:  # as rclone stores them
        (root / key).write_bytes(b"{}")
    found = list(store.list_keys("runs/r1"))
    assert len(found) == len(keys)
    assert set(found) == keys


def test_run_ids_are_the_names_of_folders_in_order(store: Store) -> None:
    assert store.list_run_ids() == []
    for key in ("runs/r2/run.json", RESULTS[0], "runs/notes.txt", "runs/Not a run/x", "other/r3/run.json"):
        store.put(key, b"{}")
    assert store.list_run_ids() == ["r1", "r2"]


def test_many_objects_are_got_and_those_that_are_gone_are_left_out(store: Store) -> None:
    objects = {f"runs/r1/results/c/{i}-a.json": str(i).encode() * i for i in range(1, 301)}
    with ThreadPoolExecutor(8) as pool:
        list(pool.map(store.put, objects.keys(), objects.values()))
    assert dict(store.get_listed([*store.list_keys("runs/r1/results/"), "gone"], num_parallel=7)) == objects
    assert dict(store.get_listed([])) == {}


def test_a_reader_may_stop_early_and_an_error_of_the_keys_is_raised(store: Store) -> None:
    for key in RESULTS:
        store.put(key, b"{}")
    assert next(store.get_listed(RESULTS))[1] == b"{}"
    with pytest.raises(ZeroDivisionError):
        list(store.get_listed(str(1 // number) for number in (0,)))


def test_a_reader_never_sees_part_of_an_object(store: Store) -> None:
    versions = [bytes([i]) * 8_000_000 for i in range(4)]
    store.put("big", versions[0])
    seen: set[bytes] = set()
    with ThreadPoolExecutor(1) as pool:
        writes = [pool.submit(store.put, "big", data) for data in versions * 5]
        while not writes[-1].done():
            seen.add(store.get("big"))
    assert not any(write.exception() for write in writes)
    assert len(seen) >= 3  # reads were among the writes
    assert seen <= set(versions)


def test_the_check_leaves_nothing_behind(store: Store) -> None:
    store.check_writable()
    assert list(store.list_keys("")) == []


def test_a_new_object_never_replaces_another(store: Store) -> None:
    texts = [str(number).encode() for number in range(8)]
    if not store.url.startswith("file"):  # rclone ignores If-None-Match: two at the same moment would both be first
        store.put_new(PLAN, texts[0])
    with ThreadPoolExecutor(8) as pool:
        are_first = list(pool.map(lambda text: store.put_new(PLAN, text), texts))
    assert are_first.count(True) == 1
    assert store.get(PLAN) == texts[are_first.index(True)]
    assert store.put_new(PLAN, store.get(PLAN))  # repeated, as where the answer was lost
    assert not store.put_new(PLAN, b"another")


def test_awkward_keys_of_others_can_be_read(store: Store) -> None:
    keys = {"notes/.hidden", "notes/50% + é & more.txt", "notes/a#b"}
    for key in keys:
        store.put(key, key.encode())
    assert dict(store.get_listed(store.list_keys("notes"))) == {key: key.encode() for key in keys}


def test_objects_are_deleted_and_others_stay(store: Store) -> None:
    for key in (*RESULTS, PLAN):
        store.put(key, b"{}")
    store.delete_many([RESULTS[0], "runs/r1/results/c/9-gone.json", *RESULTS[1:4]])
    store.delete_many(["runs/r1/results/c/9-gone.json"])
    assert set(store.list_keys("")) == {RESULTS[4], PLAN}
    store.delete_many([RESULTS[4]])
    assert list(store.list_keys("")) == [PLAN]
