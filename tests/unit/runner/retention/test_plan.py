"""plan: which raw results a policy names, and which stay whatever it says."""

import json
import os
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from bench.errors import UserError
from bench.schema import Run
from bench.store import LATEST_RUN_KEY, Store, cancelled_key, report_key, run_key
from factories import put_documents
from held_results import CollectedResults
from runner.retention.plan import CHANGED, FOREIGN, NOT_HELD, plan_removal
from runner.retention.policy import parse_policy
from signing import open_signing
from stored_runs import CELL_A, CELL_B, make_failed, make_ok, make_own_run

LATER = datetime.now(UTC) + timedelta(days=200)
"""When the tests' objects, written now, are 200 days old."""
POLICY = parse_policy("90d", include_unfinished=False)


def put_run(store: Store, number: str, *, day: int = 1, results: int = 2) -> Run:
    """Put a run of two cells with so many results, and return it."""
    run = make_own_run(begun=datetime(2026, 3, day, 12, 0, tzinfo=UTC), number=number)
    put_documents(store, run, [make_ok(run, CELL_A), make_failed(run, CELL_B)][:results])
    return run


@pytest.fixture
def old(store: Store) -> Run:
    """A complete run that is not the newest."""
    put_run(store, "0000", day=2)
    return put_run(store, "ab12")


def test_a_finished_run_whose_rows_are_held_is_planned_with_its_bytes(store: Store, old: Run) -> None:
    listed = {found.key: found.num_bytes for found in store.list_objects(f"runs/{old.run_id}/results/")}

    plan = plan_removal(store, CollectedResults.collect(store), POLICY, LATER)

    (planned,) = plan.runs
    assert planned.run_id == old.run_id
    assert {result.key: result.held.num_bytes for result in planned.removable} == listed
    assert (plan.num_results, plan.num_bytes) == (2, sum(listed.values()))
    assert not planned.kept


def test_nothing_is_planned_without_a_data_set(store: Store, old: Run) -> None:
    plan = plan_removal(store, CollectedResults(), POLICY, LATER)

    assert plan.runs == ()
    assert plan.kept_runs[old.run_id] == f"2 raw results {NOT_HELD}"


def test_what_came_changed_or_was_never_a_result_stays(store: Store, old: Run) -> None:
    held = CollectedResults.collect(store)
    other = make_ok(old, CELL_A, attempt="a2")
    put_documents(store, old, [other])
    changed = make_failed(old, CELL_B)
    key = f"runs/{old.run_id}/results/{CELL_B.cell_id}/1-a1.json"
    store.put(key, changed.to_json() + b" ")
    store.put(f"runs/{old.run_id}/results/notes.txt", b"mine")

    (planned,) = plan_removal(store, held, POLICY, LATER).runs

    assert [result.key for result in planned.removable] == [f"runs/{old.run_id}/results/{CELL_A.cell_id}/1-a1.json"]
    assert planned.kept == {NOT_HELD: 1, CHANGED: 1, FOREIGN: 1}


def test_an_object_of_equal_size_that_was_written_anew_stays(store: Store, old: Run) -> None:
    held = CollectedResults.collect(store)
    key = f"runs/{old.run_id}/results/{CELL_A.cell_id}/1-a1.json"
    store.put(key, bytes(reversed(store.get(key))))

    (planned,) = plan_removal(store, held, POLICY, LATER).runs

    assert key not in {result.key for result in planned.removable}
    assert planned.kept == {CHANGED: 1}


def test_the_newest_run_and_the_one_of_the_newest_report_stay(store: Store, old: Run) -> None:
    third = put_run(store, "cd34")
    store.put(LATEST_RUN_KEY, old.to_json())

    plan = plan_removal(store, CollectedResults.collect(store), POLICY, LATER)

    assert [run.run_id for run in plan.runs] == [third.run_id]
    assert plan.kept_runs == {
        old.run_id: "latest/run.json names it",
        "smoke-20260302-120000-0000": "the newest run",
    }


def test_the_newest_run_stays_beside_one_that_is_dated_in_the_future(store: Store, old: Run) -> None:
    put_documents(store, make_own_run(begun=datetime(2099, 3, 1, tzinfo=UTC)), [])

    plan = plan_removal(store, CollectedResults.collect(store), POLICY, LATER)

    assert [run.run_id for run in plan.runs] == [old.run_id]
    assert plan.kept_runs == {"smoke-20260302-120000-0000": "the newest run"}


def test_nothing_is_planned_if_the_newest_report_cannot_be_read(store: Store, old: Run) -> None:
    store.put(LATEST_RUN_KEY, old.to_json()[:100])

    with pytest.raises(UserError, match=r"latest/run\.json: which run the newest report is of cannot be read"):
        plan_removal(store, CollectedResults.collect(store), POLICY, LATER)


def test_runs_of_a_change_that_is_not_decided_stay(store: Store, old: Run) -> None:
    other = put_run(store, "cd34")
    folder = "nights/smoke/changes/0a1b2c3d"
    named = {"night_run_id": old.run_id, "first_run_id": old.run_id, "confirmation_run_id": other.run_id}
    store.put(f"{folder}/suspicion.json", json.dumps(named).encode())

    plan = plan_removal(store, CollectedResults.collect(store), POLICY, LATER)

    assert plan.runs == ()
    assert plan.kept_runs[old.run_id] == plan.kept_runs[other.run_id] == "a change that is not decided is about it"

    store.put(f"{folder}/decision.json", b"{}")
    plan = plan_removal(store, CollectedResults.collect(store), POLICY, LATER)
    assert {run.run_id for run in plan.runs} == {old.run_id, other.run_id}


def test_planted_marks_and_decisions_let_nothing_of_a_signed_store_go(tmp_path: Path) -> None:
    plain, signing = Store.open(f"file://{tmp_path}"), open_signing(tmp_path)
    put_run(signing, "0000", day=2)
    questioned, half = put_run(signing, "ab12"), put_run(signing, "cd34", results=1)
    held, folder = CollectedResults.collect(plain), "nights/smoke/changes/0a1b2c3d"
    signing.put(f"{folder}/suspicion.json", json.dumps({"night_run_id": questioned.run_id}, indent=1).encode())
    for store, num_planned in ((plain, 0), (signing, 2)):
        store.put(f"{folder}/decision.json", b'{\n "a": 1\n}')
        store.put(cancelled_key(half.run_id, "c1"), b'{\n "a": 1\n}')
        plan = plan_removal(signing, held, POLICY, LATER)
        assert len(plan.runs) == num_planned
    assert set(plan_removal(plain, held, POLICY, LATER).signed_run_ids) == {questioned.run_id, half.run_id}


def test_a_change_that_needs_no_confirmation_keeps_no_run(store: Store, old: Run) -> None:
    named = {"night_run_id": old.run_id, "confirmation_run_id": None}
    store.put("nights/smoke/changes/0a1b2c3d/suspicion.json", json.dumps(named).encode())

    (planned,) = plan_removal(store, CollectedResults.collect(store), POLICY, LATER).runs

    assert planned.run_id == old.run_id


@pytest.mark.parametrize("data", [b"", b"{", b"[]"])
def test_nothing_is_planned_if_a_pending_change_cannot_be_read(store: Store, old: Run, data: bytes) -> None:
    store.put("nights/smoke/changes/0a1b2c3d/suspicion.json", data)

    with pytest.raises(UserError, match=r"suspicion\.json: which runs the suspected change is about cannot be read"):
        plan_removal(store, CollectedResults.collect(store), POLICY, LATER)


@pytest.mark.parametrize("how", ["cancelled", "reported", "option"])
def test_a_run_that_lacks_repeats_stays_until_it_is_known_to_be_over(store: Store, old: Run, how: str) -> None:
    half = put_run(store, "cd34", results=1)
    held = CollectedResults.collect(store)

    plan = plan_removal(store, held, POLICY, LATER)

    assert [run.run_id for run in plan.runs] == [old.run_id]
    assert plan.kept_runs[half.run_id].startswith("it may go on: 1 of 2 repeats have no record")

    if how == "cancelled":
        store.put(cancelled_key(half.run_id, "c1"), b"{}")
    elif how == "reported":
        store.put(report_key(half.run_id), b"<html>")
    policy = parse_policy("90d", include_unfinished=how == "option")
    assert {run.run_id for run in plan_removal(store, held, policy, LATER).runs} == {old.run_id, half.run_id}


def test_a_confirmation_that_a_deadline_cut_is_over_once_its_change_is_decided(store: Store, old: Run) -> None:
    cut = make_own_run(run_id="confirm-0a1b2c3d")
    put_documents(store, cut, [make_ok(cut, CELL_A)])
    folder = "nights/smoke/changes/0a1b2c3d"
    named = {"night_run_id": old.run_id, "confirmation_run_id": cut.run_id}
    store.put(f"{folder}/suspicion.json", json.dumps(named).encode())
    held = CollectedResults.collect(store)

    assert plan_removal(store, held, POLICY, LATER).kept_runs[cut.run_id] == "a change that is not decided is about it"
    store.put(f"{folder}/decision.json", b"{}")
    assert {run.run_id for run in plan_removal(store, held, POLICY, LATER).runs} == {old.run_id, cut.run_id}


def test_age_counts_from_the_last_object_that_was_written(store: Store, old: Run) -> None:
    held = CollectedResults.collect(store)
    written = max(filter(None, (found.modified_at for found in store.list_objects(f"runs/{old.run_id}/"))))

    assert plan_removal(store, held, POLICY, written + timedelta(days=89)).num_younger == 2
    assert len(plan_removal(store, held, POLICY, written + timedelta(days=91)).runs) == 1


def test_a_run_of_which_an_object_has_no_time_stays_and_says_so(store: Store, old: Run) -> None:
    """A file whose time is 1970 stands for a server that knows none; the store and its listing are real."""
    held = CollectedResults.collect(store)
    key = f"runs/{old.run_id}/results/{CELL_A.cell_id}/1-a1.json"
    os.utime(Path(store.url.removeprefix("file://")) / key, (0, 0))

    plan = plan_removal(store, held, POLICY, LATER)

    assert plan.runs == ()
    assert plan.kept_runs[old.run_id] == (
        "how old it is is not known: the store says no time at which 1 of its objects were written"
    )


def test_a_run_that_began_in_the_future_is_young(store: Store, old: Run) -> None:
    """Its machine's clock was ahead."""
    ahead = make_own_run(begun=LATER + timedelta(days=1), number="ef56")
    put_documents(store, ahead, [make_ok(ahead, CELL_A), make_ok(ahead, CELL_B)])

    plan = plan_removal(store, CollectedResults.collect(store), POLICY, LATER)

    assert plan.num_younger == 1
    assert ahead.run_id not in {run.run_id for run in plan.runs}


def test_a_run_whose_plan_cannot_be_read_stays_and_is_named(store: Store, old: Run) -> None:
    held = CollectedResults.collect(store)
    store.put(run_key(old.run_id), b"{")

    plan = plan_removal(store, held, POLICY, LATER)

    assert plan.runs == ()
    assert plan.kept_runs[old.run_id].startswith("its run.json cannot be read (no JSON")


def test_an_empty_store_has_nothing_to_remove(store: Store) -> None:
    plan = plan_removal(store, CollectedResults(), POLICY, LATER)

    assert (plan.runs, plan.kept_runs, plan.num_younger, plan.num_removed_before) == ((), {}, 0, 0)


@pytest.mark.parametrize("text", ["90", "0d", "-1d", "1h", "90 d", "d", "90D"])
def test_an_age_that_is_none_is_refused(text: str) -> None:
    with pytest.raises(UserError, match="--raw-older-than .*: expected a time of at least 1d, such as"):
        parse_policy(text, include_unfinished=False)


def test_an_age_beyond_all_dates_is_refused() -> None:
    with pytest.raises(UserError, match="--raw-older-than 100000d: expected a time of at most 31 years, such as"):
        parse_policy("100000d", include_unfinished=False)


def test_weeks_are_seven_days() -> None:
    assert parse_policy("12w", include_unfinished=False).older_than == timedelta(days=84)
