"""Read the state of a run from its cluster: its Jobs by state, why some wait, and how fast they finish."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from http import HTTPStatus
from typing import Literal

from runner.kubernetes.connection import ApiError, Connection, to_user_error
from runner.kubernetes.failures import is_starting, read_missing_pod_reasons, read_start_problems
from runner.kubernetes.kueue import describe_local_queue, explain_queued_jobs
from runner.kubernetes.names import select_run
from runner.kubernetes.objects import JobStatus, PodStatus, read_job_status, read_pod_status
from runner.kubernetes.session import POD_FIELDS
from runner.terminal import format_wait, join_printable

RATE_WINDOW = timedelta(minutes=10)
"""The rate is that of the Jobs that finished last."""
UNKNOWN = "no reason given yet"

JobPhase = Literal["finished", "failed", "running", "waiting", "queued"]
_LABELS: dict[JobPhase, str] = {
    "finished": "finished",
    "failed": "failed",
    "running": "running",
    "waiting": "waiting",
    "queued": "queued by Kueue",
}


@dataclass(frozen=True, kw_only=True)
class RunState:
    """How a run stands on its cluster."""

    num_by_state: Mapping[JobPhase, int]
    num_by_reason: Mapping[str, int]
    """Jobs that wait, by the message of the scheduler, the kubelet or the Job controller."""
    rate_per_s: float | None
    """Jobs that finish per second. None: none did in the last ten minutes."""
    num_by_queue_reason: Mapping[str, int] = field(default_factory=dict)
    """Suspended Jobs by what Kueue says of their Workloads."""
    queue: str = ""
    """A line about the run's queue; empty: it has none."""

    @property
    def is_going_on(self) -> bool:
        return any(self.num_by_state.get(state) for state in ("running", "waiting", "queued"))

    def describe(self, num_missing: int) -> list[str]:
        """Return the lines to print. `num_missing`: repeats without a record, in flight or not submitted."""
        states = [f"{self.num_by_state[state]} {label}" for state, label in _LABELS.items() if self.num_by_state[state]]
        lines = [f"Jobs: {', '.join(states) or 'none'}"]
        lines += [f"  {number} waiting: {reason}" for reason, number in self.num_by_reason.items()]
        lines += [f"  {number} queued: {reason}" for reason, number in self.num_by_queue_reason.items()]
        lines += [self.queue] if self.queue else []
        if self.rate_per_s and num_missing and self.is_going_on:
            left = format_wait(num_missing / self.rate_per_s)
            lines.append(f"{self.rate_per_s * 60:.3g} finish per minute, about {left} left")
        return lines


def inspect_run(
    connection: Connection, namespace: str, run_id: str, store_url: str, queue: str | None = None
) -> RunState:
    """Return the state now of the run whose results are in the store; `queue`: the LocalQueue of its Jobs.

    UserError if the API server refuses.
    """
    group, query = f"/apis/batch/v1/namespaces/{namespace}", {"labelSelector": select_run(run_id, store_url=store_url)}
    core = f"/api/v1/namespaces/{namespace}"
    try:
        jobs = connection.read_items(f"{group}/jobs", read_job_status, query)
        pods = connection.read_items(f"{core}/pods", read_pod_status, query | {"fieldSelector": POD_FIELDS})
        events = _read_events(connection, namespace, jobs, pods)
        queued = [job.uid for job in jobs if find_state(job) == "queued"]
        waits = explain_queued_jobs(connection, namespace, queued) if queued else {}
        line = describe_local_queue(connection, namespace, queue) if queue else ""
    except ApiError as error:
        raise to_user_error(error, connection.context) from error
    state = summarize_run(jobs, pods, events, now=datetime.now(UTC))
    queue_reasons = Counter(join_printable(wait.message) for wait in waits.values())  # not of those just admitted
    return replace(state, num_by_queue_reason=dict(queue_reasons.most_common()), queue=join_printable(line))


def summarize_run(
    jobs: Sequence[JobStatus], pods: Sequence[PodStatus], events: Mapping[str, str], *, now: datetime
) -> RunState:
    reasons = {pod.job_name: _find_reason(pod) for pod in sorted(pods, key=lambda pod: pod.created_at)}
    waiting = [job.name for job in jobs if find_state(job) == "waiting"]
    by_reason = Counter(join_printable(events.get(name) or reasons.get(name) or UNKNOWN) for name in waiting)
    return RunState(
        num_by_state=Counter(map(find_state, jobs)),
        num_by_reason=dict(by_reason.most_common()),
        rate_per_s=_measure_rate(jobs, now),
    )


def find_state(job: JobStatus) -> JobPhase:
    if job.end:
        return "finished" if job.end == "complete" else "failed"
    if job.is_suspended:
        return "queued"
    return "running" if job.num_ready else "waiting"


def _find_reason(pod: PodStatus) -> str:
    if pod.unschedulable:
        return pod.unschedulable
    return f"{pod.waiting_reason}: {pod.waiting_message}".rstrip(": ")


def _measure_rate(jobs: Sequence[JobStatus], now: datetime) -> float | None:
    """Return the Jobs per second that finished within the window, or since the first was created if that is later."""
    begin = max(now - RATE_WINDOW, min((job.created_at for job in jobs), default=now))
    num_ended = sum(job.ended_at is not None and job.ended_at >= begin for job in jobs)
    seconds = (now - begin).total_seconds()
    return num_ended / seconds if num_ended and seconds > 0 else None


def _read_events(
    connection: Connection, namespace: str, jobs: Sequence[JobStatus], pods: Sequence[PodStatus]
) -> dict[str, str]:
    """Return why a Job has no pod, or its pod is not started, by the Job's name; empty if events may not be read."""
    starting = [pod for pod in pods if is_starting(pod)]
    found = {}
    try:
        if any(find_state(job) == "waiting" and not job.num_active for job in jobs):
            found = read_missing_pod_reasons(connection, namespace)
        problems = read_start_problems(connection, namespace) if starting else {}
    except ApiError as error:
        if error.status == HTTPStatus.FORBIDDEN:
            return {}
        raise
    return found | {pod.job_name: problems[pod.uid] for pod in starting if pod.uid in problems}
