"""Why pods and Jobs ended or do not start, as kubelets, runtimes and controllers say it, and what follows."""

import math
import time
from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest

from bench.exit_codes import EXIT_NODE_FAULT, EXIT_PREEMPTED, EXIT_RESULT_IN_LOG, FINAL_EXIT_CODES
from bench.schema import PlannedCell
from cluster_objects import load_job, load_object, load_pod
from factories import make_cell
from runner.kubernetes.failures import (
    CONFIGURATION_SECONDS,
    IMAGE_SECONDS,
    UNEXPLAINED_SECONDS,
    Verdict,
    choose_decisive_pod,
    classify,
    explain_job,
    explain_waiting,
    find_interruption,
    find_node_fault,
    has_only_waited,
    judge_job,
)
from runner.kubernetes.object_status import JobStatus, PodStatus, read_job_status, read_pod_status
from runner.kubernetes.rendering.job_name import JobKey
from runner.kubernetes.tracked_jobs import TrackedJob
from runner.matrix.plan import Repeat

# The kubelet's words: pkg/kubelet/eviction/helpers.go, active_deadline.go, nodeshutdown/nodeshutdown_manager.go.
OVER_TMP = 'Usage of EmptyDir volume "tmp" exceeds the limit "8Gi". '
OVER_POD = "Pod ephemeral local storage usage exceeds the total limit of containers 1Gi. "
OVER_LOG = 'Container bench exceeded its local ephemeral storage limit "1Gi". '
LOW_ON_MEMORY = "The node was low on resource: memory. Threshold quantity: 100Mi, available: 90Mi. "
PAST_DEADLINE = "Pod was active on the node longer than the specified deadline"
SHUT_DOWN = "Pod was terminated in response to imminent node shutdown."


def end(code: int | None = 137, reason: str = "", message: str = "", **more: Any) -> PodStatus:
    """Return a pod whose container ended with `code`, and that its kubelet gives a reason for."""
    fields: dict[str, Any] = {"exit_code": code, "pod_reason": reason, "pod_message": message, "end_message": ""}
    return replace(load_pod("user"), **(fields | {"end_reason": reason or "Error"} | more))


@pytest.mark.parametrize("message", [OVER_TMP, OVER_POD, OVER_LOG])
@pytest.mark.parametrize("code", [137, EXIT_PREEMPTED, 143])
def test_a_pod_over_its_own_storage_limit_ended_for_that_alone(message: str, code: int) -> None:
    pod = end(code, "Evicted", message)
    verdict = classify(pod)
    assert verdict is not None
    assert (verdict.kind, verdict.retry) == ("killed", False)
    assert verdict.message == f"evicted by the kubelet: {message.strip()}"


@pytest.mark.parametrize(
    ("pod", "words"),
    [
        (end(137, "Evicted", LOW_ON_MEMORY), f"Evicted: {LOW_ON_MEMORY.strip(': ')}"),
        (end(137, "DeadlineExceeded", PAST_DEADLINE), f"DeadlineExceeded: {PAST_DEADLINE}"),
        (end(EXIT_PREEMPTED, "Terminated", SHUT_DOWN), f"Terminated: {SHUT_DOWN}"),
        (end(137, "NodeLost", ""), "NodeLost"),
        (end(137, is_deleted=True), "the pod was deleted, and killed when its grace period was over"),
        (end(EXIT_PREEMPTED, is_deleted=True), "the pod was deleted"),
        (end(143), "SIGTERM, from whom is not known"),
        (replace(end(1), disruption="PreemptionByScheduler: made room"), "PreemptionByScheduler: made room"),
        (end(137), ""),
        (end(137, is_deleted=True, end_reason="OOMKilled"), ""),
        (end(1, is_deleted=True), ""),
        (end(0), ""),
    ],
)
def test_a_pod_that_was_taken_down_has_the_words_of_who_did_it(pod: PodStatus, words: str) -> None:
    assert find_interruption(pod) == words


REFUSED: dict[str, Any] = {"has_run": False}


@pytest.mark.parametrize(
    ("pod", "words"),
    [
        (
            end(EXIT_NODE_FAULT, end_message="x\nerror: fault of this machine: GPU is lost"),
            "fault of this machine: GPU",
        ),
        (end(EXIT_NODE_FAULT), "the log of its container says nothing"),
        (load_pod("rejected"), "the kubelet refused the pod: OutOfcpu: Pod was rejected: Node didn't have enough"),
        (
            end(None, "UnexpectedAdmissionError", "Allocate failed", **REFUSED),
            "UnexpectedAdmissionError: Allocate failed",
        ),
        (end(None, "NodeAffinity", "Predicate NodeAffinity failed", **REFUSED), "NodeAffinity"),
        (end(None, "NodeShutdown", "Pod was rejected as the node is shutting down.", **REFUSED), "NodeShutdown"),
        (end(None, "Evicted", "The node had condition: [DiskPressure]. ", **REFUSED), "DiskPressure"),
        (
            end(128, end_reason="StartError", end_message="runc create failed: nvidia-container-cli: nvml error: x"),
            "StartError: runc create failed: nvidia-container-cli",
        ),
        (
            end(
                128,
                end_reason="StartError",
                end_message="failed to create containerd task: failed to create shim task: OCI runtime create failed: "
                "could not apply required modification to OCI specification: error modifying OCI spec: failed to "
                "inject CDI devices: unresolvable CDI devices management.nvidia.com/gpu=0: unknown",
            ),
            "unresolvable CDI devices management.nvidia.com/gpu=0",
        ),
    ],
)
def test_a_node_that_cannot_measure_is_at_fault_in_its_own_words(pod: PodStatus, words: str) -> None:
    assert words in find_node_fault(pod)
    assert find_interruption(pod) == ""


@pytest.mark.parametrize(
    "pod",
    [
        end(1),
        end(None, "DeadlineExceeded", PAST_DEADLINE, **REFUSED),
        end(None, "", "", **REFUSED),
        end(128, end_reason="StartError", end_message='exec: "python": executable file not found in $PATH'),
        replace(end(EXIT_NODE_FAULT), disruption="EvictionByEvictionAPI: drained"),
        load_pod("unschedulable"),
    ],
)
def test_what_a_cell_an_image_or_a_disruption_ended_is_no_fault_of_the_node(pod: PodStatus) -> None:
    assert find_node_fault(pod) == ""


def test_a_job_failed_for_its_node_also_where_no_pod_is_left_to_say_so() -> None:
    message = f"Container bench for pod demo/x failed with exit code {EXIT_NODE_FAULT} matching FailJob rule at index 2"
    for job in (replace(load_job("oom"), message=message), load_job("backoff")):
        verdict = judge_job(job, None if job.message == message else load_pod("rejected"))
        assert verdict is not None
        assert verdict.node_fault
    assert judge_job(load_job("oom"), None) is None
    assert judge_job(load_job("deadline"), load_pod("rejected")) is None


def test_a_job_that_failed_since_its_pod_was_deleted_is_not_the_cells_end() -> None:
    verdict = judge_job(load_job("oom"), end(137, is_deleted=True))
    assert verdict is not None
    assert (verdict.retry, verdict.node_fault) == (True, False)
    assert judge_job(load_job("oom"), end(137)) is None
    assert judge_job(load_job("deadline"), end(137, is_deleted=True)) is None
    assert judge_job(load_job("oom"), end(137, "DeadlineExceeded", PAST_DEADLINE)) is None


def test_a_container_that_the_kubelet_did_not_find_has_no_exit_code_of_its_own() -> None:
    pod = load_object("pod-oom")
    terminated = pod["status"]["containerStatuses"][0]["state"]["terminated"]
    terminated |= {"reason": "ContainerStatusUnknown", "startedAt": None, "finishedAt": None}
    seen = read_pod_status(pod)
    assert (seen.exit_code, seen.has_run) == (None, False)


def test_a_pod_over_its_storage_limit_whose_container_was_not_found_is_no_fault_of_its_node() -> None:
    """As a kubelet of Kubernetes 1.36 left one: no start, no end, and `ContainerStatusUnknown`."""
    pod = load_object("pod-oom")
    pod["status"] |= {"reason": "Evicted", "message": OVER_TMP}
    terminated = pod["status"]["containerStatuses"][0]["state"]["terminated"]
    terminated |= {"reason": "ContainerStatusUnknown", "startedAt": None, "finishedAt": None}
    seen = read_pod_status(pod)
    verdict = classify(seen)
    assert verdict is not None
    assert (verdict.kind, verdict.node_fault) == ("killed", False)
    assert judge_job(load_job("oom"), seen) is None


UNSCHEDULABLE_SECONDS = 900.0


def find(
    *pods: PodStatus, missing_pod_reason: str = "", seconds_without: float | None = None, job: JobStatus | None = None
) -> Verdict | None:
    planned = PlannedCell(cell=make_cell(), repeats=1, timeout_seconds=600.0)
    tracked = TrackedJob(
        repeat=Repeat(planned=planned, number=1),
        key=JobKey(run_id="demo", cell_id=planned.cell.cell_id, number=1, retry_round=0),
        pods={pod.name: pod for pod in pods},
        missing_pod_reason=missing_pod_reason,
        no_pod_since=None if seconds_without is None else time.monotonic() - seconds_without,
        job=job,
    )
    return explain_waiting(tracked, unschedulable_seconds=UNSCHEDULABLE_SECONDS)


def wait_for(reason: str, message: str) -> PodStatus:
    return replace(load_pod("image"), waiting_reason=reason, waiting_message=message)


def test_a_pod_that_no_node_takes_is_told_in_the_schedulers_words() -> None:
    found = find(load_pod("unschedulable"))
    assert found is not None
    assert (found.kind, found.patience) == ("unschedulable", UNSCHEDULABLE_SECONDS)
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
    assert (found.kind, found.patience) == (kind, patience)
    assert found.message == f"{reason}: {message}".rstrip(": ")


def test_a_device_that_the_node_cannot_resolve_is_the_nodes_fault() -> None:
    found = find(wait_for("CreateContainerError", "CDI device injection failed: unresolvable CDI devices a/gpu=0"))
    assert found is not None
    assert found.node_fault
    assert found.kind == "infrastructure"
    other = find(wait_for("CreateContainerError", "failed to reserve container name"))
    assert other is not None
    assert not other.node_fault


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
    assert (found.kind, found.patience) == ("unschedulable", UNSCHEDULABLE_SECONDS)
    assert "exceeded quota: team" in found.message


def test_a_service_account_that_is_not_there_is_a_fault_of_the_configuration() -> None:
    found = find(missing_pod_reason=load_object("messages")["no-account"])
    assert found is not None
    assert (found.kind, found.patience) == ("bad-configuration", CONFIGURATION_SECONDS)


def test_a_job_without_a_pod_of_which_nobody_says_why_is_told_and_not_given_up() -> None:
    found = find(seconds_without=UNEXPLAINED_SECONDS + 1)
    assert found is not None
    assert found.patience == math.inf
    assert "its Job has no pod, and no event says why; look at the Job's `parallelism`" in found.to_failure().message


@pytest.mark.parametrize("counts", [{"num_failed_pods": 1}, {"num_terminating": 1}])
def test_a_job_between_two_pods_is_not_told(counts: dict[str, int]) -> None:
    job = replace(read_job_status(load_object("job-running")), **counts)  # type: ignore[arg-type]  # all are ints
    assert find(seconds_without=UNEXPLAINED_SECONDS + 1, job=job) is None
    assert find(seconds_without=1.0) is None


def test_a_task_of_which_nothing_is_known_is_not_hindered() -> None:
    assert find() is None


STORE = "s3://bucket/prefix"


def end_with(code: int, tail: str = "", reason: str = "Error") -> PodStatus:
    return replace(load_pod("user"), exit_code=code, end_message=tail, end_reason=reason)


@pytest.mark.parametrize(
    ("code", "tail", "reason", "status", "kind", "words"),
    [
        (1, "boom", "Error", "failed", "exit", "ended with exit code 1 and left no result"),
        (2, "x\nerror: BENCH_STORE: not set\n", "Error", "failed", "bad-configuration", "BENCH_STORE: not set"),
        (2, "only this", "Error", "failed", "bad-configuration", "only this"),
        (2, "", "Error", "failed", "bad-configuration", "the order or the store is wrong"),
        (4, "x\nerror: GPU 1 is in use\n", "Error", "failed", "infrastructure", "often it was tried: GPU 1 is in use"),
        (126, "permission denied", "Error", "failed", "bad-image", "permission denied"),
        (127, "", "Error", "failed", "bad-image", "the image could not be run: Error"),
        (128, "no such file: python", "StartError", "failed", "bad-image", "no such file: python"),
        (134, "terminate called: std::bad_alloc", "Error", "oom", "out-of-memory", "std::bad_alloc"),
        (134, "Aborted", "Error", "failed", "killed", "ended by SIGABRT"),
        (137, "", "Error", "failed", "killed", "ended by SIGKILL, perhaps by the kernel for lack of memory"),
        (137, "", "OOMKilled", "oom", "out-of-memory", "killed by the kernel's OOM killer"),
        (139, "", "Error", "failed", "killed", "ended by SIGSEGV"),
        (143, "", "Error", "failed", "killed", "ended by SIGTERM"),
    ],
)
def test_the_exit_of_a_container_shows_what_happened(
    code: int, tail: str, reason: str, status: str, kind: str, words: str
) -> None:
    found, failure = explain_job(load_job("oom"), [end_with(code, tail, reason)], STORE)
    assert (found, failure.kind) == (status, kind)
    assert words in failure.message
    assert failure.stderr_tail == tail


@pytest.mark.parametrize("code", sorted(FINAL_EXIT_CODES))
def test_every_exit_that_ends_a_job_is_told_with_its_code(code: int) -> None:
    _, failure = explain_job(load_job("oom"), [end_with(code)], STORE)
    assert failure.exit_code == code
    assert failure.kind != "infrastructure" or code == EXIT_RESULT_IN_LOG


def test_a_container_that_ended_well_without_a_record_names_the_store() -> None:
    status, failure = explain_job(load_job("complete"), [], STORE)
    assert (status, failure.kind, failure.exit_code) == ("failed", "exit", 0)
    assert STORE in failure.message


def test_a_jobs_deadline_is_a_timeout() -> None:
    status, failure = explain_job(load_job("deadline"), [], STORE)
    assert (status, failure.kind) == ("timeout", "timeout")
    assert failure.message == "ended by its deadline: Job was active longer than specified deadline"


def test_a_jobs_deadline_is_not_its_cells_while_the_cell_waited() -> None:
    job = load_job("deadline")
    assert job.ended_at is not None
    waiting = replace(load_pod("unschedulable"), started_at=None)
    assert has_only_waited(job, [waiting], timeout_seconds=600.0)
    assert has_only_waited(job, [], timeout_seconds=600.0)  # the controller has deleted the pod

    late = replace(load_pod("running"), started_at=job.ended_at - timedelta(seconds=599))
    assert has_only_waited(job, [late], timeout_seconds=600.0)


def test_a_cell_that_had_its_time_has_not_only_waited() -> None:
    job = load_job("deadline")
    assert job.ended_at is not None
    slow = replace(load_pod("running"), started_at=job.ended_at - timedelta(seconds=601))
    assert not has_only_waited(job, [slow], timeout_seconds=600.0)
    own = replace(load_pod("oom"), end_reason="DeadlineExceeded", started_at=job.ended_at)
    assert not has_only_waited(job, [own], timeout_seconds=600.0)
    assert not has_only_waited(load_job("complete"), [], timeout_seconds=600.0)


def test_a_pods_deadline_is_a_timeout_whatever_its_exit_code() -> None:
    # A kubelet's words: k8s.io/kubernetes/pkg/kubelet/active_deadline.go
    words = "Pod was active on the node longer than the specified deadline"
    pod = replace(load_pod("oom"), end_reason="DeadlineExceeded", end_message=words)
    status, failure = explain_job(load_job("backoff"), [pod], STORE)
    assert (status, failure.message) == ("timeout", f"ended by its deadline: {words}")


def test_a_pod_over_its_storage_limit_has_the_kubelets_words_and_no_guess_about_memory() -> None:
    words = 'Usage of EmptyDir volume "tmp" exceeds the limit "8Gi". '
    pod = replace(load_pod("oom"), end_reason="Evicted", pod_reason="Evicted", pod_message=words, exit_code=137)
    status, failure = explain_job(load_job("oom"), [pod], STORE)
    assert (status, failure.kind) == ("failed", "killed")
    assert failure.message == f"evicted by the kubelet: {words.strip()}"


def test_a_pod_that_was_deleted_and_killed_is_told_so_without_a_guess_about_memory() -> None:
    pod = replace(end_with(137), is_deleted=True)
    _, failure = explain_job(load_job("oom"), [pod], STORE)
    assert failure.message == "ended by SIGKILL: the pod was deleted, and killed when its grace period was over"


def test_a_pod_that_never_started_before_its_deadline_has_the_words_of_its_events() -> None:
    words = "Pod was active on the node longer than the specified deadline"
    pod = replace(load_pod("rejected"), pod_reason="DeadlineExceeded", end_reason="DeadlineExceeded", pod_message=words)
    for problem, expected in (("FailedMount: not found", "FailedMount: not found"), ("", words)):
        status, failure = explain_job(load_job("oom"), [pod], STORE, problem)
        assert (status, failure.kind) == ("failed", "infrastructure")
        assert failure.message == f"the pod did not start before its deadline: {expected}"


def test_a_node_that_could_not_start_the_pod_is_infrastructure() -> None:
    status, failure = explain_job(load_job("backoff"), [load_pod("rejected")], STORE)
    assert (status, failure.kind) == ("failed", "infrastructure")
    assert "BackoffLimitExceeded" in failure.message
    assert "OutOfcpu" in failure.message


def test_a_failed_job_without_pods_says_so() -> None:
    _, failure = explain_job(load_job("backoff"), [], STORE)
    assert failure.message.endswith("Job has reached the specified backoff limit; none of its pods is left")


def test_the_deciding_pod_is_the_newest_whose_container_ended() -> None:
    old, new, waiting = load_pod("oom"), load_pod("crash"), load_pod("unschedulable")
    assert old.created_at < new.created_at < waiting.created_at
    assert choose_decisive_pod([waiting, new, old]) == new
    assert choose_decisive_pod([waiting]) == waiting
    assert choose_decisive_pod([]) is None
