"""Which Jobs are created next, and which finished ones are deleted."""

from collections.abc import Callable, Iterator
from dataclasses import replace
from http import HTTPStatus
from pathlib import Path
from typing import Any

import pytest

from cluster_objects import load_job
from factories import make_run
from fake_nodes import KUBELET_LABELS
from job_manifests import load
from ongoing_runs import SameThread, finish, make_ongoing, track
from runner.kubernetes.capacity import PoolCapacity, Spending
from runner.kubernetes.cleanup import CancellationWatcher, RunCancelled, leave_mark
from runner.kubernetes.connection import ApiError
from runner.kubernetes.nodes import Placements
from runner.kubernetes.rendering import ANY_NODE
from runner.kubernetes.submission import BATCH_SIZE, NUM_KEPT, FinishedJobs, Submission
from runner.kubernetes.tracked_jobs import Dispatcher, TrackedJob


class AcceptingServer:
    """Takes every request, and answers with the object as it was given."""

    patience_seconds = 60.0

    def request(self, *_: object, body: bytes, **__: object) -> bytes:
        return body


def make_submission(
    folder: Path, jobs: list[TrackedJob], *, dispatcher: Any = None, max_parallel: Any = None, **given: Any
) -> Submission:
    """Return what creates these Jobs. `max_parallel`: of the profile's pools; `given`: of the run."""
    base = load("gke")
    pools: Any = {
        name: pool.model_copy(update={"max_parallel": (max_parallel or {}).get(name, 9)})
        for name, pool in base.pools.items()
    }
    fields: dict[str, Any] = {"connection": AcceptingServer(), "profile": load("gke", pools=pools)}
    run = make_ongoing(folder, *jobs, dispatcher=dispatcher, **(fields | given))
    submission = Submission(
        run=run,
        cancellation_watcher=CancellationWatcher(
            dispatcher=run.dispatcher, store=run.store, run_ids=(run.run_id,), known=frozenset()
        ),
        capacity=PoolCapacity(run=run),
        spending=Spending(run=run),
        finished_jobs=FinishedJobs(run=run, placements=Placements(run=run)),
        find_wish=lambda _: ANY_NODE,
    )
    submission.capacity.begin()
    submission.add(jobs)
    return submission


@pytest.fixture
def dispatcher() -> Iterator[Dispatcher]:
    dispatcher = Dispatcher(warn_user=lambda message: None, patience_seconds=60.0)
    yield dispatcher
    dispatcher.stop()


def find_submitted(submission: Submission) -> list[TrackedJob]:
    return [tracked for tracked in submission.run.jobs if tracked.state != "to-submit"]


@pytest.mark.parametrize(
    ("jobs", "limits", "submitted"),
    [
        # A full pool does not hold up the cells of another.
        ([*(("gpu", 1),) * 3, *(("cpu", 1),) * 4], {"max_parallel": {"gpu": 1, "cpu": 3}}, [0, 3, 4, 5]),
        # A pool's maximum holds for cells that are alone and for tenants together.
        ([("gpu", 1), ("gpu", 2), ("gpu", 2), ("gpu", 1)], {"max_parallel": {"gpu": 3}}, [0, 1, 2]),
        # The order of the run is kept across pools.
        ([("cpu", 1), ("gpu", 1), ("cpu", 1), ("gpu", 1)], {"max_in_flight": 3}, [0, 1, 2]),
    ],
)
def test_jobs_are_submitted_in_order_as_far_as_there_is_room(
    jobs: list[tuple[Any, int]], limits: dict[str, Any], submitted: list[int], tmp_path: Path, dispatcher: Dispatcher
) -> None:
    order = [track(device, seed, tenants=tenants) for seed, (device, tenants) in enumerate(jobs)]
    submission = make_submission(tmp_path, order, dispatcher=dispatcher, **limits)
    submission.submit_more()
    assert find_submitted(submission) == [order[index] for index in submitted]


def test_nothing_is_submitted_while_too_many_ended_jobs_have_no_record_or_are_not_deleted(
    dispatcher: Dispatcher, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("runner.kubernetes.submission.MAX_FINISHED", 3)
    order = [track("cpu", seed) for seed in range(4)]
    submission = make_submission(tmp_path, order, dispatcher=dispatcher, max_in_flight=2)
    add_jobs(submission.finished_jobs, 1)
    submission.submit_more()
    for tracked in order[:2]:
        submission.run.jobs.move(tracked, "recording")

    submission.submit_more()
    assert find_submitted(submission) == order[:2]

    submission.run.jobs.move(order[0], "done")
    submission.submit_more()
    assert find_submitted(submission) == order


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


def test_cells_that_wait_for_whole_gpus_do_not_hold_up_those_that_share_one(tmp_path: Path) -> None:
    order = [track("gpu", seed) for seed in range(4)] + [track("gpu", seed, tenants=2) for seed in range(4)]
    profile = load("gke")
    assert profile.gpu is not None
    offered = profile.gpu.sharing["time-slicing"].model_copy(update={"clients": (2,)})
    gpu = profile.gpu.model_copy(update={"sharing": {"time-slicing": offered}})
    shared = profile.model_copy(update={"gpu": gpu})
    submission = make_submission(tmp_path, order, dispatcher=SameThread(), connection=OneNode(), profile=shared)

    submission.submit_more()

    # Two of each: one that runs and one that takes its place; of whole GPUs there is no node as yet.
    assert find_submitted(submission) == order[:2] + order[4:6]


def test_a_budget_is_not_spent_while_a_cheaper_cell_pauses(
    dispatcher: Dispatcher, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    later: list[Callable[[], None]] = []
    monkeypatch.setattr(dispatcher, "call_later", lambda _, call: later.append(call))
    expensive, cheap = track("gpu", 1), track("cpu", 2)
    cells = [tracked.repeat.planned.cell for tracked in (cheap, expensive)]
    submission = make_submission(
        tmp_path, [cheap, expensive], dispatcher=dispatcher, max_cost=3.0, plan=make_run(cells, run_id="mine-1")
    )
    submission.spending.prices = {"cpu": 0.1, "gpu": 10.0}
    submission.spending.add_records(dict.fromkeys([(cell.cell_id, 1) for cell in cells], 1000.0))
    jobs = submission.run.jobs
    submission.submit_more()
    jobs.move(cheap, "in-flight")
    jobs.move(cheap, "recording")
    submission.requeue(cheap)

    submission.submit_more()
    assert not submission.is_budget_spent

    later[0]()
    while cheap.state == "to-submit":
        dispatcher.run_next()
        submission.submit_more()
    jobs.move(cheap, "in-flight")
    finish(jobs, cheap)
    submission.submit_more()
    assert submission.is_budget_spent


def test_a_run_that_is_cancelled_while_its_last_cell_pauses_creates_no_further_job(
    dispatcher: Dispatcher, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The mark in the store is all that shows the cancellation: there is no Job that could have been deleted."""
    monkeypatch.setattr("runner.kubernetes.submission.MIN_REQUEUE_SECONDS", 1e-9)
    tracked = track("gpu", 1)
    submission = make_submission(tmp_path, [tracked], dispatcher=dispatcher)
    jobs = submission.run.jobs
    submission.submit_more()
    jobs.move(tracked, "in-flight")
    jobs.move(tracked, "recording")
    submission.requeue(tracked)
    leave_mark(submission.run.store, submission.run.run_id)

    with pytest.raises(RunCancelled):  # noqa: PT012  (which of the calls sees the mark is not known)
        while tracked.state == "to-submit":
            dispatcher.run_next()
            submission.submit_more()


class Selectors:
    """Keeps by which labels Jobs are deleted and pods are listed."""

    def __init__(self) -> None:
        self.deleted: list[str] = []
        self.listed: list[str] = []

    def request(self, verb: str, _path: str, *, query: dict[str, str]) -> bytes:
        assert verb == "deletecollection"
        self.deleted.append(query["labelSelector"])
        return b"{}"

    def read_items(self, _path: str, _read: object, query: dict[str, str], **_: object) -> list[Any]:
        self.listed.append(query["labelSelector"])
        return []


def make_finished_jobs(folder: Path, server: Selectors, dispatcher: SameThread) -> FinishedJobs:
    run = make_ongoing(folder, connection=server, dispatcher=dispatcher)
    return FinishedJobs(run=run, placements=Placements(run=run))


def add_jobs(finished_jobs: FinishedJobs, count: int) -> None:
    status = load_job("complete")
    for number in range(count):
        finished_jobs.add(replace(status, number=1 + number % 2), f"a{number}")


def test_the_jobs_of_another_run_of_the_same_name_are_left_alone(tmp_path: Path) -> None:
    server = Selectors()
    finished_jobs = make_finished_jobs(tmp_path, server, SameThread())
    add_jobs(finished_jobs, NUM_KEPT + BATCH_SIZE)
    assert len(server.deleted) == len(server.listed) == 2  # requests for fifty Jobs, by the number of their repeats
    for labels in server.deleted + server.listed:
        assert labels.startswith(f"{finished_jobs.run.labels},benchmatrix/repeat=")


def test_jobs_that_cannot_be_deleted_stay_until_their_ttl(tmp_path: Path) -> None:
    class RefusingServer(Selectors):
        def request(self, _verb: str, _path: str, *, query: dict[str, str]) -> bytes:
            raise ApiError(HTTPStatus.FORBIDDEN, "Forbidden", f"not you: {query['fieldSelector']}")

    dispatcher = SameThread()
    add_jobs(make_finished_jobs(tmp_path, RefusingServer(), dispatcher), NUM_KEPT + BATCH_SIZE)
    assert dispatcher.warnings == ["finished Jobs are not deleted: not you: status.successful=1"]
