"""What is left in the store when a repeat has its record, and what a record that cannot be read means."""

from dataclasses import dataclass, replace
from typing import Any

import pytest

from bench.errors import UserError
from bench.exit_codes import EXIT_RESULT_IN_LOG
from bench.schema import Cell, Result
from bench.store import MAX_DOCUMENT_BYTES, Store, result_key
from bench.worker.delivery import mark_record
from cluster_objects import load_job, load_pod
from factories import make_cell, make_result
from job_manifests import RUN_ID, make_key, plan
from ongoing_runs import make_ongoing
from runner.kubernetes.objects import read_job_status, read_pod_status
from runner.kubernetes.recording import ResultRecorder
from runner.kubernetes.tracked_jobs import TrackedJob
from runner.matrix import Repeat


def make_recorder(store: Store) -> ResultRecorder:
    return ResultRecorder(run=make_ongoing(store))


CELL = make_cell()
RESULT = make_result(CELL, run_id=RUN_ID)
KEY = result_key(RUN_ID, CELL.cell_id, 1, "a1")
AT = "2026-03-01T12:00:00Z"
JOB = read_job_status(
    {
        "metadata": {"name": "j", "uid": "u", "creationTimestamp": AT, "labels": {}},
        "spec": {},
        "status": {"conditions": [{"type": "Failed", "status": "True", "reason": "PodFailurePolicy"}]},
    }
)


@dataclass
class LogServer:
    """An API server that has the log of one pod."""

    log: bytes
    patience_seconds: float = 0.0

    def request(self, verb: str, path: str, **_: Any) -> bytes:
        assert (verb, path.rpartition("/")[2]) == ("get", "log")
        return self.log


def record_logged(store: Store, line: bytes) -> Result:
    """Return the record of a repeat whose pod left this record in its log."""
    tracked = TrackedJob(repeat=Repeat(planned=plan(CELL), number=1), key=make_key(CELL))
    ended = {"exitCode": EXIT_RESULT_IN_LOG, "reason": "Error", "startedAt": AT, "finishedAt": AT}
    pod = read_pod_status(
        {
            "metadata": {"name": "p", "uid": "a1", "creationTimestamp": AT},
            "spec": {"nodeName": "n"},
            "status": {"phase": "Failed", "containerStatuses": [{"name": "bench", "state": {"terminated": ended}}]},
        }
    )
    tracked.pods = {"a1": pod}
    server = LogServer(log=f"{mark_record(line)}\n".encode())
    found = ResultRecorder(run=make_ongoing(store, connection=server)).record_finished(tracked, JOB)
    assert isinstance(found, Result)
    return found


def test_a_record_in_a_log_is_stored_as_the_cell_wrote_it(store: Store) -> None:
    assert record_logged(store, RESULT.to_json()) == RESULT
    assert store.get(KEY) == RESULT.to_json()


def put_record(store: Store, cell: Cell, data: bytes, repeat: int = 1) -> None:
    store.put(result_key(RUN_ID, cell.cell_id, repeat, "a1"), data)


def track(cell: Cell) -> TrackedJob:
    return TrackedJob(repeat=Repeat(planned=plan(cell), number=1), key=make_key(cell))


OF_ANOTHER_CELL = make_result(make_cell(batch_size=2), run_id=RUN_ID).to_json()


@pytest.mark.parametrize(
    "data", [b"", b"\xff\xfe", b"{", bytes(MAX_DOCUMENT_BYTES + 1), OF_ANOTHER_CELL], ids=lambda data: str(len(data))
)
def test_a_record_that_its_cell_damaged_is_no_reason_to_end_the_run(data: bytes, store: Store) -> None:
    recorder = make_recorder(store)
    cell = make_cell()
    put_record(store, cell, data)
    tracked = track(cell)
    tracked.pods = {"p": replace(load_pod("running"), exit_code=0)}

    assert recorder.find_record(tracked) is None
    result = recorder.record_finished(tracked, load_job("complete"))
    assert isinstance(result, Result)
    assert result.status == "failed"
    assert result.error is not None
    assert recorder.find_record(tracked) == result


def test_a_record_of_another_version_ends_the_run_only_where_none_could_be_read(store: Store) -> None:
    recorder = make_recorder(store)
    cell, other = make_cell(batch_size=1), make_cell(batch_size=2)
    result = make_result(other, run_id=RUN_ID)
    put_record(store, cell, result.to_json().replace(b'"schema_version": 2', b'"schema_version": 3', 1))
    with pytest.raises(UserError, match="do the images have the version of this tool"):
        recorder.find_record(track(cell))

    put_record(store, other, result.to_json())
    assert recorder.find_record(track(other)) == result
    assert recorder.find_record(track(cell)) is None


def test_a_record_of_an_earlier_round_is_none_of_this_one(store: Store) -> None:
    recorder = make_recorder(store)
    put_record(store, CELL, RESULT.to_json())
    tracked = track(CELL)
    assert recorder.find_record(tracked) == RESULT
    tracked.earlier = (KEY,)
    tracked.pods = {"p": replace(load_pod("running"), exit_code=0)}
    assert recorder.find_record(tracked) is None

    new = make_result(CELL, run_id=RUN_ID, attempt=tracked.pods["p"].uid)
    key = result_key(RUN_ID, CELL.cell_id, 1, new.attempt)
    store.put(key, new.to_json())
    assert recorder.record_finished(tracked, load_job("complete")) == new
    assert store.get(key) == new.to_json()
