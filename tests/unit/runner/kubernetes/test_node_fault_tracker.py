"""When faults of nodes stop a run, as the runner sees them: which count, and which nodes are sound meanwhile."""

from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import cast

import pytest

from bench.exit_codes import EXIT_NODE_FAULT
from bench.store import Store
from cluster_objects import load_job, load_pod
from runner.kubernetes.connection import Connection
from runner.kubernetes.dispatcher import Dispatcher
from runner.kubernetes.nodes import LEFT_OUT_TIME, MAX_FAULTS, NodeFaultRecorder, NodeFaultTracker
from runner.kubernetes.objects import JobStatus
from runner.kubernetes.tracked_jobs import TrackedJob, TrackedJobs
from tracked_cells import submit, track


@pytest.fixture
def dispatcher() -> Iterator[Dispatcher]:
    dispatcher = Dispatcher(warn_user=lambda message: None, patience_seconds=60.0)
    yield dispatcher
    dispatcher.stop()


def make_tracker(dispatcher: Dispatcher, folder: Path, jobs: TrackedJobs) -> NodeFaultTracker:
    recorder = NodeFaultRecorder(connection=cast(Connection, None), store=Store.open(f"file://{folder}"))
    return NodeFaultTracker(dispatcher=dispatcher, recorder=recorder, jobs=jobs, can_avoid_nodes=True)


def fail(tracker: NodeFaultTracker, tracked: TrackedJob, number: int, node: str = "bad") -> JobStatus:
    """Have the tracker note a Job that failed for its node; return the Job."""
    job = replace(load_job("oom"), name=tracked.name, uid=f"job-{number}")
    now = datetime.now(UTC)
    pod = replace(load_pod("oom"), uid=f"pod-{number}", node=node, exit_code=EXIT_NODE_FAULT, ended_at=now)
    tracker.note_job(tracked, job, [pod])
    return job


def test_jobs_that_had_failed_when_the_runner_began_do_not_stop_it(dispatcher: Dispatcher, tmp_path: Path) -> None:
    """All Jobs that were in flight fail as a runner stops; the nodes may be mended before the next one begins."""
    jobs = TrackedJobs(track("gpu", seed) for seed in range(2 * MAX_FAULTS))
    before = make_tracker(dispatcher, tmp_path, jobs)
    failed = [fail(before, tracked, number) for number, tracked in enumerate(jobs)]
    assert before.stop is not None

    tracker = make_tracker(dispatcher, tmp_path, jobs)
    tracker.begin(failed)
    for number, tracked in enumerate(jobs):
        fail(tracker, tracked, number)
    assert tracker.stop is None
    for number, tracked in enumerate(list(jobs)[:MAX_FAULTS]):
        assert tracker.count_faults(tracked) == 1
        assert tracker.stop is None
        fail(tracker, tracked, 100 + number)
    assert tracker.stop is not None


def test_a_node_that_measures_a_long_cell_is_sound(dispatcher: Dispatcher, tmp_path: Path) -> None:
    long_cell, *others = (track("gpu", seed) for seed in range(MAX_FAULTS + 1))
    jobs = TrackedJobs([long_cell, *others])
    submit(jobs, long_cell)
    long_cell.node, long_cell.job = "good", load_job("running")
    tracker = make_tracker(dispatcher, tmp_path, jobs)
    tracker.health.note_seen("gpu", "good", datetime.now(UTC) - LEFT_OUT_TIME)
    for number, tracked in enumerate(others):
        fail(tracker, tracked, number)
    assert tracker.stop is None
    assert tracker.find_avoided(others[0]).excluded == ("bad",)


def test_a_node_that_ended_a_long_cell_is_sound(dispatcher: Dispatcher, tmp_path: Path) -> None:
    tracked = track("gpu", 1)
    tracker = make_tracker(dispatcher, tmp_path, TrackedJobs([tracked]))
    tracker.health.note_seen("gpu", "good", datetime.now(UTC) - LEFT_OUT_TIME)
    assert not tracker.has_sound_node(tracked)
    tracker.health.note_ok("gpu", "good", datetime.now(UTC))
    assert tracker.has_sound_node(tracked)
