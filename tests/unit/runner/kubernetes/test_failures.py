"""Why pods and Jobs ended or do not start, as kubelets, runtimes and controllers say it, and what follows."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from bench.errors import EXIT_NODE_FAULT, EXIT_PREEMPTED, EXIT_RESULT_IN_LOG, FINAL_EXIT_CODES
from cluster_objects import load_job, load_object, load_pod
from runner.kubernetes.failures import (
    STATUSES,
    choose_decisive_pod,
    classify,
    explain_job,
    find_interruption,
    find_node_fault,
    has_only_waited,
    judge_job,
)
from runner.kubernetes.objects import JobStatus, PodStatus, read_pod_status

# The kubelet's words: pkg/kubelet/eviction/helpers.go, active_deadline.go, nodeshutdown/nodeshutdown_manager.go.
OVER_TMP = 'Usage of EmptyDir volume "tmp" exceeds the limit "8Gi". '
OVER_POD = "Pod ephemeral local storage usage exceeds the total limit of containers 1Gi. "
OVER_LOG = 'Container bench exceeded its local ephemeral storage limit "1Gi". '
LOW_ON_MEMORY = "The node was low on resource: memory. Threshold quantity: 100Mi, available: 90Mi. "
PAST_DEADLINE = "Pod was active on the node longer than the specified deadline"
SHUT_DOWN = "Pod was terminated in response to imminent node shutdown."


NOW = datetime.now(UTC)


def end(code: int | None = 137, reason: str = "", message: str = "", **more: Any) -> PodStatus:
    """Return a pod whose container ended with `code`, and that its kubelet gives a reason for."""
    fields: dict[str, Any] = {"exit_code": code, "pod_reason": reason, "pod_message": message, "end_message": ""}
    return replace(load_pod("user"), **(fields | {"end_reason": reason or "Error"} | more))


OWN_LIMIT = ("killed", False, False)
NODE_FAULT = ("infrastructure", True, True)
TAKEN_DOWN = ("preempted", True, False)
REFUSED: dict[str, Any] = {"has_run": False}
PAST = end(None, "DeadlineExceeded", PAST_DEADLINE, **REFUSED)
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
        (end(None, "Evicted", OVER_TMP, **REFUSED), OWN_LIMIT, "evicted by the kubelet"),
        (end(137, "Evicted", LOW_ON_MEMORY), TAKEN_DOWN, f"Evicted: {LOW_ON_MEMORY.strip(': ')}"),
        (end(137, "DeadlineExceeded", PAST_DEADLINE), TAKEN_DOWN, f"DeadlineExceeded: {PAST_DEADLINE}"),
        (PAST, TAKEN_DOWN, "DeadlineExceeded"),
        *[
            (end(EXIT_PREEMPTED, reason, SHUT_DOWN), TAKEN_DOWN, f"{reason}: {SHUT_DOWN}")
            for reason in ("Terminated", "Shutdown", "NodeShutdown", "Preempting")
        ],
        (end(137, "NodeLost", ""), TAKEN_DOWN, "NodeLost"),
        (end(137, deleted_at=NOW), TAKEN_DOWN, "the pod was deleted, and killed when its grace period was over"),
        (end(EXIT_PREEMPTED, deleted_at=NOW), TAKEN_DOWN, "the pod was deleted"),
        (end(143), TAKEN_DOWN, "SIGTERM, from whom is not known"),
        (replace(end(1), disruption="PreemptionByScheduler: room"), TAKEN_DOWN, "PreemptionByScheduler: room"),
        (replace(end(EXIT_NODE_FAULT), disruption="EvictionByEvictionAPI: x"), TAKEN_DOWN, "EvictionByEvictionAPI: x"),
        (end(EXIT_NODE_FAULT, end_message="error: x\nerror: GPU is lost"), NODE_FAULT, "GPU is lost"),
        (end(EXIT_NODE_FAULT), NODE_FAULT, "the log of its container says nothing"),
        (load_pod("rejected"), NODE_FAULT, "the kubelet refused the pod: OutOfcpu: Pod was rejected: Node didn't have"),
        (end(None, "OutOfpods", "exceeds the limit", **REFUSED), NODE_FAULT, "OutOfpods: exceeds the limit"),
        (end(None, "OutOfpods", "x", node="", **REFUSED), None, ""),
        (end(None, "NodeAffinity", "Predicate failed", **REFUSED), NODE_FAULT, "NodeAffinity: Predicate failed"),
        (end(None, "NodeShutdown", "Pod was rejected", **REFUSED), NODE_FAULT, "NodeShutdown"),
        (end(None, "Evicted", "The node had condition: [DiskPressure]. ", **REFUSED), NODE_FAULT, "DiskPressure"),
        *[
            (end(128, end_reason=reason, end_message=message), NODE_FAULT, f"{reason}: {message}")
            for reason in ("StartError", "ContainerCannotRun")
            for message in ("nvidia-container-cli: x", "nvidia-ctk: x", "x: nvml error", "CDI device injection failed")
        ],
        # What its container waited for before does not count once the pod has ended.
        (replace(PAST, waiting_reason="CreateContainerError", waiting_message=CDI_ERROR), TAKEN_DOWN, "Deadline"),
        (end(128, end_reason="StartError", end_message=CDI_ERROR), NODE_FAULT, "unresolvable CDI devices management"),
        (end(128, end_reason="StartError", end_message='exec: "python": not found in $PATH'), None, ""),
        (end(137), None, ""),
        (end(137, deleted_at=NOW, end_reason="OOMKilled"), None, ""),
        (end(1, deleted_at=NOW, end_message="nvml error"), None, ""),
        (end(143, phase="Running"), None, ""),
        (end(0), None, ""),
        (end(None, "", "", **REFUSED), None, ""),
        (load_pod("unschedulable"), None, ""),
    ],
)
def test_how_a_pod_ended_that_did_not_end_by_itself(
    pod: PodStatus, verdict: tuple[str, bool, bool] | None, words: str
) -> None:
    found = classify(pod)
    assert (found and (found.kind, found.retry, found.node_fault)) == verdict
    assert words in (found.message if found else "")
    assert find_node_fault(pod) == (found.message if found and found.node_fault else "")
    assert find_interruption(pod) == (found.message if found and verdict == TAKEN_DOWN else "")


NODE_FAULT_MESSAGE = (
    f"Container bench for pod demo/x failed with exit code {EXIT_NODE_FAULT} matching FailJob rule at index 2"
)


@pytest.mark.parametrize(
    ("job", "pod", "blamed"),
    [
        (load_job("backoff"), load_pod("rejected"), "its node"),
        (replace(load_job("oom"), message=NODE_FAULT_MESSAGE), None, "its node"),  # no pod is left to say so
        (load_job("oom"), end(137, deleted_at=NOW), "others"),
        (load_job("oom"), end(137), None),
        (load_job("oom"), None, None),
        (replace(load_job("oom"), message=NODE_FAULT_MESSAGE.replace(" matching", "0 matching")), None, None),
        (load_job("oom"), end(EXIT_NODE_FAULT, "DeadlineExceeded", PAST_DEADLINE), "its node"),
        (load_job("complete"), end(137, deleted_at=NOW), None),
        (load_job("oom"), end(137, "DeadlineExceeded", PAST_DEADLINE), None),
        (load_job("oom"), end(None, "Evicted", OVER_TMP, **REFUSED), None),
        (load_job("deadline"), load_pod("rejected"), None),
        (load_job("deadline"), end(137, deleted_at=NOW), None),
    ],
)
def test_a_job_that_failed_for_its_node_or_others_is_not_the_cells_end(
    job: JobStatus, pod: PodStatus | None, blamed: str | None
) -> None:
    verdict = judge_job(job, pod)
    assert (verdict and (verdict.retry, verdict.node_fault)) == (blamed and (True, blamed == "its node"))


def test_a_container_that_was_not_found_has_not_run() -> None:
    """As a kubelet of Kubernetes 1.36 left one: no start, no end, and `ContainerStatusUnknown`."""
    pod = load_object("pod-oom")
    terminated = pod["status"]["containerStatuses"][0]["state"]["terminated"]
    terminated |= {"reason": "ContainerStatusUnknown", "startedAt": None, "finishedAt": None}
    seen = read_pod_status(pod)
    assert (seen.exit_code, seen.has_run) == (None, False)


STORE = "s3://bucket/prefix"


def end_with(code: int, tail: str = "", reason: str = "Error", **more: Any) -> PodStatus:
    return replace(load_pod("user"), exit_code=code, end_message=tail, end_reason=reason, **more)


NEVER_STARTED = replace(
    load_pod("rejected"), pod_reason="DeadlineExceeded", end_reason="DeadlineExceeded", pod_message=PAST_DEADLINE
)


@pytest.mark.parametrize(
    ("job", "pod", "status", "kind", "words"),
    [
        ("oom", end_with(1, "boom"), "failed", "exit", "ended with exit code 1 and left no result"),
        ("oom", end_with(2, "x\nerror: BENCH_STORE: not set\n"), "failed", "bad-configuration", "BENCH_STORE: not set"),
        ("oom", end_with(2, "only this"), "failed", "bad-configuration", "only this"),
        ("oom", end_with(2), "failed", "bad-configuration", "the order or the store is wrong"),
        ("oom", end_with(4, "error: GPU 1 is in use"), "failed", "infrastructure", "it was tried: GPU 1 is in use"),
        ("oom", end_with(126, "permission denied"), "failed", "bad-image", "permission denied"),
        ("oom", end_with(127), "failed", "bad-image", "the image could not be run: Error"),
        ("oom", end_with(128, "no such file: python", "StartError"), "failed", "bad-image", "no such file: python"),
        ("oom", end_with(255, "no python", "ContainerCannotRun"), "failed", "bad-image", "no python"),
        ("oom", end_with(128), "failed", "exit", "ended with exit code 128"),
        ("oom", end_with(134, "terminate called: std::bad_alloc"), "oom", "out-of-memory", "std::bad_alloc"),
        ("oom", end_with(137), "failed", "killed", "ended by SIGKILL, perhaps by the kernel for lack of memory"),
        ("oom", end_with(137, "", "OOMKilled"), "oom", "out-of-memory", "killed by the kernel's OOM killer"),
        ("oom", end_with(137, deleted_at=NOW), "failed", "killed", "SIGKILL: the pod was deleted, and killed"),
        ("oom", end(137, "Evicted", OVER_TMP), "failed", "killed", f"evicted by the kubelet: {OVER_TMP.strip()}"),
        ("backoff", load_pod("rejected"), "failed", "infrastructure", "(BackoffLimitExceeded): Job has reached"),
        ("backoff", load_pod("rejected"), "failed", "infrastructure", "its last pod: OutOfcpu"),
        ("backoff", None, "failed", "infrastructure", "the specified backoff limit; none of its pods is left"),
        ("complete", None, "failed", "exit", STORE),
        ("deadline", load_pod("user"), "timeout", "timeout", "its deadline: Job was active longer than"),
        ("backoff", end_with(137, PAST_DEADLINE, "DeadlineExceeded"), "timeout", "timeout", PAST_DEADLINE),
        ("oom", end(137, "DeadlineExceeded"), "timeout", "timeout", "ended by its deadline"),
        ("oom", NEVER_STARTED, "failed", "infrastructure", f"start before its deadline: {PAST_DEADLINE}"),
    ],
)
def test_a_finished_job_without_a_record_shows_what_happened(
    job: str, pod: PodStatus | None, status: str, kind: str, words: str
) -> None:
    failure = explain_job(load_job(job), [pod] if pod else [], STORE)
    assert (STATUSES.get(failure.kind, "failed"), failure.kind) == (status, kind)
    assert words in failure.message


def test_a_pod_that_never_started_before_its_deadline_has_the_words_of_its_events() -> None:
    failure = explain_job(load_job("oom"), [NEVER_STARTED], STORE, "FailedMount: not found")
    assert failure.message == "the pod did not start before its deadline: FailedMount: not found"
    assert failure.stderr_tail == ""


def test_the_code_and_the_signal_are_those_of_the_cell() -> None:
    past = end_with(137, PAST_DEADLINE, "DeadlineExceeded")
    ends = [("complete", past), ("backoff", past), ("oom", end_with(139))]
    found = [explain_job(load_job(job), [pod], STORE) for job, pod in ends]
    assert [(one.exit_code, one.signal) for one in found] == [(0, None), (None, None), (139, "SIGSEGV")]


@pytest.mark.parametrize("code", sorted(FINAL_EXIT_CODES))
def test_every_exit_that_ends_a_job_is_told_with_its_code_and_the_end_of_its_log(code: int) -> None:
    failure = explain_job(load_job("oom"), [end_with(code, "last words, API_KEY=abcdef")], STORE)
    assert (failure.exit_code, failure.stderr_tail) == (code, "last words, API_KEY=(hidden)")
    assert failure.kind != "infrastructure" or code == EXIT_RESULT_IN_LOG


DEADLINE = load_job("deadline")
assert DEADLINE.ended_at is not None


@pytest.mark.parametrize(
    ("job", "pods", "expected"),
    [
        (DEADLINE, [replace(load_pod("unschedulable"), started_at=None)], True),
        (DEADLINE, [], True),  # the controller has deleted the pod
        (DEADLINE, [replace(load_pod("running"), started_at=DEADLINE.ended_at - timedelta(seconds=599))], True),
        (DEADLINE, [replace(load_pod("running"), started_at=DEADLINE.ended_at - timedelta(seconds=600))], False),
        (DEADLINE, [replace(load_pod("oom"), end_reason="DeadlineExceeded", started_at=DEADLINE.ended_at)], False),
        (load_job("complete"), [], False),
    ],
)
def test_a_jobs_deadline_is_its_cells_once_the_cell_had_its_time(
    job: JobStatus, pods: list[PodStatus], expected: bool
) -> None:
    assert has_only_waited(job, pods, timeout_seconds=600.0) == expected


def test_the_deciding_pod_is_the_newest_whose_container_ended() -> None:
    old, new, waiting = load_pod("oom"), load_pod("crash"), load_pod("unschedulable")
    assert old.created_at < new.created_at < waiting.created_at
    assert choose_decisive_pod([waiting, new, old]) == new
    assert choose_decisive_pod([replace(new, disruption="x"), old]) == old
    assert choose_decisive_pod([waiting, replace(new, disruption="x")]) == waiting
    assert choose_decisive_pod([]) is None
