"""What is left in the store when a repeat has its record, and what a record that cannot be read means."""

from dataclasses import replace
from pathlib import Path
from typing import cast

import pytest

from bench.errors import UserError
from bench.schema import Cell, Result
from bench.store import MAX_DOCUMENT_BYTES, Store, meeting_key, result_key, tenants_prefix
from cluster_objects import load_job, load_pod
from factories import make_cell, make_result
from job_manifests import RUN_ID, make_key, plan
from runner.kubernetes.connection import Connection
from runner.kubernetes.recording import ResultRecorder
from runner.kubernetes.tracked_jobs import TrackedJob
from runner.matrix.plan import Repeat


@pytest.mark.parametrize(("tenants", "num_left"), [(2, 2), (1, 4)])
def test_what_tenants_left_to_meet_goes_with_the_record_of_their_repeat(
    tenants: int, num_left: int, tmp_path: Path
) -> None:
    """Of every group of this repeat, and of no other repeat or cell; a cell that is alone has none to look for."""
    store = Store.open(f"file://{tmp_path}")
    recorder = ResultRecorder(connection=cast(Connection, None), namespace="space", store=store)
    cell, other = make_cell(tenants=tenants), make_cell(tenants=4)
    groups = [(cell, 1, "disrupted"), (cell, 1, "last"), (cell, 11, "last"), (other, 1, "last")]
    for found, number, group in groups:
        store.put(meeting_key(RUN_ID, found.cell_id, number, group, "ready", 0), b"{}")

    recorder.clear_meetings(TrackedJob(repeat=Repeat(planned=plan(cell), number=1), key=make_key(cell)))

    assert len(list(store.list_keys(tenants_prefix(RUN_ID)))) == num_left


def put_record(store: Store, cell: Cell, data: bytes, repeat: int = 1) -> None:
    store.put(result_key(RUN_ID, cell.cell_id, repeat, "a1"), data)


def track(cell: Cell) -> TrackedJob:
    return TrackedJob(repeat=Repeat(planned=plan(cell), number=1), key=make_key(cell))


@pytest.mark.parametrize("data", [b"", b"\xff\xfe", b"{", bytes(MAX_DOCUMENT_BYTES + 1)], ids=len)
def test_a_record_that_its_cell_damaged_is_no_reason_to_end_the_run(data: bytes, tmp_path: Path) -> None:
    store = Store.open(f"file://{tmp_path}")
    recorder = ResultRecorder(connection=cast(Connection, None), namespace="space", store=store)
    cell = make_cell()
    put_record(store, cell, data)
    tracked = track(cell)
    tracked.pods = {"p": replace(load_pod("running"), exit_code=0)}

    assert recorder.find_record(tracked) is None
    result = recorder.record_finished(tracked, load_job("complete"))
    assert isinstance(result, Result)
    assert result.status == "failed"
    assert result.error is not None
    assert result.error.message.startswith("the record that the cell left cannot be read: ")
    assert recorder.find_record(tracked) == result


def test_a_record_of_another_version_ends_the_run_only_where_none_could_be_read(tmp_path: Path) -> None:
    store = Store.open(f"file://{tmp_path}")
    recorder = ResultRecorder(connection=cast(Connection, None), namespace="space", store=store)
    cell, other = make_cell(batch_size=1), make_cell(batch_size=2)
    result = make_result(other, run_id=RUN_ID)
    put_record(store, cell, result.to_json().replace(b'"schema_version": 2', b'"schema_version": 3', 1))
    with pytest.raises(UserError, match="do the images have the version of this tool"):
        recorder.find_record(track(cell))

    put_record(store, other, result.to_json())
    assert recorder.find_record(track(other)) == result
    assert recorder.find_record(track(cell)) is None


def test_the_record_of_another_cell_is_none_of_this_one(tmp_path: Path) -> None:
    store = Store.open(f"file://{tmp_path}")
    recorder = ResultRecorder(connection=cast(Connection, None), namespace="space", store=store)
    cell = make_cell(batch_size=1)
    put_record(store, cell, make_result(make_cell(batch_size=2), run_id=RUN_ID).to_json())

    assert recorder.find_record(track(cell)) is None
