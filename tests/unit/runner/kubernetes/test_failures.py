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
    find_node_fault,
    has_only_waited,
    judge_job,
)
from runner.kubernetes.names import JobKey
from runner.kubernetes.objects import JobStatus, PodStatus, read_job_status, read_pod_status
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


OWN_LIMIT = ("killed", False, False)
NODE_FAULT = ("infrastructure", True, True)
TAKEN_DOWN = ("preempted", True, False)
REFUSED: dict[str, Any] = {"has_run": False}
CDI_ERROR = (
    "failed to create containerd task: failed to create shim task: OCI runtime create failed: could not apply required "
    "modification to OCI specification: error modifying OCI spec: failed to inject CDI devices: unresolvable CDI "
    "devices management.nvidia.com/gpu=0: unknown"
)


@pytest.mark.parametrize(
    ("pod", "verdict", "words"),
    [
        *[
            (end(code, "Evicted", message), OWN_LIMIT, f"evicted by the kubelet: {message.strip()}")
            for code in (137, EXIT_PREEMPTED)
            for message in (OVER_TMP, OVER_POD, OVER_LOG)
        ],
        (end(137, "Evicted", LOW_ON_MEMORY), TAKEN_DOWN, f"Evicted: {LOW_ON_MEMORY.strip(': ')}"),
        (end(137, "DeadlineExceeded", PAST_DEADLINE), TAKEN_DOWN, f"DeadlineExceeded: {PAST_DEADLINE}"),
        (end(None, "DeadlineExceeded", PAST_DEADLINE, **REFUSED), TAKEN_DOWN, "DeadlineExceeded"),
        (end(EXIT_PREEMPTED, "Terminated", SHUT_DOWN), TAKEN_DOWN, f"Terminated: {SHUT_DOWN}"),
        (end(137, "NodeLost", ""), TAKEN_DOWN, "NodeLost"),
        (end(137, is_deleted=True), TAKEN_DOWN, "the pod was deleted, and killed when its grace period was over"),
        (end(EXIT_PREEMPTED, is_deleted=True), TAKEN_DOWN, "the pod was deleted"),
        (end(143), TAKEN_DOWN, "SIGTERM, from whom is not known"),
        (replace(end(1), disruption="PreemptionByScheduler: room"), TAKEN_DOWN, "PreemptionByScheduler: room"),
        (replace(end(EXIT_NODE_FAULT), disruption="EvictionByEvictionAPI: x"), TAKEN_DOWN, "EvictionByEvictionAPI: x"),
        (end(EXIT_NODE_FAULT, end_message="x\nerror: GPU is lost"), NODE_FAULT, "GPU is lost"),
        (end(EXIT_NODE_FAULT), NODE_FAULT, "the log of its container says nothing"),
        (load_pod("rejected"), NODE_FAULT, "the kubelet refused the pod: OutOfcpu: Pod was rejected: Node didn't have"),
        (end(None, "UnexpectedAdmissionError", "no", **REFUSED), NODE_FAULT, "UnexpectedAdmissionError: no"),
        (end(None, "NodeAffinity", "Predicate failed", **REFUSED), NODE_FAULT, "NodeAffinity: Predicate failed"),
        (end(None, "NodeShutdown", "Pod was rejected", **REFUSED), NODE_FAULT, "NodeShutdown"),
        (end(None, "Evicted", "The node had condition: [DiskPressure]. ", **REFUSED), NODE_FAULT, "DiskPressure"),
        (end(128, end_reason="StartError", end_message="nvidia-container-cli: nvml error"), NODE_FAULT, "StartError: "),
        (end(128, end_reason="StartError", end_message=CDI_ERROR), NODE_FAULT, "unresolvable CDI devices management"),
        (end(128, end_reason="StartError", end_message='exec: "python": not found in $PATH'), None, ""),
        (end(137), None, ""),
        (end(137, is_deleted=True, end_reason="OOMKilled"), None, ""),
        (end(1, is_deleted=True), None, ""),
        (end(0), None, ""),
        (end(None, "", "", **REFUSED), None, ""),
        (load_pod("unschedulable"), None, ""),
        (load_pod("running"), None, ""),
    ],
)
def test_how_a_pod_ended_that_did_not_end_by_itself(
    pod: PodStatus, verdict: tuple[str, bool, bool] | None, words: str
) -> None:
    found = classify(pod)
    assert (found and (found.kind, found.retry, found.node_fault)) == verdict
    assert words in (found.message if found else "")
    assert find_node_fault(pod) == (found.message if found and found.node_fault else "")


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


def test_a_pod_over_its_storage_limit_whose_container_was_not_found_is_no_fault_of_its_node() -> None:
    """As a kubelet of Kubernetes 1.36 left one: no start, no end, and `ContainerStatusUnknown`."""
    pod = load_object("pod-oom")
    pod["status"] |= {"reason": "Evicted", "message": OVER_TMP}
    terminated = pod["status"]["containerStatuses"][0]["state"]["terminated"]
    terminated |= {"reason": "ContainerStatusUnknown", "startedAt": None, "finishedAt": None}
    seen = read_pod_status(pod)
    verdict = classify(seen)
    assert (seen.exit_code, seen.has_run) == (None, False)
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
        ("CreateContainerError", "name in use", "bad-configuration", CONFIGURATION_SECONDS),
        ("CreateContainerError", "unresolvable CDI devices a/gpu=0", "infrastructure", CONFIGURATION_SECONDS),
        *[(reason, "", None, None) for reason in ("ContainerCreating", "PodInitializing", "")],
    ],
)
def test_a_container_that_cannot_start_is_waited_for_as_its_reason_deserves(
    reason: str, message: str, kind: str | None, patience: float | None
) -> None:
    found = find(wait_for(reason, message))
    assert (found and (found.kind, found.patience, found.message, found.node_fault)) == (
        kind and (kind, patience, f"{reason}: {message}".rstrip(": "), kind == "infrastructure")
    )


def test_pods_that_run_or_failed_hinder_nothing() -> None:
    assert find() is None
    assert find(load_pod("running"), load_pod("rejected"), load_pod("preempted")) is None


def test_the_newest_pending_pod_counts() -> None:
    older = load_pod("image")
    newer = load_pod("unschedulable")
    assert older.created_at < newer.created_at
    found = find(newer, older)
    assert found is not None
    assert (found.kind, found.patience) == ("unschedulable", UNSCHEDULABLE_SECONDS)
    assert found.to_failure().message.startswith("no node took the pod: 0/1 nodes are available: 1 Insufficient cpu.")


@pytest.mark.parametrize(
    ("message", "kind", "patience"),
    [
        ("quota", "unschedulable", UNSCHEDULABLE_SECONDS),  # waited for like a node
        ("no-account", "bad-configuration", CONFIGURATION_SECONDS),
    ],
)
def test_why_a_pod_could_not_be_created(message: str, kind: str, patience: float) -> None:
    reason = load_object("messages")[message]
    found = find(missing_pod_reason=reason)
    assert found is not None
    assert (found.kind, found.patience, found.message) == (kind, patience, reason)


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
