"""Which finished Jobs a runner has deleted: its own run's alone."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any, cast

from cluster_objects import load_job
from runner.kubernetes.connection import Connection
from runner.kubernetes.dispatcher import Dispatcher
from runner.kubernetes.finished_jobs import BATCH_SIZE, NUM_KEPT, FinishedJob, FinishedJobs
from runner.kubernetes.placements import PlacementRecorder, PlacementTracker


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


def test_the_jobs_of_another_run_of_the_same_name_are_left_alone() -> None:
    server, dispatcher = Selectors(), cast(Dispatcher, DirectDispatcher())
    placements = PlacementTracker(dispatcher=dispatcher, recorder=cast(PlacementRecorder, server), placed=set())
    finished_jobs = FinishedJobs(
        dispatcher=dispatcher,
        connection=cast(Connection, server),
        namespace="space",
        run_id="mine-1",
        fingerprint="0123456789ab",
        placements=placements,
    )
    for number in range(NUM_KEPT + BATCH_SIZE):
        status = replace(load_job("complete"), number=1 + number % 2)
        finished_jobs.add(FinishedJob(status=status, attempt=f"a{number}"))
    assert len(server.deleted) == len(server.listed) == 2
    for labels in server.deleted + server.listed:
        assert "benchmatrix/run-id=mine-1,benchmatrix/fingerprint=0123456789ab," in labels
