"""Damaged records count as missing; records are read once."""

import pytest

from bench.schema import Run
from bench.store import Store, result_key
from collector.results.load import load_run
from factories import make_result, put_documents
from ongoing_runs import make_ongoing
from runner.kubernetes.names import JobKey
from runner.kubernetes.recording import ResultRecorder
from runner.kubernetes.tracked_jobs import TrackedJob
from runner.runs import NO_RETRIES, Records, Retries, describe_damage, find_unfinished_run
from stored_runs import CELL_A, CELL_B, count_failed_repeats, list_missing_repeats, make_ok, make_own_run, name_repeats


def damage_first(run: Run, store: Store, how: str) -> str:
    """Put a damaged record of CELL_A into the store and return its key."""
    result = make_ok(run, CELL_A)
    data = result.to_json()
    damaged = {
        "cut": data[: len(data) // 2],
        "empty": b"",
        "no-json": b"{",
        "other-version": data.replace(b'"schema_version": 2', b'"schema_version": 3', 1),
        "anothers": make_ok(run, CELL_B).to_json(),
    }[how]
    assert damaged != data
    key = f"runs/{run.run_id}/results/{CELL_A.cell_id}/1-{result.attempt}.json"
    store.put(key, damaged)
    return key


@pytest.mark.parametrize("how", ["cut", "empty", "no-json", "other-version", "anothers"])
def test_a_damaged_record_is_missing_as_in_the_report(how: str, store: Store) -> None:
    run = make_own_run()
    put_documents(store, run, [make_ok(run, CELL_B)])
    key = damage_first(run, store, how)

    for retries in (NO_RETRIES, Retries(failed=True, contaminated=True)):
        assert name_repeats(list_missing_repeats(store, run, retries)) == [("pytorch", 1)]
    assert count_failed_repeats(store, run) == 0
    assert find_unfinished_run(store, make_own_run()) == run
    assert [document.key for document in load_run(store, run.run_id).skipped] == [key]
    warnings: list[str] = []
    describe_damage(Records.of(store, run).read_snapshot(), warnings.append)
    assert warnings == [f"damaged records: 1, which count as missing; such as {key}"]


def test_a_damaged_record_counts_for_the_name_of_the_next_job(store: Store) -> None:
    run = make_own_run()
    damage_first(run, store, "cut")
    snapshot = Records.of(store, run).read_snapshot()
    assert snapshot.num_records == {(CELL_A.cell_id, 1): 1}


@pytest.mark.parametrize("order", ["damaged-first", "damaged-last"])
def test_a_repeat_that_is_measured_again_has_the_record_that_can_be_read(order: str, store: Store) -> None:
    run = make_own_run()
    damage_first(run, store, "cut")
    repeat = list_missing_repeats(store, run)[0]
    tracked = TrackedJob(repeat=repeat, key=JobKey(run_id=run.run_id, cell_id=CELL_A.cell_id, number=1, retry_round=1))
    recorder = ResultRecorder(run=make_ongoing(store, plan=run))
    assert recorder.find_record(tracked) is None
    result = make_ok(run, CELL_A, attempt="zz" if order == "damaged-first" else "00")
    put_documents(store, run, [result])
    assert recorder.find_record(tracked) == result


def test_what_does_not_count_for_the_report_is_no_record_of_a_job(store: Store) -> None:
    run = make_own_run(run_id="run")
    result = make_result(CELL_A, run_id="run")
    key = result_key("run", CELL_A.cell_id, 1, "other")
    put_documents(store, run, [])
    store.put(key, result.to_json())
    (repeat, _) = list_missing_repeats(store, run)
    tracked = TrackedJob(repeat=repeat, key=JobKey(run_id="run", cell_id=CELL_A.cell_id, number=1, retry_round=0))
    recorder = ResultRecorder(run=make_ongoing(store, plan=run))
    assert recorder.find_record(tracked) is None
    assert [found.key for found in load_run(store, "run").skipped] == [key]
