"""What is asked about pods that do not start and Jobs that have none, how often, and when waiting ends."""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

from cluster_objects import load_job, load_pod
from ongoing_runs import SameThread, make_ongoing, track
from runner.kubernetes.connection import Connection
from runner.kubernetes.failures import (
    PendingPods,
    is_starting,
    read_missing_pod_reasons,
    read_overdue_pods,
    read_start_problems,
)
from runner.kubernetes.tracked_jobs import TrackedJob


class Objects:
    """An API server that has these events, less those of reasons that a selector leaves out, and these pods."""

    def __init__(self, *events: dict[str, Any], pods: tuple[dict[str, Any], ...] = ()) -> None:
        self.found = {"events": events, "pods": pods}
        self.asked: list[str] = []

    def read_items(self, path: str, read: Callable[[dict[str, Any]], Any], query: dict[str, str]) -> list[Any]:
        kind = path.rpartition("/")[2]
        self.asked.append(kind)
        excluded = [word.removeprefix("reason!=") for word in query.get("fieldSelector", "").split(",")]
        return [read(item) for item in self.found[kind] if item.get("reason") not in excluded]

    def list_items(self, path: str, **query: str) -> list[dict[str, Any]]:
        return self.read_items(path, lambda item: item, query)


def say(
    reason: str, message: str, at: str, *, uid: str = "p1", job: str = "", last_seen: str | None = None
) -> dict[str, Any]:
    """Return an event of a pod or a Job; what ends well is no warning."""
    return {
        "involvedObject": {"uid": uid, "name": job},
        "type": "Normal" if reason == "Pulling" else "Warning",
        "reason": reason,
        "message": message,
        "lastTimestamp": f"2026-11-22T{at}Z",
        "eventTime": None,
        "series": last_seen and {"lastObservedTime": f"2026-11-22T{last_seen}Z", "count": 9},
    }


SANDBOX = say("FailedCreatePodSandBox", "plugin type=calico\nfailed (add)", "06:00:07")
PULLING = say("Pulling", "Pulling image x", "06:01:00")


@pytest.mark.parametrize(
    ("events", "problems"),
    [
        (
            [
                SANDBOX,
                say("FailedMount", "timed out", "06:00:03"),
                say("FailedMount", "no volume", "06:00:01", uid="p2"),
            ],
            {"p1": "FailedCreatePodSandBox: plugin type=calico failed (add)", "p2": "FailedMount: no volume"},
        ),
        ([SANDBOX, PULLING], {}),  # what came before it is over
        (
            [say("FailedAttachVolume", "in use", "06:00:00", last_seen="06:05:00.000000"), PULLING],
            {"p1": "FailedAttachVolume: in use"},
        ),
        # What a kubelet says of its name servers is no problem, and hides none.
        *[
            (
                [SANDBOX, say(reason, "Nameserver limits were exceeded", "06:00:19")],
                {"p1": "FailedCreatePodSandBox: plugin type=calico failed (add)"},
            )
            for reason in ("DNSConfigForming", "MissingClusterDNS")
        ],
    ],
)
def test_the_newest_warning_of_a_pod_is_its_problem_on_one_line(
    events: list[dict[str, Any]], problems: dict[str, str]
) -> None:
    assert read_start_problems(cast(Connection, Objects(*events)), "space") == problems


@pytest.mark.parametrize(
    ("reason", "node", "expected"),
    [
        ("ContainerCreating", "node-1", True),
        ("", "node-1", True),
        ("", "", False),
        ("ImagePullBackOff", "node-1", False),
    ],
)
def test_a_pod_is_starting_from_when_it_has_a_node_until_its_status_says_more(
    reason: str, node: str, expected: bool
) -> None:
    assert is_starting(replace(load_pod("image"), waiting_reason=reason, node=node)) == expected


def make_pod(job_name: str, *, deleted_at: str | None) -> dict[str, Any]:
    deletion = {} if deleted_at is None else {"deletionTimestamp": deleted_at}
    labels = {"batch.kubernetes.io/job-name": job_name}
    return {"metadata": {"name": f"{job_name}-x", "labels": labels} | deletion, "spec": {"nodeName": "node-1"}}


def test_of_each_job_the_newest_message_counts() -> None:
    named = [("a", "later", "06:00:09"), ("b", "other", "06:00:01"), ("a", "earlier", "06:00:03")]
    server = Objects(*(say("FailedCreate", message, at, job=job) for job, message, at in named))
    assert read_missing_pod_reasons(cast(Connection, server), "space") == {"a": "later", "b": "other"}


def test_a_pod_is_overdue_when_the_time_that_it_was_given_to_end_is_over() -> None:
    ends = {"late": "2020-01-01T00:00:00Z", "ending": "2200-01-01T00:00:00Z", "running": None}
    server = Objects(pods=tuple(make_pod(name, deleted_at=at) for name, at in ends.items()))
    found = read_overdue_pods(cast(Connection, server), "space", "some=labels")
    assert list(found) == ["late"]
    assert "pod late-x should have ended by 2020-01-01T00:00:00Z, but node node-1" in found["late"]


def make_lacking(number: int) -> list[TrackedJob]:
    """Return Jobs in flight that have had no pod since the clock's 0."""
    jobs = [track("cpu", seed) for seed in range(number)]
    for tracked in jobs:
        tracked.state, tracked.no_pod_since = "in-flight", 0.0
        tracked.job = replace(load_job("running"), num_active=0, num_ready=0, num_terminating=0)
    return jobs


def make_pending(folder: Path, server: Objects, *jobs: TrackedJob) -> PendingPods:
    return PendingPods(make_ongoing(folder, *jobs, connection=server, dispatcher=SameThread()))


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> SimpleNamespace:
    clock = SimpleNamespace(now=0.0)
    monkeypatch.setattr("runner.kubernetes.failures.time", SimpleNamespace(monotonic=lambda: clock.now))
    return clock


def test_however_many_jobs_lack_a_pod_it_is_asked_once_and_then_less_and_less_often(
    clock: SimpleNamespace, tmp_path: Path
) -> None:
    jobs, words = make_lacking(200), "exceeded quota: q, used: count/pods=9"
    server = Objects(*(say("FailedCreate", words, "06:00:00", job=tracked.name) for tracked in jobs))
    pending = make_pending(tmp_path, server, *jobs)
    asked_at = []
    for second in range(250):
        clock.now = float(second)
        before = len(server.asked)
        assert pending.check() == []
        asked_at += [second] * (len(server.asked) - before)

    assert asked_at == [20, 40, 80, 140, 200]
    assert pending.is_room_needed
    clock.now += 900.0
    assert [tracked for tracked, verdict in pending.check() if verdict and verdict.message == words] == jobs


def test_jobs_whose_pods_do_not_end_are_explained_by_their_pods(clock: SimpleNamespace, tmp_path: Path) -> None:
    clock.now = 20.0
    ending, other = make_lacking(2)
    assert ending.job is not None
    ending.job = replace(ending.job, num_terminating=1)
    server = Objects(pods=(make_pod(ending.name, deleted_at="2020-01-01T00:00:00Z"),))
    pending = make_pending(tmp_path, server, ending, other)
    pending.check()
    assert sorted(server.asked) == ["events", "pods"]
    pending.check()
    assert ending.waiting_for == "preempted"


def test_a_job_that_was_created_and_is_not_reported_for_a_minute_is_missing(
    clock: SimpleNamespace, tmp_path: Path
) -> None:
    tracked = track("cpu", 1)
    tracked.state = "in-flight"
    pending = make_pending(tmp_path, Objects(), tracked)
    assert pending.check() == []
    clock.now = 60.0
    assert pending.check() == [(tracked, None)]
