"""raw_removals: which results of a run were removed, from all records of it."""

from datetime import timedelta
from pathlib import Path

import pytest

from bench.store import Store, raw_removal_key, result_key
from bench.store.raw_removals import index_removed_results, read_raw_removals
from factories import START
from raw_removals import make_raw_removal
from stored_runs import CELL_A, CELL_B, make_failed, make_ok, make_own_run

RUN = make_own_run()


@pytest.fixture
def store(tmp_path: Path) -> Store:
    return Store.open(f"file://{tmp_path}/store")


def test_records_are_put_together_and_the_latest_counts(store: Store) -> None:
    first = make_raw_removal([make_ok(RUN, CELL_A), make_ok(RUN, CELL_B)], at=START)
    second = make_raw_removal([make_failed(RUN, CELL_B)], at=START + timedelta(days=1))
    for name, removal in (("a", second), ("b", first)):
        store.put(raw_removal_key(RUN.run_id, name), removal.to_json())

    removals = read_raw_removals(store, RUN.run_id)

    assert removals == [first, second]
    key_a, key_b = (result_key(RUN.run_id, cell.cell_id, 1, "a1") for cell in (CELL_A, CELL_B))
    assert {key: found.status for key, found in index_removed_results(removals).items()} == {
        key_a: "ok",
        key_b: "failed",
    }
