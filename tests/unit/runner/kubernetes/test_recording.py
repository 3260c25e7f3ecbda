"""What is left in the store when a repeat has its record."""

from pathlib import Path
from typing import cast

import pytest

from bench.store import Store, meeting_key, tenants_prefix
from factories import make_cell
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
