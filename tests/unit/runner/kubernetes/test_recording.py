"""What is left in the store when a repeat has its record, and what a record that cannot be read means."""

from dataclasses import dataclass, replace
from typing import Any

import pytest

from bench.errors import EXIT_RESULT_IN_LOG, UserError
from bench.schema import Result
from bench.store import MAX_DOCUMENT_BYTES, Store, result_key
from bench.worker.delivery import mark_record
from cluster_objects import load_job, load_pod
from factories import make_cell, make_result
from job_manifests import RUN_ID
from ongoing_runs import make_ongoing, track_cell
from runner.kubernetes.recording import ResultRecorder

CELL = make_cell()
RESULT = make_result(CELL, run_id=RUN_ID)
KEY = result_key(RUN_ID, CELL.cell_id, 1, "a1")
ENDED = replace(load_pod("running"), uid="a1", exit_code=0)


@dataclass
class LogServer:
    """An API server that has the log of one pod."""

    log: bytes
    patience_seconds: float = 0.0

    def request(self, verb: str, path: str, **_: Any) -> bytes:
        assert (verb, path.rpartition("/")[2]) == ("get", "log")
        return self.log


def test_a_record_in_a_log_is_stored_as_the_cell_wrote_it(store: Store) -> None:
    tracked = track_cell(CELL)
    tracked.pods = {"a1": replace(ENDED, exit_code=EXIT_RESULT_IN_LOG)}
    server = LogServer(log=f"{mark_record(RESULT.to_json())}\n".encode())
    recorder = ResultRecorder(run=make_ongoing(store, connection=server))
    assert recorder.record_finished(tracked, load_job("oom")) == RESULT
    assert store.get(KEY) == RESULT.to_json()


OF_ANOTHER_CELL = make_result(make_cell(batch_size=2), run_id=RUN_ID).to_json()


@pytest.mark.parametrize(
    "data", [b"", b"\xff\xfe", b"{", bytes(MAX_DOCUMENT_BYTES + 1), OF_ANOTHER_CELL], ids=lambda data: str(len(data))
)
def test_a_record_that_its_cell_damaged_is_no_reason_to_end_the_run(data: bytes, store: Store) -> None:
    recorder = ResultRecorder(run=make_ongoing(store))
    store.put(KEY, data)
    tracked = track_cell(CELL)
    tracked.pods = {"p": ENDED}

    assert recorder.find_record(tracked) is None
    result = recorder.record_finished(tracked, load_job("complete"))
    assert isinstance(result, Result)
    assert result.status == "failed"
    assert result.error is not None
    assert recorder.find_record(tracked) == result


def test_a_record_of_another_version_ends_the_run_only_where_none_could_be_read(store: Store) -> None:
    recorder = ResultRecorder(run=make_ongoing(store))
    other = make_cell(batch_size=2)
    result = make_result(other, run_id=RUN_ID)
    store.put(KEY, result.to_json().replace(b'"schema_version": 2', b'"schema_version": 3', 1))
    with pytest.raises(UserError, match="do the images have the version of this tool"):
        recorder.find_record(track_cell(CELL))

    store.put(result_key(RUN_ID, other.cell_id, 1, "a1"), result.to_json())
    assert recorder.find_record(track_cell(other)) == result
    assert recorder.find_record(track_cell(CELL)) is None


def test_a_record_of_an_earlier_round_is_none_of_this_one(store: Store) -> None:
    recorder = ResultRecorder(run=make_ongoing(store))
    store.put(KEY, RESULT.to_json())
    tracked = track_cell(CELL)
    assert recorder.find_record(tracked) == RESULT
    tracked.earlier = (KEY,)
    tracked.pods = {"p": replace(ENDED, uid="a2")}
    assert recorder.find_record(tracked) is None

    new = make_result(CELL, run_id=RUN_ID, attempt="a2")
    key = result_key(RUN_ID, CELL.cell_id, 1, new.attempt)
    store.put(key, new.to_json())
    assert recorder.record_finished(tracked, load_job("complete")) == new
    assert store.get(key) == new.to_json()
