"""The data set of a store: brought up to date by any number of collectors, and made anew where it is damaged."""

from collections.abc import Iterator
from contextlib import contextmanager
from datetime import timedelta
from pathlib import Path

import pandas as pd
import pytest

from bench.schema import Result
from bench.store import KeyMissing, Store, StoreError, StoreUnreachable, raw_removal_key, result_key
from collector.results.collection import Collection
from collector.results.dataset import compaction, update
from collector.results.dataset.columns import ATTEMPTS, STEPS
from collector.results.dataset.parts import list_parts, read_contents
from collector.results.load import load_run
from factories import RUN_ID, START, make_cell, make_failed_result, make_result, make_run, put_documents
from raw_removals import make_raw_removal

NUM_REPEATS = 3


@pytest.fixture
def store(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Store:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    return Store.open(f"file://{tmp_path}/store")


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


def list_part_ids(store: Store, table: str = ATTEMPTS) -> set[str]:
    return {part.part_id for part in list_parts(store, table, RUN_ID)}


def assert_same(actual: Collection, expected: Collection) -> None:
    pd.testing.assert_frame_equal(actual.results, expected.results)
    pd.testing.assert_frame_equal(actual.samples, expected.samples)
    assert actual.environments == expected.environments
    assert actual.skipped == expected.skipped


@contextmanager
def note_reads(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[str]]:
    """Yield the keys of the documents that are read meanwhile."""
    read: list[str] = []
    try_many = Store.try_many

    def note(self: Store, keys: object, **options: int) -> object:
        noted = list(keys)  # type: ignore[call-overload]
        read.extend(key for key in noted if key.startswith("runs/"))
        return try_many(self, noted, **options)

    with monkeypatch.context() as patch:
        patch.setattr(Store, "try_many", note)
        yield read


def test_only_what_is_new_is_read(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    results = put_run(store, 1, 2)
    fresh = load_run(store, RUN_ID)
    assert list_part_ids(store) == set()  # so few are read anew
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
    first, second, third, *_ = put_run(store, 1)
    collect(store)
    changed = make_result(first.cell, repeat=1, step_seconds=(0.7, 0.7, 0.7, 0.7))
    store.put(key_of(first), changed.to_json())
    store.delete(key_of(second))
    collection = collect(store)
    assert collection.results["status"].to_list() == ["ok", "missing", "ok"]
    assert collection.results["median_step_seconds"][0] == 0.7
    assert (collection.samples["seconds"] == 0.7).sum() == 4


def test_rows_of_a_run_whose_results_were_deleted_on_purpose_count(store: Store) -> None:
    results = put_run(store, 1, 2)
    before = collect(store)
    before.samples  # noqa: B018  (read now)
    versions = {found.key: found.version for found in store.list_objects(f"runs/{RUN_ID}/results")}
    for result in results:
        store.delete(key_of(result))
    assert set(load_run(store, RUN_ID).results["status"]) == {"missing"}
    removal = make_raw_removal(results, versions=versions)
    store.put(raw_removal_key(RUN_ID, "a"), removal.to_json())
    assert_same(load_run(store, RUN_ID), before)


def test_two_collectors_at_once_do_no_harm(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    put_run(store, 1, 2)
    expected = collect(store)
    monkeypatch.setattr(update, "list_parts", lambda *_: [])  # this one listed the parts before the other wrote its
    collect(store)
    monkeypatch.undo()
    assert len(list_part_ids(store)) == 2
    assert_same(collect(store), expected)
    assert len(list_part_ids(store)) == 2


@pytest.mark.parametrize("table", [ATTEMPTS, STEPS])
def test_a_part_that_was_written_half_is_made_anew(store: Store, table: str) -> None:
    put_run(store, 1, 2)
    expected = collect(store)
    expected.samples  # noqa: B018  (read now)
    (part,) = list_parts(store, ATTEMPTS, RUN_ID)
    data = store.get(part.key_of(table))
    store.put(part.key_of(table), data[: len(data) // 2])
    assert_same(load_run(store, RUN_ID, writes_tables=True, rebuilds_tables=table == STEPS), expected)
    assert_same(load_run(store, RUN_ID), expected)


def test_what_a_collector_wrote_before_it_was_killed_is_seen_by_nobody(store: Store) -> None:
    put_run(store, 1)
    expected = load_run(store, RUN_ID)
    collect(store)
    (part,) = list_parts(store, ATTEMPTS, RUN_ID)
    store.delete(part.key_of(ATTEMPTS))  # it is written last
    assert_same(collect(store), expected)
    assert len(list_part_ids(store, STEPS)) == 2


def test_a_store_that_goes_away_in_mid_collection_loses_nothing(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    results = put_run(store, 1, 2)
    expected = load_run(store, RUN_ID)
    try_many = Store.try_many

    def stop(self: Store, keys: object, **options: int) -> object:
        for number, (key, data) in enumerate(try_many(self, keys, **options)):  # type: ignore[arg-type]
            yield key, StoreUnreachable("the store is gone") if number == 4 and key.startswith("runs/") else data

    with monkeypatch.context() as patch:
        patch.setattr(Store, "try_many", stop)
        with pytest.raises(StoreUnreachable, match="the store is gone"):
            collect(store)
    with note_reads(monkeypatch) as read:
        assert_same(collect(store), expected)
    assert len(read) == len(results) - 4


def test_a_store_that_cannot_be_written_is_collected_by_the_users_cache(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    put_run(store, 1, 2)
    expected = load_run(store, RUN_ID)
    put = Store.put_with_short_retries

    def refuse(self: Store, key: str, data: bytes) -> None:
        if self.url == store.url:
            raise StoreError("no permission")
        put(self, key, data)

    monkeypatch.setattr(Store, "put_with_short_retries", refuse)
    collection = collect(store)
    assert_same(collection, expected)
    (notice,) = collection.notices
    assert notice.startswith("no permission; the tables cannot be written there and are kept in ")
    with note_reads(monkeypatch) as read:
        again = collect(store)
    assert (read, again.notices) == ([], ())
    assert_same(again, expected)


def test_without_any_place_for_tables_results_are_collected_in_memory(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    put_run(store, 1, 2)
    expected = load_run(store, RUN_ID)

    def refuse(self: Store, key: str, data: bytes) -> None:
        raise StoreError("the disk is full")

    monkeypatch.setattr(Store, "put_with_short_retries", refuse)
    collection = collect(store)
    assert_same(collection, expected)
    assert len(collection.notices) == 2


def test_rows_of_another_version_of_the_tool_stay_beside_its_own(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    put_run(store, 1, 2)
    expected = collect(store)
    for module in ("collector.results.dataset.parts", "collector.results.dataset.columns"):
        monkeypatch.setattr(f"{module}.compute_version", lambda: "1-00000000")
    with note_reads(monkeypatch) as read:
        assert_same(collect(store), expected)
    assert len(read) == 6  # by the other version's reading
    monkeypatch.undo()
    with note_reads(monkeypatch) as read:
        assert_same(collect(store), expected)
    assert read == []


def test_small_parts_are_merged_and_the_old_ones_deleted_after_a_while(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(compaction, "MAX_SMALL_PARTS", 2)
    put_run(store, 1, 2)
    for number in range(3):
        late = make_failed_result(attempt=f"b{number}", started_at=START - timedelta(days=1))
        store.put(key_of(late), late.to_json())
        expected = collect(store)
    assert len(list_part_ids(store)) == 4  # the three, and the merged one
    assert_same(collect(store), expected)
    monkeypatch.setattr(compaction, "GRACE", timedelta(0))
    assert_same(collect(store), expected)
    assert len(list_part_ids(store)) == len(list_part_ids(store, STEPS)) == 1
    assert_same(collect(store), expected)


def test_a_part_that_is_deleted_while_it_is_read_is_looked_for_again(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    put_run(store, 1)
    expected = collect(store)
    failures = [KeyMissing("merged by another collector")]

    def fail_once(parts: object) -> object:
        if failures:
            raise failures.pop()
        return read_contents(parts)  # type: ignore[arg-type]

    monkeypatch.setattr(update, "read_contents", fail_once)
    assert_same(collect(store), expected)


def test_rebuilding_replaces_all_parts(store: Store) -> None:
    put_run(store, 1, 2)
    expected = collect(store)
    before = list_part_ids(store)
    assert_same(load_run(store, RUN_ID, rebuilds_tables=True), expected)
    new = list_part_ids(store) - before  # one with the rows, and one that says what they replace
    assert len(new) == 2
    assert_same(collect(store), expected)
    assert {part.part_id for part in collect(store).steps.parts} <= new


def test_a_batch_in_which_every_repeat_failed_has_no_step_times_and_is_not_damaged(store: Store) -> None:
    """As the first run on a cluster whose image cannot be used, and the same run once that is mended."""
    failing, mended = make_cell(batch_size=1), make_cell(batch_size=2)
    run = make_run([failing, mended], repeats=1)
    put_documents(store, run, [make_failed_result(failing)])
    for _ in range(2):
        assert collect(store).samples.empty

    put_documents(store, run, [make_result(mended, step_seconds=(0.1, 0.2, 0.3))])
    timed = collect(store).samples.query("kind == 'timed'")
    assert set(timed["cell_id"]) == {mended.cell_id}
    assert sorted(timed["seconds"]) == [0.1, 0.2, 0.3]
    assert_same(collect(store), load_run(store, RUN_ID))
