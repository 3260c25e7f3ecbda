"""What is asked about pods that do not start and Jobs that have none, how often, and when waiting ends."""

import math
from collections.abc import Callable
from dataclasses import replace
from datetime import datetime
from http import HTTPStatus
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast
from unittest.mock import Mock

import pytest

from cluster_objects import load_job, load_object, load_pod
from ongoing_runs import SameThread, make_ongoing, track
from runner.kubernetes.connection import ApiError, Connection
from runner.kubernetes.failures import (
    CONFIGURATION_SECONDS,
    FAILED_CREATE,
    IMAGE_SECONDS,
    PendingPods,
    Verdict,
    read_reasons,
)
from runner.kubernetes.objects import PodStatus
from runner.kubernetes.tracked_jobs import TrackedJob


class Objects:
    """An API server that has these events, and keeps how often it was asked for them."""

    def __init__(self, *events: dict[str, Any]) -> None:
        self.events, self.num_asked = events, 0

    def list_items(self, _path: str, *, fieldSelector: str) -> list[dict[str, Any]]:  # noqa: N803
        self.num_asked += 1
        excluded = [word.removeprefix("reason!=") for word in fieldSelector.split(",")]
        return [event for event in self.events if event["reason"] not in excluded]


def say(
    reason: str, message: str, at: str, *, uid: str = "p1", job: str = "", last_seen: str | None = None
) -> dict[str, Any]:
    """Return an event of a pod or a Job; what ends well is no warning."""
    return {
        "involvedObject": {"kind": "Job" if job else "Pod", "uid": uid, "name": job},
        "type": "Normal" if reason == "Pulling" else "Warning",
        "reason": reason,
        "message": message,
        "lastTimestamp": f"2026-11-22T{at}Z" if at else None,
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
            [
                say("FailedAttachVolume", "in use", "06:00:00", last_seen="06:05:00.000000"),
                PULLING,
                say("FailedMount", "no volume", "", uid="p2") | {"eventTime": "2026-11-22T06:05:00Z"},
                say("Pulling", "Pulling image x", "06:01:00", uid="p2"),
            ],
            {"p1": "FailedAttachVolume: in use", "p2": "FailedMount: no volume"},
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
    assert read_reasons(cast(Connection, Objects(*events)), "space") == problems


def test_nobody_says_why_where_events_may_not_be_read() -> None:
    server: Any = SimpleNamespace(list_items=Mock(side_effect=ApiError(HTTPStatus.FORBIDDEN, "Forbidden", "not you")))
    assert read_reasons(server, "space") == {}


def test_of_each_job_the_newest_message_counts() -> None:
    named = [("a", "later", "06:00:09"), ("b", "other", "06:00:01"), ("a", "earlier", "06:00:03")]
    server = Objects(*(say(FAILED_CREATE, message, at, job=job) for job, message, at in named))
    assert read_reasons(cast(Connection, server), "space") == {"a": "later", "b": "other"}


Explain = Callable[..., Verdict | None]
RUNNING = load_job("running")
LACKING = replace(RUNNING, num_active=0, num_ready=0, num_terminating=0)


@pytest.fixture
def explain(tmp_path: Path) -> Explain:
    """Why the pod of a Job does not run that has these pods; `said`: in an event of its Job or pod."""

    def explain(*pods: PodStatus, said: str = "", **fields: Any) -> Verdict | None:
        tracked = replace(track("cpu", 1), **({"job": LACKING} | fields))
        tracked.pods = {pod.name: pod for pod in pods}
        about = {"uid": pods[0].uid} if pods else {"job": tracked.name}
        event = say("FailedMount" if pods else FAILED_CREATE, said, "06:00:00", **about)
        pending = PendingPods(make_ongoing(tmp_path, connection=Objects(event), dispatcher=SameThread()))
        pending._ask(0.0, is_needed=bool(said))
        found = pending.explain(tracked)
        return found if found and found.message else None

    return explain


@pytest.mark.parametrize(
    ("reason", "message", "kind", "patience"),
    [
        ("ImagePullBackOff", 'Back-off pulling image "x": not found', "bad-image", 0),
        ("ErrImagePull", "401 Unauthorized", "bad-image", 0),
        ("ErrImagePull", "pull access denied", "bad-image", 0),
        ("ErrImagePull", "403 Forbidden", "bad-image", 0),
        ("ErrImagePull", "x/nvidia-container-cli: dial tcp: i/o timeout", "bad-image", IMAGE_SECONDS),
        ("ImageInspectError", "", "bad-image", IMAGE_SECONDS),
        ("RegistryUnavailable", "", "bad-image", IMAGE_SECONDS),
        ("InvalidImageName", "couldn't parse", "bad-image", 0),
        ("ErrImageNeverPull", "", "bad-image", 0),
        ("CreateContainerConfigError", 'secret "x" not found', "bad-configuration", CONFIGURATION_SECONDS),
        ("CreateContainerError", "name in use", "bad-configuration", CONFIGURATION_SECONDS),
        ("CreateContainerError", "unresolvable CDI devices a/gpu=0", "infrastructure", CONFIGURATION_SECONDS),
        *[(reason, "", None, None) for reason in ("ContainerCreating", "PodInitializing", "")],
    ],
)
def test_a_container_that_cannot_start_is_waited_for_as_its_reason_deserves(
    explain: Explain, reason: str, message: str, kind: str | None, patience: float | None
) -> None:
    found = explain(replace(load_pod("image"), waiting_reason=reason, waiting_message=message))
    assert (found and (found.kind, found.patience, found.message, found.node_fault)) == (
        kind and (kind, patience, f"{reason}: {message}".rstrip(": "), kind == "infrastructure")
    )


@pytest.mark.parametrize(("reason", "node"), [("PodInitializing", "node-1"), ("", "node-1"), ("", "")])
def test_a_pod_that_has_a_node_and_no_reason_of_its_own_has_that_of_its_events(
    explain: Explain, reason: str, node: str
) -> None:
    found = explain(replace(load_pod("image"), waiting_reason=reason, node=node), said="no volume")
    assert (found and (found.kind, found.message)) == (("infrastructure", "FailedMount: no volume") if node else None)


MESSAGES = load_object("messages")
OVERDUE = replace(load_pod("running"), name="late", node="node-1", deleted_at=datetime.fromisoformat("2020-01-01T00Z"))
ENDING = replace(OVERDUE, deleted_at=datetime.fromisoformat("2200-01-01T00Z"))
TERMINATING = {"job": replace(LACKING, num_terminating=1)}


@pytest.mark.parametrize(
    ("pods", "fields", "kind", "patience", "words"),
    [
        ([], {"job": RUNNING}, None, None, ""),
        ([], {"job": replace(LACKING, num_active=1)}, None, None, ""),
        ([], {"job": replace(LACKING, is_suspended=True)}, None, None, ""),
        (["unschedulable", "image"], {}, "unschedulable", 900.0, "no node took the pod: 0/1 nodes are available: 1 I"),
        ([], {"said": MESSAGES["quota"]}, "unschedulable", 900.0, "exceeded quota"),  # as for a node
        ([], {"said": MESSAGES["no-account"]}, "bad-configuration", CONFIGURATION_SECONDS, "account"),
        # Of which nobody says why: it is told, and not given up.
        ([], {}, "bad-configuration", math.inf, "look at the Job's `parall"),
        # Between two pods.
        (["rejected", "preempted"], {"job": replace(LACKING, num_failed_pods=1)}, None, None, ""),
        ([], TERMINATING, None, None, ""),
        ([], TERMINATING | {"running_pod": ENDING}, None, None, ""),
        (
            [],
            TERMINATING | {"running_pod": OVERDUE},
            "preempted",
            math.inf,
            "pod late should have ended by 2020-01-01T00:00:00Z, but node node-1",
        ),
    ],
)
def test_why_a_job_has_no_running_pod_is_told_and_how_long_it_is_waited_for(
    explain: Explain, pods: list[str], fields: dict[str, Any], kind: str | None, patience: float | None, words: str
) -> None:
    found = explain(*map(load_pod, pods), **fields)
    assert (found and (found.kind, found.patience)) == (kind and (kind, patience))
    assert words in (found.to_failure().message if found else "")


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> SimpleNamespace:
    clock = SimpleNamespace(now=0.0)
    monkeypatch.setattr("runner.kubernetes.failures.time", SimpleNamespace(monotonic=lambda: clock.now))
    return clock


def read_warnings(pending: PendingPods) -> list[str]:
    return cast(SameThread, pending.run.dispatcher).warnings


def follow(folder: Path, server: Objects, *jobs: TrackedJob) -> PendingPods:
    """Return what watches these Jobs, which are in flight."""
    for tracked in jobs:
        tracked.state = "in-flight"
    return PendingPods(make_ongoing(folder, *jobs, connection=server, dispatcher=SameThread()))


def test_however_many_jobs_lack_a_pod_it_is_asked_once_and_then_less_and_less_often(
    clock: SimpleNamespace, tmp_path: Path
) -> None:
    jobs, words = [track("cpu", seed) for seed in range(200)], "exceeded quota: q, used: count/pods=9"
    for tracked in jobs:
        tracked.job = LACKING
    server = Objects(*(say(FAILED_CREATE, words, "06:00:00", job=tracked.name) for tracked in jobs))
    pending = follow(tmp_path, server, *jobs)
    asked_at = []
    for second in range(250):
        clock.now, before = float(second), server.num_asked
        assert pending.check() == []
        asked_at += [second] * (server.num_asked - before)

    assert asked_at == [10, 20, 40, 80, 140, 200]  # of 200 Jobs by one list of events
    assert pending.is_room_needed
    clock.now += 900.0
    server.events = (say(FAILED_CREATE, "exceeded quota: q, used: pods=9", "06:00:00", job=jobs[0].name),)
    assert [tracked for tracked, verdict in pending.check() if verdict.message == words] == jobs
    assert not pending.is_room_needed


def test_a_job_between_two_pods_is_asked_about_only_after_a_minute(clock: SimpleNamespace, tmp_path: Path) -> None:
    tracked, server = track("cpu", 1), Objects()
    tracked.job = replace(LACKING, num_failed_pods=1)
    pending = follow(tmp_path, server, tracked)
    for clock.now in range(60):
        assert pending.check() == []
    assert server.num_asked == 0
    clock.now = 60
    assert (pending.check(), server.num_asked, read_warnings(pending)) == ([], 1, [])
    tracked.job = LACKING  # of which nobody says why: asked after 10 seconds again, and told after a minute
    for clock.now in range(61, 61 + 61):
        assert (pending.check(), len(read_warnings(pending))) == ([], clock.now == 61 + 60)
    assert server.num_asked == 4


def test_a_pod_that_no_node_takes_waits_for_its_turn_while_others_get_on(
    clock: SimpleNamespace, tmp_path: Path
) -> None:
    tracked, other = track("cpu", 1), track("cpu", 2)
    tracked.job, tracked.pods, other.job = LACKING, {"x": load_pod("unschedulable")}, RUNNING
    pending = follow(tmp_path, Objects(), tracked, other)
    for job in (RUNNING, load_job("complete")):
        other.job, clock.now = job, clock.now + 2000
        assert pending.check() == []
    other.state, clock.now = "done", clock.now + 9
    assert (pending.check(), read_warnings(pending)) == ([], [])
    for seconds, ended, num_warnings in ((1, [], 1), (889, [], 2), (1, [tracked], 3)):
        clock.now += seconds
        assert [found for found, _ in pending.check()] == ended
        assert len(read_warnings(pending)) == num_warnings
    tracked.pods = {"x": replace(load_pod("image"), waiting_reason="InvalidImageName")}  # is given up at once
    assert [found for found, _ in pending.check()] == [tracked]
    assert len(read_warnings(pending)) == 4


def test_what_differs_in_numbers_and_their_order_is_told_once_but_for_versions() -> None:
    nodes = ("0/3 nodes are available: 1 busy, 2 taken.", "0/4 nodes are available: 3 taken, 1 busy.")
    assert len({Verdict(kind="unschedulable", message=words).dedup_key for words in nodes}) == 1
    assert len({Verdict(kind="bad-image", message=f"x:{version} not found").dedup_key for version in (1, 2)}) == 2


def test_a_pod_that_takes_long_to_start_is_given_up_once_it_is_said_why(clock: SimpleNamespace, tmp_path: Path) -> None:
    tracked, pod = track("cpu", 1), replace(load_pod("image"), waiting_reason="")
    tracked.job, tracked.pods = replace(RUNNING, num_ready=0), {pod.name: pod}
    pending = follow(tmp_path, Objects(), tracked)
    for clock.now in range(3000):
        assert pending.check() == []
    pending.run.connection = cast(Connection, Objects(say("FailedMount", "no volume", "06:00:00", uid=pod.uid)))
    for clock.now in range(3000, 3062):
        ended = pending.check()
    assert [verdict.message for _, verdict in ended] == ["FailedMount: no volume"]


def test_a_job_that_was_created_and_is_not_reported_for_a_minute_is_missing(
    clock: SimpleNamespace, tmp_path: Path
) -> None:
    tracked = track("cpu", 1)
    pending = follow(tmp_path, Objects(), tracked)
    assert pending.check() == []
    clock.now = 60.0
    assert [found for found, _ in pending.check()] == [tracked]
