"""Jobs are created while there is room, and deleted when they are recorded."""

from collections.abc import Callable, Iterator
from dataclasses import replace
from http import HTTPStatus
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

from bench.store import Store
from cluster_objects import load_job
from factories import make_run
from fake_nodes import KUBELET_LABELS
from job_manifests import load, make_renderer
from runner.kubernetes.capacity import PoolCapacity, Spending
from runner.kubernetes.cleanup import RunCancelled, leave_mark
from runner.kubernetes.connection import ApiError, Connection
from runner.kubernetes.dispatcher import Dispatcher
from runner.kubernetes.names import FINGERPRINT_LABEL, RUN_LABEL
from runner.kubernetes.placements import PlacementRecorder, PlacementTracker
from runner.kubernetes.submission import (
    BATCH_SIZE,
    MAX_KEPT,
    NUM_DELETIONS,
    NUM_KEPT,
    FinishedJob,
    FinishedJobs,
    Submission,
)
from runner.kubernetes.tracked_jobs import State, TrackedJob, TrackedJobs
from submissions import AcceptingServer, make_submission
from tracked_cells import finish, track


@pytest.fixture
def dispatcher() -> Iterator[Dispatcher]:
    dispatcher = Dispatcher(warn_user=lambda message: None, patience_seconds=60.0)
    yield dispatcher
    dispatcher.stop()


def find_submitted(jobs: TrackedJobs) -> list[TrackedJob]:
    return [tracked for tracked in jobs if tracked.state != "to-submit"]


def await_state(dispatcher: Dispatcher, tracked: TrackedJob, state: State) -> None:
    while tracked.state != state:
        dispatcher.run_next()


def test_a_full_pool_does_not_hold_up_the_cells_of_another(dispatcher: Dispatcher, tmp_path: Path) -> None:
    jobs = TrackedJobs([track("gpu", seed) for seed in range(5)] + [track("cpu", seed) for seed in range(5)])
    submission = make_submission(dispatcher, tmp_path, jobs, gpu=1, cpu=3)

    submission.submit_more()

    assert [tracked.pool for tracked in find_submitted(jobs)] == ["gpu", "cpu", "cpu", "cpu"]


def test_a_pools_maximum_holds_for_cells_that_are_alone_and_for_tenants_together(
    dispatcher: Dispatcher, tmp_path: Path
) -> None:
    order = [track("gpu", 1), track("gpu", 2, tenants=2), track("gpu", 3, tenants=2), track("gpu", 4)]
    jobs = TrackedJobs(order)
    submission = make_submission(dispatcher, tmp_path, jobs, gpu=3, cpu=1)

    submission.submit_more()

    assert find_submitted(jobs) == order[:3]


def test_no_job_is_created_while_finished_ones_are_to_be_deleted(dispatcher: Dispatcher, tmp_path: Path) -> None:
    jobs = TrackedJobs([track("cpu", seed) for seed in range(3)])
    submission = make_submission(dispatcher, tmp_path, jobs, gpu=1, cpu=3)
    behind = SimpleNamespace(is_behind=True)
    submission.finished_jobs = cast(FinishedJobs, behind)

    submission.submit_more()
    assert find_submitted(jobs) == []

    behind.is_behind = False
    submission.submit_more()
    assert len(find_submitted(jobs)) == 3


class HoldingServer(AcceptingServer):
    """Has the Job already: somebody deleted it, and a finalizer keeps it."""

    def __init__(self, labels: dict[str, str]) -> None:
        self.held = {"labels": labels, "deletionTimestamp": "2026-11-23T02:00:00Z", "finalizers": ["example.com/hold"]}

    def request(self, *_: object, **__: object) -> bytes:
        raise ApiError(409, "AlreadyExists", "object is being deleted")

    def list_items(self, path: str, **_: object) -> list[dict[str, Any]]:
        return [{"metadata": self.held}]


def test_a_deleted_job_that_a_finalizer_keeps_is_told_with_the_finalizer(tmp_path: Path) -> None:
    tracked, warnings = track("cpu", 1), list[str]()
    dispatcher = Dispatcher(warn_user=warnings.append, patience_seconds=60.0)
    submission = make_submission(dispatcher, tmp_path, TrackedJobs([tracked]), gpu=1, cpu=1)
    labels = {RUN_LABEL: tracked.key.run_id, FINGERPRINT_LABEL: tracked.key.fingerprint}
    submission.connection = cast(Connection, HoldingServer(labels))

    submission.submit_more()
    await_state(dispatcher, tracked, "in-flight")
    dispatcher.stop()

    (warning,) = warnings
    assert warning.startswith(
        f"Job {tracked.name} was deleted and is still there, kept by its finalizers (example.com/"
    )


class OneNode(AcceptingServer):
    """Has one node, with the labels of GKE for a T4 that two containers may share."""

    def read_items(self, path: str, read: Callable[[Any], Any], **_: object) -> list[Any]:
        if not path.endswith("/nodes"):
            return []
        labels = KUBELET_LABELS | {
            "cloud.google.com/gke-accelerator": "nvidia-tesla-t4",
            "cloud.google.com/gke-gpu-sharing-strategy": "time-sharing",
            "cloud.google.com/gke-max-shared-clients-per-gpu": "2",
        }
        room = {"cpu": "16", "memory": "64Gi", "ephemeral-storage": "100Gi", "nvidia.com/gpu": "2"}
        status = {"allocatable": room, "conditions": [{"type": "Ready", "status": "True"}]}
        return [read({"metadata": {"name": "node", "labels": labels}, "status": status})]


def test_cells_that_wait_for_whole_gpus_do_not_hold_up_those_that_share_one(
    dispatcher: Dispatcher, tmp_path: Path
) -> None:
    order = [track("gpu", seed) for seed in range(4)] + [track("gpu", seed, tenants=2) for seed in range(4)]
    jobs = TrackedJobs(order)
    submission = make_submission(dispatcher, tmp_path, jobs, gpu=9, cpu=9)
    profile = load("gke")
    assert profile.gpu is not None
    offered = profile.gpu.sharing["time-slicing"].model_copy(update={"clients": (2,)})
    gpu = profile.gpu.model_copy(update={"sharing": {"time-slicing": offered}})
    renderer = make_renderer(profile.model_copy(update={"gpu": gpu}))
    capacity = PoolCapacity(dispatcher=dispatcher, connection=cast(Connection, OneNode()), renderer=renderer)
    capacity.begin(jobs)
    while not capacity.is_known:
        dispatcher.run_next()
    submission.capacity = capacity

    submission.submit_more()

    # Two of each: one that runs and one that takes its place; of whole GPUs there is no node as yet.
    assert find_submitted(jobs) == order[:2] + order[4:6]


def test_the_order_of_the_run_is_kept_across_pools(dispatcher: Dispatcher, tmp_path: Path) -> None:
    order = [track("cpu", 1), track("gpu", 2), track("cpu", 3), track("gpu", 4), track("cpu", 5)]
    jobs = TrackedJobs(order)
    submission = make_submission(dispatcher, tmp_path, jobs, max_in_flight=3, gpu=9, cpu=9)

    submission.submit_more()
    assert find_submitted(jobs) == order[:3]

    jobs.move(order[1], "created")
    finish(jobs, order[1])
    submission.submit_more()
    assert find_submitted(jobs) == order[:4]


def test_nothing_is_submitted_while_the_records_of_many_ended_jobs_are_still_to_be_found(
    dispatcher: Dispatcher, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("runner.kubernetes.submission.MAX_RECORDING", 2)
    order = [track("cpu", seed) for seed in range(4)]
    jobs = TrackedJobs(order)
    submission = make_submission(dispatcher, tmp_path, jobs, max_in_flight=2, gpu=9, cpu=9)
    submission.submit_more()
    for tracked in order[:2]:
        jobs.move(tracked, "job-finished")

    submission.submit_more()
    assert find_submitted(jobs) == order[:2]

    jobs.move(order[0], "recorded")
    submission.submit_more()
    assert find_submitted(jobs) == order


def test_a_job_that_only_waited_is_created_again_after_others_and_after_a_pause(
    dispatcher: Dispatcher, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    delays: list[float] = []

    def run_at_once(seconds: float, call: Callable[[], None]) -> None:
        delays.append(seconds)
        call()

    monkeypatch.setattr(dispatcher, "call_later", run_at_once)
    first, second = track("gpu", 1), track("gpu", 2)
    jobs = TrackedJobs([first, second])
    submission = make_submission(dispatcher, tmp_path, jobs, gpu=1, cpu=1)
    submission.submit_more()

    for _ in range(6):
        await_state(dispatcher, first, "in-flight")
        jobs.move(first, "withdrawn")
        submission.requeue(first)
        while submission.cancellation_watcher.is_checking:
            dispatcher.run_next()
        submission.submit_more()
        if second.state != "done":  # the other's turn comes first
            assert first.state == "to-submit"
            await_state(dispatcher, second, "in-flight")
            finish(jobs, second)
            submission.submit_more()

    assert delays == [60.0, 120.0, 240.0, 480.0, 900.0, 900.0]


def test_whether_the_budget_holds_a_job_back_is_not_an_old_answer(dispatcher: Dispatcher, tmp_path: Path) -> None:
    jobs = TrackedJobs([track("gpu", 1), track("gpu", 2)])
    submission = make_submission(dispatcher, tmp_path, jobs, gpu=2, cpu=1)
    submission.spending.max_nodes = 1
    submission.submit_more()
    assert submission.is_held_by_budget
    submission.cancellation_watcher.check()
    submission.submit_more()
    assert not submission.is_held_by_budget


def test_a_budget_is_not_spent_while_a_cheaper_cell_pauses(
    dispatcher: Dispatcher, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    later: list[Callable[[], None]] = []
    monkeypatch.setattr(dispatcher, "call_later", lambda _, call: later.append(call))
    expensive, cheap = track("gpu", 1), track("cpu", 2)
    jobs = TrackedJobs([cheap, expensive])
    submission = make_submission(dispatcher, tmp_path, jobs, gpu=1, cpu=1)
    submission.spending = Spending(prices={"cpu": 0.1, "gpu": 10.0}, currency="USD", max_cost=3.0)
    cells = [tracked.repeat.planned.cell for tracked in (cheap, expensive)]
    submission.spending.add_records(make_run(cells), dict.fromkeys([(cell.cell_id, 1) for cell in cells], 1000.0))
    submission.submit_more()
    jobs.move(cheap, "created")
    jobs.move(cheap, "withdrawn")
    submission.requeue(cheap)

    submission.submit_more()
    assert submission.is_held_by_budget
    assert not submission.is_budget_spent

    later[0]()
    while cheap.state == "to-submit":
        dispatcher.run_next()
        submission.submit_more()
    jobs.move(cheap, "created")
    finish(jobs, cheap)
    submission.submit_more()
    assert submission.is_budget_spent


def submit_once_more(dispatcher: Dispatcher, submission: Submission, tracked: TrackedJob) -> None:
    while tracked.state == "to-submit":
        dispatcher.run_next()
        submission.submit_more()


@pytest.mark.parametrize("pause", ["requeue", "retry"])
def test_a_run_that_is_cancelled_while_its_last_cell_pauses_creates_no_further_job(
    dispatcher: Dispatcher, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, pause: str
) -> None:
    """The mark in the store is all that shows the cancellation: there is no Job that could have been deleted."""
    monkeypatch.setattr("runner.kubernetes.submission.MIN_REQUEUE_SECONDS", 0.0)
    tracked = track("gpu", 1)
    jobs = TrackedJobs([tracked])
    submission = make_submission(dispatcher, tmp_path, jobs, gpu=1, cpu=1)
    submission.submit_more()
    jobs.move(tracked, "created")
    jobs.move(tracked, "withdrawn")
    if pause == "requeue":
        submission.requeue(tracked)
    else:
        submission.retry(tracked, 1e-9)
    leave_mark(Store.open(f"file://{tmp_path}"), "mine-1")

    with pytest.raises(RunCancelled):
        submit_once_more(dispatcher, submission, tracked)


class Selectors:
    """Keeps by which labels Jobs are deleted and pods are listed."""

    def __init__(self) -> None:
        self.deleted: list[str] = []
        self.listed: list[str] = []

    def request(self, verb: str, _path: str, *, query: dict[str, str]) -> bytes:
        assert verb == "deletecollection"
        self.deleted.append(query["labelSelector"])
        return b"{}"

    def write_others(self, labels: str, _placed: object) -> None:
        self.listed.append(labels)


class DirectDispatcher:
    def record(self, work: Callable[[], Any], then: Callable[[Any], None]) -> None:
        then(work())


class SlowDispatcher:
    """Has work begin when a test says so, as the API server would that is slow; warnings are kept."""

    def __init__(self) -> None:
        self.waiting: list[tuple[Callable[[], Any], Callable[[Any], None]]] = []
        self.warnings: list[str] = []

    def record(self, work: Callable[[], Any], then: Callable[[Any], None]) -> None:
        self.waiting.append((work, then))

    def run_next(self) -> None:
        work, then = self.waiting.pop(0)
        then(work())

    def warn_later(self, message: str, _dedup_key: str) -> None:
        self.warnings.append(message)


class RefusingServer(Selectors):
    def request(self, _verb: str, _path: str, *, query: dict[str, str]) -> bytes:
        raise ApiError(HTTPStatus.FORBIDDEN, "Forbidden", f"not you: {query['fieldSelector']}")


def make_finished_jobs(server: Selectors, dispatcher: DirectDispatcher | SlowDispatcher) -> FinishedJobs:
    known = cast(Dispatcher, dispatcher)
    placements = PlacementTracker(dispatcher=known, recorder=cast(PlacementRecorder, server), placed=set())
    return FinishedJobs(
        dispatcher=known,
        connection=cast(Connection, server),
        namespace="space",
        run_id="mine-1",
        fingerprint="0123456789ab",
        placements=placements,
    )


def add_jobs(finished_jobs: FinishedJobs, count: int) -> None:
    status = load_job("complete")
    for number in range(count):
        finished_jobs.add(FinishedJob(status=replace(status, number=1), attempt=f"a{number}"))


def test_the_jobs_of_another_run_of_the_same_name_are_left_alone() -> None:
    server = Selectors()
    finished_jobs = make_finished_jobs(server, DirectDispatcher())
    for number in range(NUM_KEPT + BATCH_SIZE):
        status = replace(load_job("complete"), number=1 + number % 2)
        finished_jobs.add(FinishedJob(status=status, attempt=f"a{number}"))
    assert len(server.deleted) == len(server.listed) == 2
    for labels in server.deleted + server.listed:
        assert "benchmatrix/run-id=mine-1,benchmatrix/fingerprint=0123456789ab," in labels


def test_a_slow_deletion_leaves_the_threads_to_the_records() -> None:
    server, dispatcher = Selectors(), SlowDispatcher()
    finished_jobs = make_finished_jobs(server, dispatcher)
    add_jobs(finished_jobs, NUM_KEPT + 10 * BATCH_SIZE)
    assert len(dispatcher.waiting) == NUM_DELETIONS
    dispatcher.run_next()
    assert len(dispatcher.waiting) == NUM_DELETIONS  # the next batch follows the first
    while dispatcher.waiting:
        dispatcher.run_next()
    assert len(server.deleted) == 10  # everything but the newest


def test_no_job_is_created_while_too_many_finished_ones_wait_for_their_deletion() -> None:
    dispatcher = SlowDispatcher()
    finished_jobs = make_finished_jobs(Selectors(), dispatcher)
    add_jobs(finished_jobs, MAX_KEPT + NUM_DELETIONS * BATCH_SIZE - 1)
    assert not finished_jobs.is_behind
    add_jobs(finished_jobs, 1)
    assert finished_jobs.is_behind
    dispatcher.run_next()
    assert not finished_jobs.is_behind


def test_a_runner_that_may_delete_none_is_not_held_back_by_them() -> None:
    dispatcher = SlowDispatcher()
    finished_jobs = make_finished_jobs(RefusingServer(), dispatcher)
    add_jobs(finished_jobs, MAX_KEPT + NUM_DELETIONS * BATCH_SIZE)
    assert finished_jobs.is_behind
    while dispatcher.waiting:
        dispatcher.run_next()
    assert not finished_jobs.is_behind
    assert dispatcher.warnings[0] == "finished Jobs are not deleted: not you: status.successful=1"
