"""removal: nothing is measured again, whatever point the removal ends at, and nothing is deleted that was not shown."""

from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from datetime import UTC, datetime, timedelta
from itertools import count
from pathlib import Path

import pytest

from bench.errors import UserError
from bench.raw_removals import index_removed_results, read_raw_removals
from bench.schema import Run
from bench.store import LATEST_RUN_KEY, Store, StoreError, raw_removal_key, results_prefix
from factories import put_documents
from held_results import CollectedResults
from runner.records import Retries
from runner.retention.plan import RunPlan, plan_removal
from runner.retention.policy import parse_policy
from runner.retention.removal import remove_raw_results
from s3_server import S3Server
from stored_runs import (
    CELL_A,
    CELL_B,
    count_failed_repeats,
    list_missing_repeats,
    make_contaminated,
    make_failed,
    make_ok,
    make_own_run,
    name_repeats,
)

LATER = datetime.now(UTC) + timedelta(days=200)
POLICY = parse_policy("90d", include_unfinished=False)
NUM_REPEATS = 3


@pytest.fixture
def run(store: Store) -> Run:
    return put_old_run(store)


def put_old_run(store: Store) -> Run:
    """Put an old run whose second cell failed in every repeat, and a newer one; return the old one."""
    newest = make_own_run(begun=datetime(2026, 3, 2, tzinfo=UTC), number="0000")
    put_documents(store, newest, [make_ok(newest, CELL_A), make_ok(newest, CELL_B)])
    old = make_own_run(repeats=NUM_REPEATS)
    repeats = range(1, NUM_REPEATS + 1)
    put_documents(store, old, [make_ok(old, CELL_A, number) for number in repeats])
    put_documents(store, old, [make_failed(old, CELL_B, number) for number in repeats])
    return old


def list_raw(store: Store, run: Run) -> list[str]:
    return sorted(store.list_keys(results_prefix(run.run_id)))


def remove(store: Store, held: CollectedResults) -> list[RunPlan]:
    """Plan and remove; return what was reported."""
    plan = plan_removal(store, held, POLICY, LATER)
    reported: list[RunPlan] = []
    remove_raw_results(store, held, POLICY, plan, LATER, reported.append)
    return reported


@pytest.mark.parametrize("place", ["file", "s3"])
def test_removed_repeats_are_not_measured_again_and_keep_their_status(
    place: str, request: pytest.FixtureRequest, tmp_path: Path
) -> None:
    store = Store.open(f"file://{tmp_path}/store")
    if place == "s3":
        server: S3Server = request.getfixturevalue("s3_server")
        store = Store.open(f"s3://{server.bucket}/runs-of-a-team")
    run = put_old_run(store)
    others = [key for key in store.list_keys("") if not key.startswith(results_prefix(run.run_id))]

    (reported,) = remove(store, CollectedResults.collect(store))

    assert len(reported.removable) == 2 * NUM_REPEATS
    assert list_raw(store, run) == []
    assert list_missing_repeats(store, run) == []
    assert len(list_missing_repeats(store, run, Retries(failed=True))) == NUM_REPEATS
    assert count_failed_repeats(store, run) == NUM_REPEATS
    (removal,) = read_raw_removals(store, run.run_id)
    assert (removal.at, removal.policy) == (LATER, "--raw-older-than 90d")
    assert set(others) < set(store.list_keys(""))


def test_a_removed_repeat_that_was_contaminated_can_be_measured_again(store: Store, run: Run) -> None:
    put_documents(store, run, [make_contaminated(run, CELL_A, attempt="a1")])  # in place of the first one

    remove(store, CollectedResults.collect(store))

    assert list_raw(store, run) == []
    assert name_repeats(list_missing_repeats(store, run, Retries(contaminated=True))) == [("pytorch", 1)]


@contextmanager
def end_after(num_calls: int, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Have the store go away after so many writing calls; one that deletes has half of its keys done by then."""
    put, delete_many = Store.put, Store.delete_many
    calls = count(1)

    def fail_to_put(store: Store, key: str, data: bytes) -> None:
        if next(calls) > num_calls:
            raise StoreError("the store went away")
        put(store, key, data)

    def fail_to_delete(store: Store, keys: Iterable[str]) -> None:
        keys = list(keys)
        if next(calls) > num_calls:
            delete_many(store, keys[: len(keys) // 2])
            raise StoreError("the store went away")
        delete_many(store, keys)

    with monkeypatch.context() as patched:
        patched.setattr(Store, "put", fail_to_put)
        patched.setattr(Store, "delete_many", fail_to_delete)
        yield


@pytest.mark.parametrize("num_calls", range(6))
def test_a_removal_that_ends_anywhere_is_safe_and_goes_on(
    store: Store, run: Run, num_calls: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Six results in chunks of two: three records and three requests to delete."""
    monkeypatch.setattr("runner.retention.removal.RESULTS_PER_RECORD", 2)
    held = CollectedResults.collect(store)

    with end_after(num_calls, monkeypatch), suppress(StoreError):
        remove(store, held)

    assert list_missing_repeats(store, run) == []
    assert count_failed_repeats(store, run) == NUM_REPEATS
    left = len(list_raw(store, run))
    (reported,) = remove(store, held)
    assert len(reported.removable) == left
    assert list_raw(store, run) == []
    assert list_missing_repeats(store, run) == []
    recorded = index_removed_results(read_raw_removals(store, run.run_id))
    assert len(recorded) == 2 * NUM_REPEATS
    assert remove(store, held) == []
    assert plan_removal(store, held, POLICY, LATER).num_removed_before == 1


def test_two_removals_at_once_do_no_harm(store: Store, run: Run) -> None:
    held = CollectedResults.collect(store)
    plan = plan_removal(store, held, POLICY, LATER)

    def remove_as_another_process(_: RunPlan) -> None:
        remove_raw_results(store, held, POLICY, plan, LATER, lambda _: None)

    delete_many = Store.delete_many
    with pytest.MonkeyPatch.context() as patched:

        def delete_beside_another(store: Store, keys: Iterable[str]) -> None:
            patched.setattr(Store, "delete_many", delete_many)
            remove(store, held)
            delete_many(store, keys)

        patched.setattr(Store, "delete_many", delete_beside_another)
        remove_raw_results(store, held, POLICY, plan, LATER, remove_as_another_process)

    assert list_raw(store, run) == []
    assert list_missing_repeats(store, run) == []


def test_what_came_after_the_plan_was_shown_stays(store: Store, run: Run) -> None:
    plan = plan_removal(store, CollectedResults.collect(store), POLICY, LATER)
    put_documents(store, run, [make_ok(run, CELL_A, attempt="late")])

    remove_raw_results(store, CollectedResults.collect(store), POLICY, plan, LATER, lambda _: None)

    assert list_raw(store, run) == [f"{results_prefix(run.run_id)}{CELL_A.cell_id}/1-late.json"]


def test_a_run_that_became_the_newest_report_while_the_plan_was_read_keeps_everything(store: Store, run: Run) -> None:
    held = CollectedResults.collect(store)
    plan = plan_removal(store, held, POLICY, LATER)
    assert len(plan.runs) == 1
    there = list_raw(store, run)
    store.put(LATEST_RUN_KEY, run.to_json())

    remove_raw_results(store, held, POLICY, plan, LATER, lambda _: None)

    assert list_raw(store, run) == there


def test_without_the_rows_at_the_last_moment_nothing_is_deleted(store: Store, run: Run) -> None:
    held = CollectedResults.collect(store)
    plan = plan_removal(store, held, POLICY, LATER)
    there = list_raw(store, run)

    held.held.clear()  # somebody removed the data set
    remove_raw_results(store, held, POLICY, plan, LATER, lambda _: None)

    assert list_raw(store, run) == there
    assert read_raw_removals(store, run.run_id) == []


@pytest.mark.parametrize("damage", [b"", b"{", b'{"schema_version": 3}'])
def test_a_record_that_cannot_be_read_stops_the_run_that_would_measure_again(
    store: Store, run: Run, damage: bytes
) -> None:
    remove(store, CollectedResults.collect(store))
    store.put(raw_removal_key(run.run_id, "later"), damage)

    with pytest.raises(UserError, match=r"raw-removals/later\.json: which results were removed cannot be read"):
        list_missing_repeats(store, run)
