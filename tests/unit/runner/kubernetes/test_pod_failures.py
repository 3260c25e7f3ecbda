"""Why pods do not start, and how long that is waited for."""

import math
import time
from dataclasses import replace

import pytest

from bench.schema import PlannedCell
from cluster_objects import load_object, load_pod
from factories import make_cell
from runner.kubernetes.object_status import JobStatus, PodStatus, read_job_status
from runner.kubernetes.pod_failures import (
    CONFIGURATION_SECONDS,
    IMAGE_SECONDS,
    UNEXPLAINED_SECONDS,
    PodFailure,
    find_pod_failure,
)
from runner.kubernetes.rendering.job_name import JobKey
from runner.kubernetes.tracked_jobs import TrackedJob
from runner.matrix.plan import Repeat

UNSCHEDULABLE_SECONDS = 900.0


def find(
    *pods: PodStatus, missing_pod_reason: str = "", seconds_without: float | None = None, job: JobStatus | None = None
) -> PodFailure | None:
    planned = PlannedCell(cell=make_cell(), repeats=1, timeout_seconds=600.0)
    tracked = TrackedJob(
        repeat=Repeat(planned=planned, number=1),
        key=JobKey(run_id="demo", cell_id=planned.cell.cell_id, number=1, retry_round=0),
        pods={pod.name: pod for pod in pods},
        missing_pod_reason=missing_pod_reason,
        no_pod_since=None if seconds_without is None else time.monotonic() - seconds_without,
        job=job,
    )
    return find_pod_failure(tracked, unschedulable_seconds=UNSCHEDULABLE_SECONDS)


def wait_for(reason: str, message: str) -> PodStatus:
    return replace(load_pod("image"), waiting_reason=reason, waiting_message=message)


def test_a_pod_that_no_node_takes_is_told_in_the_schedulers_words() -> None:
    found = find(load_pod("unschedulable"))
    assert found is not None
    assert (found.kind, found.patience_seconds) == ("unschedulable", UNSCHEDULABLE_SECONDS)
    assert found.to_failure().message.startswith("no node took the pod: 0/1 nodes are available: 1 Insufficient cpu.")


@pytest.mark.parametrize(
    ("reason", "message", "kind", "patience"),
    [
        ("ImagePullBackOff", 'Back-off pulling image "x": not found', "bad-image", 0),
        ("ErrImagePull", "401 Unauthorized", "bad-image", 0),
        ("ErrImagePull", "pull access denied", "bad-image", 0),
        ("ErrImagePull", "dial tcp: i/o timeout", "bad-image", IMAGE_SECONDS),
        ("RegistryUnavailable", "", "bad-image", IMAGE_SECONDS),
        ("InvalidImageName", "couldn't parse", "bad-image", 0),
        ("ErrImageNeverPull", "", "bad-image", 0),
        ("CreateContainerConfigError", 'secret "x" not found', "bad-configuration", CONFIGURATION_SECONDS),
        ("CreateContainerError", "", "bad-configuration", CONFIGURATION_SECONDS),
    ],
)
def test_a_container_that_cannot_start_is_waited_for_as_its_reason_deserves(
    reason: str, message: str, kind: str, patience: float
) -> None:
    found = find(wait_for(reason, message))
    assert found is not None
    assert (found.kind, found.patience_seconds) == (kind, patience)
    assert found.message == f"{reason}: {message}".rstrip(": ")


def test_a_device_that_the_node_cannot_resolve_is_the_nodes_fault() -> None:
    found = find(wait_for("CreateContainerError", "CDI device injection failed: unresolvable CDI devices a/gpu=0"))
    assert found is not None
    assert found.is_node_fault
    assert found.kind == "infrastructure"
    other = find(wait_for("CreateContainerError", "failed to reserve container name"))
    assert other is not None
    assert not other.is_node_fault


@pytest.mark.parametrize("reason", ["ContainerCreating", "PodInitializing", ""])
def test_a_container_that_is_about_to_start_is_not_hindered(reason: str) -> None:
    assert find(wait_for(reason, "")) is None


def test_pods_that_run_or_failed_hinder_nothing() -> None:
    assert find(load_pod("running"), load_pod("rejected"), load_pod("preempted")) is None


def test_the_newest_pending_pod_counts() -> None:
    older = load_pod("image")
    newer = load_pod("unschedulable")
    assert older.created_at < newer.created_at
    found = find(newer, older)
    assert found is not None
    assert found.kind == "unschedulable"


def test_a_quota_is_waited_for_like_a_node() -> None:
    found = find(missing_pod_reason=load_object("messages")["quota"])
    assert found is not None
    assert (found.kind, found.patience_seconds) == ("unschedulable", UNSCHEDULABLE_SECONDS)
    assert "exceeded quota: team" in found.message


def test_a_service_account_that_is_not_there_is_a_fault_of_the_configuration() -> None:
    found = find(missing_pod_reason=load_object("messages")["no-account"])
    assert found is not None
    assert (found.kind, found.patience_seconds) == ("bad-configuration", CONFIGURATION_SECONDS)


def test_a_job_without_a_pod_of_which_nobody_says_why_is_told_and_not_given_up() -> None:
    found = find(seconds_without=UNEXPLAINED_SECONDS + 1)
    assert found is not None
    assert found.patience_seconds == math.inf
    assert "its Job has no pod, and no event says why; look at the Job's `parallelism`" in found.to_failure().message


@pytest.mark.parametrize("counts", [{"num_failed_pods": 1}, {"num_terminating": 1}])
def test_a_job_between_two_pods_is_not_told(counts: dict[str, int]) -> None:
    job = replace(read_job_status(load_object("job-running")), **counts)  # type: ignore[arg-type]  # all are ints
    assert find(seconds_without=UNEXPLAINED_SECONDS + 1, job=job) is None
    assert find(seconds_without=1.0) is None


def test_a_task_of_which_nothing_is_known_is_not_hindered() -> None:
    assert find() is None
