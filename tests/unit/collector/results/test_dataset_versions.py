"""The data set where two versions of the tool share it, and where a disk is full: nothing is lost, nothing is left."""

from collections.abc import Iterator
from contextlib import contextmanager
from datetime import timedelta
from pathlib import Path

import pandas as pd
import pytest

from bench.schema import Result
from bench.store import Store, StoreError, raw_removal_key, result_key
from collector.results.collection import Collection
from collector.results.dataset import compaction
from collector.results.dataset.columns import ATTEMPTS
from collector.results.dataset.parts import list_parts
from collector.results.load import load_run
from factories import RUN_ID, make_cell, make_result, make_run, put_documents
from raw_removals import make_raw_removal

OTHER_VERSION = "9-00000000"


@pytest.fixture
def store(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Store:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setattr(compaction, "GRACE", timedelta(0))  # what is replaced goes with the next collection
    return Store.open(f"file://{tmp_path}/store")


@contextmanager
def act_as_another_version() -> Iterator[None]:
    """Write and read parts as a tool of another version does meanwhile."""
    with pytest.MonkeyPatch.context() as patch:
        for module in ("collector.results.dataset.parts", "collector.results.dataset.columns"):
            patch.setattr(f"{module}.compute_version", lambda: OTHER_VERSION)
        yield


def put_run(store: Store) -> list[Result]:
    results = [make_result(repeat=repeat, step_seconds=(0.1 * repeat, 0.2, 0.3)) for repeat in (1, 2, 3)]
    put_documents(store, make_run([make_cell()], repeats=3), results)
    return results


def collect(store: Store, *, rebuilds: bool = False) -> Collection:
    return load_run(store, RUN_ID, writes_tables=True, rebuilds_tables=rebuilds)


def list_keys(store: Store, version: str) -> set[str]:
    return {key for key in store.list_keys("tables") if f"/{version}." in key}


def remove_on_purpose(store: Store, results: list[Result]) -> None:
    versions = {found.key: found.version for found in store.list_objects(f"runs/{RUN_ID}/results")}
    store.put(raw_removal_key(RUN_ID, "a"), make_raw_removal(results, versions=versions).to_json())
    for result in results:
        store.delete(result_key(result.run_id, result.cell_id, result.repeat, result.attempt))


@pytest.mark.parametrize("rebuilds", [False, True])
def test_parts_of_another_version_that_cannot_be_read_here_stay(store: Store, rebuilds: bool) -> None:
    put_run(store)
    with act_as_another_version():
        collect(store)
    theirs = list_keys(store, OTHER_VERSION)
    for key in theirs:
        store.put(key, b"as only that version understands")

    collections = [collect(store, rebuilds=rebuilds) for _ in range(3)]

    assert list_keys(store, OTHER_VERSION) == theirs
    assert set(collections[-1].results["status"]) == {"ok"}
    (notice,) = collections[-1].notices
    assert notice.startswith(f"1 file of the tables of {RUN_ID} is of another version of benchmatrix")


def test_rebuilding_leaves_the_only_rows_of_removed_results_to_the_version_that_wrote_them(store: Store) -> None:
    results = put_run(store)
    with act_as_another_version():
        expected = collect(store)
        expected.samples  # noqa: B018  (read now)
    remove_on_purpose(store, results)
    theirs = list_keys(store, OTHER_VERSION)

    for _ in range(3):
        found = collect(store, rebuilds=True)

    assert list_keys(store, OTHER_VERSION) == theirs
    pd.testing.assert_frame_equal(found.results, expected.results)
    pd.testing.assert_frame_equal(found.samples, expected.samples)


def test_rebuilding_replaces_parts_of_another_version_whose_results_are_there(store: Store) -> None:
    put_run(store)
    with act_as_another_version():
        collect(store)

    for _ in range(2):
        found = collect(store, rebuilds=True)

    assert list_keys(store, OTHER_VERSION) == set()
    assert set(found.results["status"]) == {"ok"}


def test_a_disk_that_fills_up_while_a_part_is_written_keeps_nothing_of_it(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    put_run(store)
    put = Store.put_with_short_retries

    def refuse_the_last(self: Store, key: str, data: bytes) -> None:
        if self.url == store.url and f"/{ATTEMPTS}/" in key:
            raise StoreError("No space left on device")
        put(self, key, data)

    with monkeypatch.context() as patch:
        patch.setattr(Store, "put_with_short_retries", refuse_the_last)
        collection = collect(store)

    assert set(collection.results["status"]) == {"ok"}
    (notice,) = collection.notices
    assert notice.startswith("No space left on device; the tables cannot be written there and are kept in ")
    assert list(store.list_keys("tables")) == []
    assert list_parts(store, ATTEMPTS, RUN_ID) == []
