"""What is said of pods that have a node and do not start."""

from dataclasses import replace
from typing import Any, cast

import pytest

from cluster_objects import load_pod
from runner.kubernetes.connection import Connection
from runner.kubernetes.start_problems import is_starting, read_start_problems


class Events:
    """An API server that has these events."""

    def __init__(self, *events: dict[str, Any]) -> None:
        self.events = list(events)

    def list_items(self, path: str, **query: str) -> list[dict[str, Any]]:
        assert path == "/api/v1/namespaces/space/events"
        excluded = [word.removeprefix("reason!=") for word in query["fieldSelector"].split(",")]
        return [event for event in self.events if event["reason"] not in excluded]


def say(reason: str, message: str, *, uid: str = "p1", kind: str = "Warning", at: str = "06:00:00") -> dict[str, Any]:
    time = f"2026-11-22T{at}Z"
    return {
        "involvedObject": {"uid": uid},
        "type": kind,
        "reason": reason,
        "message": message,
        "lastTimestamp": time,
        "eventTime": None,
    }


def read(*events: dict[str, Any]) -> dict[str, str]:
    return read_start_problems(cast(Connection, Events(*events)), "space")


def test_the_newest_warning_of_a_pod_is_its_problem_on_one_line() -> None:
    sandbox = say("FailedCreatePodSandBox", "plugin type=calico\nfailed (add)", at="06:00:07")
    mount = say("FailedMount", "volume data not found", uid="p2", at="06:00:01")
    assert read(sandbox, say("FailedMount", "timed out", at="06:00:03"), mount) == {
        "p1": "FailedCreatePodSandBox: plugin type=calico failed (add)",
        "p2": "FailedMount: volume data not found",
    }


def test_a_problem_is_over_once_the_image_is_being_pulled() -> None:
    pulling = say("Pulling", "Pulling image x", kind="Normal", at="06:01:00")
    assert read(say("FailedMount", "timed out", at="06:00:03"), pulling) == {}


def test_a_series_of_events_counts_by_when_it_was_seen_last() -> None:
    repeated = say("FailedAttachVolume", "in use by another node", at="06:00:00")
    repeated["series"] = {"lastObservedTime": "2026-11-22T06:05:00.000000Z", "count": 9}
    pulling = say("Pulling", "Pulling image x", kind="Normal", at="06:01:00")
    assert read(repeated, pulling) == {"p1": "FailedAttachVolume: in use by another node"}


@pytest.mark.parametrize(
    ("reason", "message"),
    [
        ("DNSConfigForming", "Nameserver limits were exceeded, some nameservers have been omitted"),
        ("MissingClusterDNS", "kubelet does not have ClusterDNS IP configured. Falling back to Default policy."),
    ],
)
def test_what_a_kubelet_says_of_its_name_servers_is_no_problem_and_hides_none(reason: str, message: str) -> None:
    sandbox = say("FailedCreatePodSandBox", "no address left", at="06:00:07")
    harmless = say(reason, message, at="06:00:19")
    assert read(harmless) == {}
    assert read(sandbox, harmless) == {"p1": "FailedCreatePodSandBox: no address left"}


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
