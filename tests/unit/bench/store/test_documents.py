"""Documents of many runs: plans come in the order that was asked for, and removals are put together."""

from datetime import timedelta
from pathlib import Path

import pytest

from bench.errors import UserError
from bench.store import Store, raw_removal_key, result_key, run_key
from bench.store.documents import index_removed_results, read_raw_removals, read_runs
from factories import START, make_run, put_documents
from raw_removals import make_raw_removal
from stored_runs import CELL_A, CELL_B, make_failed, make_ok, make_own_run


def test_plans_come_in_the_order_asked_for_and_others_with_a_reason(tmp_path: Path) -> None:
    store = Store.open(f"file://{tmp_path}")
    names = [f"run-{number:02}" for number in range(40)]
    for name in names:
        put_documents(store, make_run(run_id=name), [])
    store.put(run_key("copied"), make_run(run_id="run-00").to_json())
    store.put(run_key("damaged"), b"{")

    runs, reasons = read_runs(store, ["damaged", *reversed(names), "absent", "copied"])

    assert [run.run_id for run in runs] == list(reversed(names))
    assert list(reasons) == ["damaged", "absent", "copied"]
    assert reasons["damaged"].startswith("no JSON")
    assert reasons["absent"] == "there is none"
    assert reasons["copied"] == "it is of the run 'run-00'"


def test_removals_are_put_together_and_the_latest_counts(tmp_path: Path) -> None:
    store, run = Store.open(f"file://{tmp_path}"), make_own_run()
    first = make_raw_removal([make_ok(run, CELL_A), make_ok(run, CELL_B)], at=START)
    second = make_raw_removal([make_failed(run, CELL_B)], at=START + timedelta(days=1))
    for name, removal in (("a", second), ("b", first)):
        store.put(raw_removal_key(run.run_id, name), removal.to_json())

    removals = read_raw_removals(store, run.run_id)

    assert removals == [first, second]
    key_a, key_b = (result_key(run.run_id, cell.cell_id, 1, "a1") for cell in (CELL_A, CELL_B))
    found = {key: removed.status for key, removed in index_removed_results(removals).items()}
    assert found == {key_a: "ok", key_b: "failed"}
    store.put(raw_removal_key(run.run_id, "c"), b"{")
    with pytest.raises(UserError, match="use the version of benchmatrix that wrote it"):
        read_raw_removals(store, run.run_id)
