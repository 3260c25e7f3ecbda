"""The tables of a store: brought up to date by any number of commands, and made anew where they are damaged."""

from collections.abc import Iterator
from contextlib import contextmanager

import pandas as pd
import pytest

from bench.schema import Result
from bench.store import Store, StoreError, raw_removal_key, result_key
from collector.results import stored_tables as tables
from collector.results.collection import Collection
from collector.results.frames import ATTEMPTS
from collector.results.load import load_run
from collector.results.stored_tables import table_key
from factories import RUN_ID, make_cell, make_result, make_run, put_documents
from raw_removals import make_raw_removal

NUM_REPEATS = 3


def put_run(store: Store, *batch_sizes: int) -> list[Result]:
    """Put a run with NUM_REPEATS results of a cell for each batch size."""
    cells = [make_cell(batch_size=size) for size in batch_sizes]
    results = [
        make_result(cell, repeat=repeat, step_seconds=(0.1 * repeat, 0.2, 0.3 + 0.01 * index))
        for index, cell in enumerate(cells)
        for repeat in range(1, NUM_REPEATS + 1)
    ]
    put_documents(store, make_run(cells, repeats=NUM_REPEATS), results)
    return results


def key_of(result: Result) -> str:
    return result_key(result.run_id, result.cell_id, result.repeat, result.attempt)


def collect(store: Store) -> Collection:
    return load_run(store, RUN_ID, writes_tables=True)


def list_tables(store: Store) -> list[str]:
    return list(store.list_keys("tables"))


def assert_same(actual: Collection, expected: Collection) -> None:
    pd.testing.assert_frame_equal(actual.results, expected.results)
    pd.testing.assert_frame_equal(actual.samples, expected.samples)
    assert actual.environments == expected.environments
    assert actual.skipped == expected.skipped


@contextmanager
def note_reads(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[str]]:
    """Yield the keys of the documents that are read meanwhile."""
    read: list[str] = []
    get_listed = Store.get_listed

    def note(self: Store, keys: object, **options: int) -> object:
        noted = list(keys)  # type: ignore[call-overload]
        read.extend(key for key in noted if key.startswith("runs/"))
        return get_listed(self, noted, **options)

    with monkeypatch.context() as patch:
        patch.setattr(Store, "get_listed", note)
        yield read


def test_only_what_is_new_is_read(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    results = put_run(store, 1, 2)
    fresh = load_run(store, RUN_ID)
    assert list_tables(store) == []  # so few are read anew
    collect(store)
    with note_reads(monkeypatch) as read:
        assert_same(collect(store), fresh)
    assert read == []
    late = make_result(results[0].cell, repeat=1, attempt="a2")
    store.put(key_of(late), late.to_json())
    with note_reads(monkeypatch) as read:
        assert collect(store).results["num_attempts"].to_list() == [2, 1, 1, 1, 1, 1]
    assert read == [key_of(late)]


def test_a_result_that_was_replaced_counts_as_it_is_now_and_one_that_is_gone_does_not(store: Store) -> None:
    first, second, *_ = put_run(store, 1)
    collect(store)
    changed = make_result(first.cell, repeat=1, step_seconds=(0.7, 0.7, 0.7, 0.7))
    store.put(key_of(first), changed.to_json())
    store.delete_many([key_of(second)])
    collection = collect(store)
    assert collection.results["status"].to_list() == ["ok", "missing", "ok"]
    assert collection.results["median_step_seconds"][0] == 0.7
    assert (collection.samples["seconds"] == 0.7).sum() == 4


def test_rows_of_a_run_whose_results_were_deleted_on_purpose_count(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    results = put_run(store, 1, 2)
    before = collect(store)
    versions = {found.key: found.version for found in store.list_objects(f"runs/{RUN_ID}/results")}
    for result in results:
        store.delete_many([key_of(result)])
    assert set(load_run(store, RUN_ID).results["status"]) == {"missing"}
    removal = make_raw_removal(results, versions=versions)
    store.put(raw_removal_key(RUN_ID, "a"), removal.to_json())
    assert_same(load_run(store, RUN_ID), before)
    # What another version of the tool makes of its tables has them too.
    monkeypatch.setattr(tables, "compute_version", lambda: "1-00000000")
    for _ in range(2):
        assert_same(collect(store), before)


@pytest.mark.parametrize("damage", ["cut", "turned"])
def test_a_damaged_table_is_made_anew(store: Store, damage: str) -> None:
    put_run(store, 1, 2)
    expected = collect(store)
    data = bytearray(store.get(table_key(ATTEMPTS, RUN_ID)))
    data[data.index(b"\x28\xb5\x2f\xfd") + 8] ^= 1  # behind the magic number of zstd: in a page's data
    store.put(table_key(ATTEMPTS, RUN_ID), bytes(data if damage == "turned" else data[: len(data) // 2]))
    made = load_run(store, RUN_ID)
    assert_same(made, expected)
    assert "its documents are read anew" in made.notices[0]
    assert load_run(store, RUN_ID).notices == ()


def test_a_store_that_cannot_be_written_is_collected_in_memory(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    put_run(store, 1, 2)
    expected = load_run(store, RUN_ID)

    def refuse(self: Store, key: str, data: bytes, **_: object) -> None:
        raise StoreError("the disk is full")

    monkeypatch.setattr(Store, "put", refuse)
    collection = collect(store)
    assert_same(collection, expected)
    assert collection.notices == (
        "the disk is full; the tables cannot be written there: the next command reads the results anew",
    )


def test_tables_of_another_version_are_made_anew(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    put_run(store, 1, 2)
    expected = collect(store)
    monkeypatch.setattr(tables, "compute_version", lambda: "1-00000000")
    for num_read in (6, 0):
        with note_reads(monkeypatch) as read:
            assert_same(collect(store), expected)
        assert len(read) == num_read


def test_tables_lose_nothing_that_is_removed_while_they_are_made(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    """`clean` removes what the tables of another command hold: this one's, which lack it, must not replace them."""
    results = put_run(store, 1)
    listing = Store.list_objects

    def remove_meanwhile(self: Store, prefix: str) -> object:
        found = list(listing(self, prefix))
        monkeypatch.undo()
        self.delete_many([key_of(results[0])])
        return found

    monkeypatch.setattr(Store, "list_objects", remove_meanwhile)
    assert collect(store).results["status"].to_list() == ["missing", "ok", "ok"]
    assert list_tables(store) == []
