"""The status and the failure that the runner records for each way in which a Job and its pods can end."""

from dataclasses import replace
from datetime import timedelta

import pytest

from bench.exit_codes import EXIT_RESULT_IN_LOG, FINAL_EXIT_CODES
from cluster_objects import load_job, load_pod
from runner.kubernetes.job_outcomes import explain_job, has_only_waited
from runner.kubernetes.object_status import PodStatus
from runner.kubernetes.pod_ends import choose_decisive_pod

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
