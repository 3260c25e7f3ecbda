"""Which finished Jobs a runner has deleted, and how many at once."""

from collections.abc import Callable
from dataclasses import replace
from http import HTTPStatus
from typing import Any, cast

from cluster_objects import load_job
from runner.kubernetes.connection import ApiError, Connection
from runner.kubernetes.dispatcher import Dispatcher
from runner.kubernetes.placements import PlacementRecorder, PlacementTracker
from runner.kubernetes.submission import (
    BATCH_SIZE,
    MAX_KEPT,
    NUM_DELETIONS,
    NUM_KEPT,
    FinishedJob,
    FinishedJobs,
)


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
