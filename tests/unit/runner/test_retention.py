"""Which raw results are removed, and that nothing is lost or measured again, whatever point a removal ends at."""

import json
import os
from collections.abc import Iterable, Mapping
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pandas as pd
import pytest

from bench.errors import UserError
from bench.schema import Run
from bench.store import LATEST_RUN_KEY, Store, StoreError, cancelled_key, report_key, results_prefix
from bench.store.documents import read_raw_removals
from collector.results.load import load_run
from factories import make_validity, put_documents
from runner.retention import RunPlan, plan_removal, remove_raw_results
from runner.runs import Retries
from stored_runs import CELL_A, CELL_B, list_missing_repeats, make_failed, make_ok, make_own_run, name_repeats

LATER = datetime.now(UTC) + timedelta(days=200)
"""When the tests' objects, written now, are 200 days old."""
POLICY = "--raw-older-than 90d"
NEWEST = "smoke-20260302-120000-0000"
SUSPICION, DECISION = (f"nights/smoke/changes/0a1b2c3d/{name}.json" for name in ("suspicion", "decision"))


def put_run(store: Store, number: str, *, day: int = 1, results: int = 2) -> Run:
    """Put a run of two cells with so many results, collect them, and return it."""
    run = make_own_run(begun=datetime(2026, 3, day, 12, 0, tzinfo=UTC), number=number)
    put_documents(store, run, [make_ok(run, CELL_A), make_failed(run, CELL_B)][:results])
    load_run(store, run.run_id, writes_tables=True)
    return run


@pytest.fixture
def old(store: Store) -> Run:
    """A complete run that is not the newest."""
    put_run(store, "0000", day=2)
    return put_run(store, "ab12")


def plan(store: Store, now: datetime = LATER) -> tuple[list[RunPlan], Mapping[str, str]]:
    """Return whose raw results are removed, and the runs that keep theirs, with the reason."""
    return plan_removal(store, timedelta(days=90), now)


def remove(store: Store) -> None:
    for run in plan(store)[0]:
        remove_raw_results(store, run, POLICY, LATER)


def list_planned(store: Store) -> set[str]:
    return {run.run_id for run in plan(store)[0]}


def list_raw(store: Store, run: Run) -> list[str]:
    return sorted(store.list_keys(results_prefix(run.run_id)))


def test_rows_and_status_stay_without_the_raw_results(store: Store) -> None:
    put_run(store, "0000", day=2)
    run = put_run(store, "ab12")
    others = [key for key in store.list_keys("") if not key.startswith(results_prefix(run.run_id))]
    before = load_run(store, run.run_id)
    (planned,) = plan(store)[0]
    assert planned.num_bytes == sum(found.num_bytes for found in store.list_objects(results_prefix(run.run_id)))

    remove(store)

    assert list_raw(store, run) == []
    assert list_missing_repeats(store, run) == []
    assert len(list_missing_repeats(store, run, Retries(failed=True))) == 1
    (removal,) = read_raw_removals(store, run.run_id)
    assert (removal.at, removal.policy) == (LATER, POLICY)
    assert set(others) < set(store.list_keys(""))
    assert plan(store)[0] == []
    after = load_run(store, run.run_id, writes_tables=True)
    pd.testing.assert_frame_equal(after.results, before.results)
    pd.testing.assert_frame_equal(after.samples, before.samples)
    assert after.environments == before.environments


@pytest.mark.parametrize("num_calls", [0, 1])
def test_a_removal_that_ends_anywhere_is_safe_and_goes_on(
    store: Store, old: Run, num_calls: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    put, delete_many, calls = Store.put, Store.delete_many, iter(range(10))

    def fail_to_put(store: Store, key: str, data: bytes) -> None:
        if next(calls) >= num_calls:
            raise StoreError("the store went away")
        put(store, key, data)

    def fail_to_delete(store: Store, keys: Iterable[str]) -> None:
        delete_many(store, list(keys)[:1])
        raise StoreError("the store went away")

    with monkeypatch.context() as patched, suppress(StoreError):
        patched.setattr(Store, "put", fail_to_put)
        patched.setattr(Store, "delete_many", fail_to_delete)
        remove(store)

    assert len(list_raw(store, old)) == 2 - num_calls
    assert list_missing_repeats(store, old) == []
    remove(store)
    assert list_raw(store, old) == []
    assert list_missing_repeats(store, old) == []
    assert len(list_missing_repeats(store, old, Retries(failed=True))) == 1


def test_a_removed_repeat_that_was_contaminated_can_be_measured_again(store: Store, old: Run) -> None:
    run = make_own_run(begun=datetime(2026, 3, 1, 13, 0, tzinfo=UTC), number="cd34")
    disturbed = make_ok(run, CELL_A).model_copy(update={"validity": make_validity("over-peak", "contaminated")})
    put_documents(store, run, [disturbed, make_ok(run, CELL_B)])
    load_run(store, run.run_id, writes_tables=True)

    remove(store)

    assert list_raw(store, run) == []
    assert name_repeats(list_missing_repeats(store, run, Retries(contaminated=True))) == [("pytorch", 1)]


@pytest.mark.parametrize("how", ["late", "rewritten", "foreign"])
def test_a_run_with_a_raw_result_that_the_data_set_does_not_hold_stays(store: Store, old: Run, how: str) -> None:
    key = list_raw(store, old)[0]
    if how == "late":
        put_documents(store, old, [make_ok(old, CELL_A, attempt="late")])
    elif how == "rewritten":
        store.put(key, store.get(key))
    else:
        store.put(f"{results_prefix(old.run_id)}notes.txt", b"mine")
    there = list_raw(store, old)

    assert "raw results are not in the data set as they are now" in plan(store)[1][old.run_id]
    remove(store)
    assert list_raw(store, old) == there


def test_the_newest_run_and_the_one_of_the_newest_report_stay(store: Store, old: Run) -> None:
    third = put_run(store, "cd34")
    put_documents(store, make_own_run(begun=datetime(2099, 3, 1, tzinfo=UTC)), [])  # takes nobody's place
    store.put(LATEST_RUN_KEY, old.to_json())

    assert list_planned(store) == {third.run_id}
    assert plan(store)[1] == {old.run_id: "latest/run.json names it", NEWEST: "the newest run"}

    store.put(LATEST_RUN_KEY, old.to_json()[:100])
    with pytest.raises(UserError, match=r"latest/run\.json: which run the newest report is of cannot be read"):
        plan(store)


def test_runs_of_a_change_that_is_not_decided_stay(store: Store, old: Run) -> None:
    other = put_run(store, "cd34")
    named = {"night_run_id": old.run_id, "first_run_id": old.run_id, "confirmation_run_id": other.run_id}
    store.put(SUSPICION, json.dumps(named).encode())
    assert plan(store)[1][old.run_id] == "a change that is not decided is about it"
    assert list_planned(store) == set()

    store.put(DECISION, b"{}")
    assert list_planned(store) == {old.run_id, other.run_id}
    store.delete_many([DECISION])
    store.put(SUSPICION, json.dumps(named | {"confirmation_run_id": None}).encode())  # for the better: needs none
    assert list_planned(store) == {old.run_id, other.run_id}
    store.put(SUSPICION, b"{")
    with pytest.raises(UserError, match=r"suspicion\.json: which runs the suspected change is about cannot be read"):
        plan(store)


@pytest.mark.parametrize("how", ["cancelled", "reported"])
def test_a_run_that_lacks_repeats_stays_until_it_is_known_to_be_over(store: Store, old: Run, how: str) -> None:
    half = put_run(store, "cd34", results=1)
    assert list_planned(store) == {old.run_id}
    assert plan(store)[1][half.run_id].startswith("it may go on: ")

    store.put(cancelled_key(half.run_id, "c1") if how == "cancelled" else report_key(half.run_id), b"{}")
    assert list_planned(store) == {old.run_id, half.run_id}


def test_age_counts_from_the_last_object_that_was_written(store: Store, old: Run) -> None:
    written = max(filter(None, (found.modified_at for found in store.list_objects(f"runs/{old.run_id}/"))))
    assert plan(store, written + timedelta(days=89))[0] == []
    assert len(plan(store, written + timedelta(days=91))[0]) == 1

    # A file whose time is 1970 stands for a server that knows none.
    os.utime(Path(store.url.removeprefix("file://")) / list_raw(store, old)[0], (0, 0))
    assert plan(store)[1][old.run_id].startswith("how old it is is not known")
