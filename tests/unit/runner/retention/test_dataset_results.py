"""dataset_results: what the data set holds, and what stays of a run without its raw results."""

import os
from datetime import UTC, datetime, timedelta
from pathlib import Path
from uuid import UUID

import pandas as pd
import pytest

from bench.raw_removals import read_raw_removals
from bench.schema import Run
from bench.store import Store, StoreError, raw_removal_key, results_prefix
from collector.results.load import load_run
from factories import make_validity, put_documents
from runner.records import Retries
from runner.retention.dataset_results import DatasetResults
from runner.retention.plan import CHANGED, NOT_HELD, plan_removal
from runner.retention.policy import parse_policy
from runner.retention.removal import remove_raw_results
from s3_server import S3Server
from stored_runs import CELL_A, CELL_B, list_missing_repeats, make_failed, make_ok, make_own_run, name_repeats

LATER = datetime.now(UTC) + timedelta(days=200)
POLICY = parse_policy("90d", include_unfinished=False)


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder of what cannot be written into a store."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    return tmp_path / "cache"


@pytest.fixture
def run(store: Store) -> Run:
    return put_collected_run(store)


def put_collected_run(store: Store) -> Run:
    """Put an old run and collect every result of it, and put a newer one; return the old one."""
    newest = make_own_run(begun=datetime(2026, 3, 2, tzinfo=UTC), number="0000")
    put_documents(store, newest, [])
    run = make_own_run(repeats=2)
    results = [make_ok(run, CELL_A), make_failed(run, CELL_A, 2), make_ok(run, CELL_B), make_ok(run, CELL_B, 2)]
    put_documents(store, run, results)
    load_run(store, run.run_id, writes_tables=True)
    return run


def remove(store: Store) -> None:
    plan = plan_removal(store, DatasetResults(store), POLICY, LATER)
    remove_raw_results(store, DatasetResults(store), POLICY, plan, LATER, lambda _: None)


def list_raw(store: Store, run: Run) -> list[str]:
    return list(store.list_keys(results_prefix(run.run_id)))


def find_part(store: Store, run: Run, table: str) -> str:
    (key,) = store.list_keys(f"tables/{table}/{run.run_id}")
    return key


def test_what_was_collected_is_held_in_the_version_that_the_store_lists(store: Store, run: Run) -> None:
    held = {key: found for key, (found,) in DatasetResults(store).read_held(run.run_id).items()}

    listed = {found.key: (found.num_bytes, found.version) for found in store.list_objects(results_prefix(run.run_id))}
    assert {key: (found.num_bytes, found.version) for key, found in held.items()} == listed
    assert sorted(found.status for found in held.values()) == ["failed", "ok", "ok", "ok"]
    assert {found.attempt_seconds for found in held.values()} == {10.0}


@pytest.mark.parametrize("ids", [range(10, 20), range(20, 10, -1)], ids=["ascending", "descending"])
def test_results_that_were_written_anew_and_collected_again_are_removed(
    store: Store, ids: range, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Files of the data set are read in the order of their names, which are random: the older version first, or last.
    monkeypatch.setattr("collector.results.dataset.parts.uuid4", map(UUID, (f"{one:032x}" for one in ids)).__next__)
    run = put_collected_run(store)
    for key in list_raw(store, run):
        store.put(key, store.get(key))
    assert plan_removal(store, DatasetResults(store), POLICY, LATER).kept_runs[run.run_id] == f"4 raw results {CHANGED}"
    load_run(store, run.run_id, writes_tables=True)

    remove(store)

    assert list_raw(store, run) == []
    assert set(load_run(store, run.run_id).results["status"]) == {"ok", "failed"}


def test_another_file_of_the_same_size_and_time_of_writing_is_not_held(store: Store, run: Run) -> None:
    """`cp -p`, `rsync -a` and `tar` keep both: the old rows counted, and a result that no table held was deleted."""
    path = Path(store.url.removeprefix("file://")) / list_raw(store, run)[-1]
    status, other = path.stat(), path.with_name("copy")
    result = make_ok(run, CELL_B, 2)
    other.write_bytes(result.model_copy(update={"finished_at": result.finished_at + timedelta(seconds=5)}).to_json())
    os.utime(other, ns=(status.st_atime_ns, status.st_mtime_ns))
    other.rename(path)
    assert (path.stat().st_size, path.stat().st_mtime_ns) == (status.st_size, status.st_mtime_ns)

    assert plan_removal(store, DatasetResults(store), POLICY, LATER).runs[0].kept == {CHANGED: 1}
    remove(store)
    assert path.exists()

    load_run(store, run.run_id, writes_tables=True)
    held = DatasetResults(store).read_held(run.run_id)[list_raw(store, run)[-1]]
    assert {found.attempt_seconds for found in held} == {10.0, 15.0}


@pytest.mark.parametrize("place", ["file", "s3"])
def test_tables_and_step_times_are_the_same_without_the_raw_results(
    place: str, request: pytest.FixtureRequest, tmp_path: Path
) -> None:
    store = Store.open(f"file://{tmp_path}/store")
    if place == "s3":
        server: S3Server = request.getfixturevalue("s3_server")
        store = Store.open(f"s3://{server.bucket}/runs-of-a-team")
    run = put_collected_run(store)
    before = load_run(store, run.run_id)

    remove(store)

    assert list_raw(store, run) == []
    for rebuilds in (False, True, True, False):
        after = load_run(store, run.run_id, writes_tables=True, rebuilds_tables=rebuilds)
        pd.testing.assert_frame_equal(after.results, before.results)
        pd.testing.assert_frame_equal(after.samples, before.samples)
        assert after.environments == before.environments


def test_rows_whose_results_vanished_without_a_record_do_not_count(store: Store, run: Run) -> None:
    store.delete_many(list_raw(store, run))
    assert set(load_run(store, run.run_id).results["status"]) == {"missing"}


def test_a_result_that_is_not_collected_yet_stays(store: Store, run: Run) -> None:
    put_documents(store, run, [make_ok(run, CELL_A, 2, attempt="late")])

    plan = plan_removal(store, DatasetResults(store), POLICY, LATER)

    assert plan.runs[0].kept == {NOT_HELD: 1}
    remove(store)
    assert list_raw(store, run) == [f"{results_prefix(run.run_id)}{CELL_A.cell_id}/2-late.json"]
    assert len(load_run(store, run.run_id).results) == 4


def test_a_removed_record_is_known_as_contaminated_below_a_graver_verdict(store: Store) -> None:
    newest = make_own_run(begun=datetime(2026, 3, 2, tzinfo=UTC), number="0000")
    put_documents(store, newest, [])
    run = make_own_run()
    disturbed = make_ok(run, CELL_A).model_copy(update={"validity": make_validity("over-peak", "contaminated")})
    put_documents(store, run, [disturbed, make_ok(run, CELL_B)])
    load_run(store, run.run_id, writes_tables=True)
    remove(store)

    assert list_raw(store, run) == []
    assert name_repeats(list_missing_repeats(store, run, Retries(contaminated=True))) == [("pytorch", 1)]


@pytest.mark.parametrize("table", ["attempts", "steps", "environments"])
@pytest.mark.parametrize("damage", ["cut", "gone"])
def test_nothing_is_held_by_a_part_that_cannot_be_read_in_full(store: Store, run: Run, table: str, damage: str) -> None:
    key = find_part(store, run, table)
    if damage == "cut":
        store.put(key, store.get(key)[:-20])
    else:
        store.delete_many([key])

    assert DatasetResults(store).read_held(run.run_id) == {}
    remove(store)
    assert len(list_raw(store, run)) == 4
    assert read_raw_removals(store, run.run_id) == []


def test_rows_of_another_version_of_the_tool_are_no_reason_to_delete(store: Store, run: Run) -> None:
    key = find_part(store, run, "attempts")
    folder, _, name = key.rpartition("/")
    store.put(f"{folder}/1-00000000.{name.partition('.')[2]}", store.get(key))
    store.delete_many([key])

    assert DatasetResults(store).read_held(run.run_id) == {}


def test_what_is_only_in_this_users_cache_is_not_held(
    store: Store, run: Run, cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store.delete_many(list(store.list_keys("tables")))
    write = Store.put_with_short_retries

    def refuse(place: Store, key: str, data: bytes) -> None:
        if place.url == store.url:
            raise StoreError("the store is read-only")
        write(place, key, data)

    with monkeypatch.context() as patched:
        patched.setattr(Store, "put_with_short_retries", refuse)
        load_run(store, run.run_id, writes_tables=True)

    assert list(cache.rglob("*.parquet"))
    assert DatasetResults(store).read_held(run.run_id) == {}


def test_a_store_without_a_data_set_holds_nothing(tmp_path: Path) -> None:
    assert DatasetResults(Store.open(f"file://{tmp_path}/empty")).read_held("mine") == {}


def test_a_record_of_another_version_of_an_object_does_not_make_its_row_count(store: Store, run: Run) -> None:
    remove(store)
    (removal,) = read_raw_removals(store, run.run_id)
    changed = tuple(result.model_copy(update={"version": "another"}) for result in removal.results)
    (key,) = store.list_keys(f"runs/{run.run_id}/raw-removals")
    store.put(raw_removal_key(run.run_id, "a"), removal.model_copy(update={"results": changed}).to_json())
    store.delete_many([key])

    assert set(load_run(store, run.run_id).results["status"]) == {"missing"}


@pytest.mark.parametrize("rebuilds", [False, True])
def test_a_damaged_file_with_the_only_rows_of_removed_results_counts_again_when_it_is_put_back(
    store: Store, run: Run, rebuilds: bool
) -> None:
    before = load_run(store, run.run_id)
    remove(store)
    key = find_part(store, run, "attempts")
    whole = store.get(key)
    store.put(key, whole[:100])

    damaged = load_run(store, run.run_id, writes_tables=True, rebuilds_tables=rebuilds)
    assert set(damaged.results["status"]) == {"missing"}
    assert damaged.notices[-1].startswith(
        f"{run.run_id}: 4 results have no row that can be read, and their raw results were removed: put the files "
    )
    assert store.get(key) == whole[:100]

    store.put(key, whole)
    after = load_run(store, run.run_id, writes_tables=True)
    pd.testing.assert_frame_equal(after.results, before.results)
    assert after.notices == ()
