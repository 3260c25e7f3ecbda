"""Why Jobs have no pod, and how often that is asked."""

from collections.abc import Callable, Mapping
from dataclasses import replace
from types import SimpleNamespace
from typing import Any, cast

import pytest

from cluster_objects import load_job
from runner.kubernetes.connection import Connection
from runner.kubernetes.dispatcher import Dispatcher
from runner.kubernetes.missing_pods import MissingPods, read_missing_pod_reasons, read_overdue_pods
from runner.kubernetes.tracked_jobs import TrackedJob
from tracked_cells import track


class Objects:
    """An API server that has these events and pods, whatever is selected."""

    def __init__(self, *, events: tuple[dict[str, Any], ...] = (), pods: tuple[dict[str, Any], ...] = ()) -> None:
        self.found = {"events": events, "pods": pods}
        self.asked: list[str] = []

    def read_items(self, path: str, read: Callable[[dict[str, Any]], Any], query: Mapping[str, str]) -> list[Any]:
        kind = path.rpartition("/")[2]
        self.asked.append(kind)
        return [read(item) for item in self.found[kind]]


class SameThread:
    """A dispatcher that sends requests at once."""

    def request(self, work: Callable[[], Any], then: Callable[[Any], None]) -> None:
        then(work())


def say(job_name: str, message: str, at: str) -> dict[str, Any]:
    return {"involvedObject": {"name": job_name}, "message": message, "lastTimestamp": at, "eventTime": None}


def make_pod(job_name: str, *, deleted_at: str | None) -> dict[str, Any]:
    deletion = {} if deleted_at is None else {"deletionTimestamp": deleted_at}
    labels = {"batch.kubernetes.io/job-name": job_name}
    return {"metadata": {"name": f"{job_name}-x", "labels": labels} | deletion, "spec": {"nodeName": "node-1"}}


def test_of_each_job_the_newest_message_counts() -> None:
    server = Objects(
        events=(
            say("a", "later", "2026-11-22T06:00:09Z"),
            say("b", "other", "2026-11-22T06:00:01Z"),
            say("a", "earlier", "2026-11-22T06:00:03Z"),
        )
    )
    assert read_missing_pod_reasons(cast(Connection, server), "space") == {"a": "later", "b": "other"}


def test_a_pod_is_overdue_when_the_time_that_it_was_given_to_end_is_over() -> None:
    pods = (
        make_pod("late", deleted_at="2020-01-01T00:00:00Z"),
        make_pod("ending", deleted_at="2200-01-01T00:00:00Z"),
        make_pod("running", deleted_at=None),
    )
    found = read_overdue_pods(cast(Connection, Objects(pods=pods)), "space", "some=labels")
    assert list(found) == ["late"]
    assert "pod late-x should have ended by 2020-01-01T00:00:00Z, but node node-1" in found["late"]


def make_lacking(number: int) -> list[TrackedJob]:
    """Return Jobs that have had no pod since the clock's 0."""
    jobs = [track("cpu", seed) for seed in range(number)]
    for tracked in jobs:
        tracked.no_pod_since = 0.0
        tracked.job = replace(load_job("running"), num_terminating=0)
    return jobs


def make_missing_pods(server: Objects) -> MissingPods:
    return MissingPods(
        dispatcher=cast(Dispatcher, SameThread()),
        connection=cast(Connection, server),
        namespace="space",
        labels="some=labels",
    )


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> SimpleNamespace:
    clock = SimpleNamespace(now=0.0)
    monkeypatch.setattr("runner.kubernetes.missing_pods.time", SimpleNamespace(monotonic=lambda: clock.now))
    return clock


def test_however_many_jobs_lack_a_pod_it_is_asked_once_and_then_less_and_less_often(clock: SimpleNamespace) -> None:
    jobs = make_lacking(200)
    server = Objects(events=tuple(say(tracked.name, "no room", "2026-11-22T06:00:00Z") for tracked in jobs))
    missing_pods = make_missing_pods(server)
    asked_at = []
    for second in range(250):
        clock.now = float(second)
        before = len(server.asked)
        missing_pods.check(jobs)
        asked_at += [second] * (len(server.asked) - before)

    assert asked_at == [20, 40, 80, 140, 200]
    assert {tracked.missing_pod_reason for tracked in jobs} == {"no room"}


def test_after_none_has_lacked_a_pod_the_next_one_is_asked_about_soon_again(clock: SimpleNamespace) -> None:
    server = Objects()
    missing_pods = make_missing_pods(server)
    jobs = make_lacking(1)
    for second in (20, 40, 80):
        clock.now = float(second)
        missing_pods.check(jobs)
    missing_pods.check([])
    clock.now = 100.0
    missing_pods.check(jobs)
    assert server.asked == ["events"] * 4


def test_jobs_whose_pods_do_not_end_are_explained_by_their_pods(clock: SimpleNamespace) -> None:
    clock.now = 20.0
    ending, other = make_lacking(2)
    ending.job = replace(load_job("running"), num_terminating=1)
    server = Objects(pods=(make_pod(ending.name, deleted_at="2020-01-01T00:00:00Z"),))
    make_missing_pods(server).check([ending, other])
    assert "should have ended" in ending.termination_message
    assert sorted(server.asked) == ["events", "pods"]
