"""Explain a Job that has finished without a record: the status of its repeat, and the reason.

Which ends of a pod are final is decided by the Job's podFailurePolicy: see job_retries.py. Only final ends come here.
"""

from collections.abc import Sequence

from bench.exit_codes import (
    EXIT_COMMAND_NOT_EXECUTABLE,
    EXIT_COMMAND_NOT_FOUND,
    EXIT_RESULT_IN_LOG,
    EXIT_SIGKILL,
    EXIT_TRY_AGAIN,
    EXIT_USER_ERROR,
)
from bench.redaction import hide_secrets
from bench.schema import Failure, Status
from runner.kubernetes.object_status import JobStatus, PodStatus
from runner.kubernetes.pod_ends import (
    DEADLINE,
    NOT_STARTED,
    OUT_OF_MEMORY,
    choose_decisive_pod,
    explain_interruption,
    explain_own_limit,
    find_last_error,
    find_last_line,
)
from runner.process_ends import BAD_ALLOC, name_signal

JobOutcome = tuple[Status, Failure]
SIGNAL_BASE = 128
"""Exit codes above it are those of programs that a signal ended: 128 plus its number."""


def explain_job(job: JobStatus, pods: Sequence[PodStatus], store_url: str, start_problem: str = "") -> JobOutcome:
    """Return status and reason of a finished Job whose repeat has no record in the store.

    `start_problem`: what the kubelet said last of a pod that never ran.
    """
    pod = choose_decisive_pod(pods)
    if job.end == "complete":
        message = f"the container ended well but left no result in {store_url}; does it write to the same store?"
        return "failed", Failure(kind="exit", message=message, exit_code=0, stderr_tail=_tail(pod))
    if pod is not None and (words := explain_own_limit(pod)):
        message = f"evicted by the kubelet: {words}"
        return "failed", Failure(kind="killed", message=message, exit_code=pod.exit_code, stderr_tail=_tail(pod))
    if pod is not None and pod.end_reason == OUT_OF_MEMORY:
        message = "killed by the kernel's OOM killer: the cell needs more memory than its container may take"
        return "oom", Failure(kind="out-of-memory", message=message, exit_code=pod.exit_code, stderr_tail=_tail(pod))
    if pod is not None and pod.pod_reason == DEADLINE and not pod.has_run:
        message = f"the pod did not start before its deadline: {start_problem or pod.pod_message}"
        return "failed", Failure(kind="infrastructure", message=message)
    if DEADLINE in (job.reason, pod.end_reason if pod else ""):
        message = pod.end_message if pod and pod.end_reason == DEADLINE else job.message
        return "timeout", Failure(kind="timeout", message=f"ended by its deadline: {message}", stderr_tail=_tail(pod))
    if pod is None or pod.exit_code is None:
        return "failed", Failure(kind="infrastructure", message=_describe_job(job, pod), stderr_tail=_tail(pod))
    return _explain_exit(pod, pod.exit_code)


def has_only_waited(job: JobStatus, pods: Sequence[PodStatus], timeout_seconds: float) -> bool:
    """Return whether a Job was ended by its deadline before its cell had its `timeout_seconds` to itself.

    The Job's `activeDeadlineSeconds` counts from its start, with the time that its pods wait for a node or were
    preempted; the pod's counts from when its node took it. Only the latter is a deadline of the cell.
    https://kubernetes.io/docs/concepts/workloads/controllers/job/#job-termination-and-cleanup
    """
    if job.reason != DEADLINE:
        return False
    pod = choose_decisive_pod(pods)
    if pod is None or pod.started_at is None or job.ended_at is None:
        return True
    return pod.end_reason != DEADLINE and (job.ended_at - pod.started_at).total_seconds() < timeout_seconds


def _explain_exit(pod: PodStatus, code: int) -> JobOutcome:
    tail = _tail(pod)
    if BAD_ALLOC in tail:
        message = f"C++ got no memory ({BAD_ALLOC}), and the framework ended the process"
        return "oom", Failure(kind="out-of-memory", message=message, exit_code=code, stderr_tail=tail)
    if code == EXIT_USER_ERROR:
        message = find_last_error(tail) or "the order or the store is wrong; the log says nothing more"
        return "failed", Failure(kind="bad-configuration", message=message, exit_code=code, stderr_tail=tail)
    if code == EXIT_TRY_AGAIN:
        message = f"not measured, however often it was tried: {find_last_error(tail) or 'the log says nothing'}"
        return "failed", Failure(kind="infrastructure", message=message, exit_code=code, stderr_tail=tail)
    if code == EXIT_RESULT_IN_LOG:
        message = "the record could not be stored, and its pod's log cannot be read or no longer has it"
        return "failed", Failure(kind="infrastructure", message=message, exit_code=code, stderr_tail=tail)
    if code in (EXIT_COMMAND_NOT_EXECUTABLE, EXIT_COMMAND_NOT_FOUND) or pod.end_reason in NOT_STARTED:
        message = f"the image could not be run: {find_last_line(tail) or pod.end_reason}"
        return "failed", Failure(kind="bad-image", message=message, exit_code=code, stderr_tail=tail)
    if code > SIGNAL_BASE:
        name = name_signal(code - SIGNAL_BASE)
        hint = ", perhaps by the kernel for lack of memory" if code == EXIT_SIGKILL else ""
        cause = explain_interruption(pod)
        message = f"ended by {name}{f': {cause}' if cause else hint}"
        return "failed", Failure(kind="killed", message=message, exit_code=code, signal=name, stderr_tail=tail)
    message = f"ended with exit code {code} and left no result"
    return "failed", Failure(kind="exit", message=message, exit_code=code, stderr_tail=tail)


def _describe_job(job: JobStatus, pod: PodStatus | None) -> str:
    message = f"the Job failed ({job.reason or 'no reason given'}): {job.message or 'no message'}"
    if pod is None:
        return f"{message}; none of its pods is left"
    last = pod.disruption or f"{pod.end_reason} {pod.end_message}".strip() or pod.phase
    return f"{message}; its last pod: {find_last_line(last)}"


def _tail(pod: PodStatus | None) -> str:
    return hide_secrets(pod.end_message) if pod else ""
