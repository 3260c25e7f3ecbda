"""Warns why pods of Jobs in flight do not run, and gives up those that wait for too long."""

import time
from collections import defaultdict
from collections.abc import Callable
from dataclasses import dataclass, field

from runner.kubernetes.dispatcher import Dispatcher
from runner.kubernetes.job_outcomes import JobOutcome
from runner.kubernetes.missing_pods import MissingPods
from runner.kubernetes.object_status import JobStatus
from runner.kubernetes.pod_failures import PodFailure, explain_start_problem, find_pending_pod, find_pod_failure
from runner.kubernetes.start_problems import StartProblems
from runner.kubernetes.tracked_jobs import TrackedJob, TrackedJobs

UNSEEN_SECONDS = 60.0
"""A Job that was created and that the informer has not reported for so long counts as missing."""
WARN_SECONDS = 10.0
"""A pod that waits for so long, while no cell of its pool runs, is worth a warning."""


@dataclass(kw_only=True)
class PendingPods:
    """Watches the Jobs in flight whose pod does not run."""

    dispatcher: Dispatcher
    jobs: TrackedJobs
    unschedulable_seconds: float
    start_problems: StartProblems
    missing_pods: MissingPods
    start_seconds: float
    """How long a node may take to start a pod."""
    give_up: Callable[[TrackedJob, JobOutcome], None]
    """Called for a Job whose pod cannot start."""
    withdraw: Callable[[TrackedJob, JobStatus], None] | None
    """Called in place of `give_up` for a Job whose pod no node takes. None: it is given up."""
    blame_node: Callable[[TrackedJob, JobStatus], None]
    """Called for a Job whose pod cannot start for a fault of its node."""
    handle_missing_job: Callable[[TrackedJob], None]
    """Called for a Job that was created and never reported."""
    _last_progress: defaultdict[str, float] = field(default_factory=lambda: defaultdict(time.monotonic), repr=False)
    """When a cell last ran or ended, by the kind of nodes that it needs."""

    def note_progress(self, tracked: TrackedJob, job: JobStatus) -> None:
        """Remember that cells which need the same nodes get on, if the Job runs or has ended."""
        if job.num_ready or job.end:
            self._last_progress[tracked.node_kind] = time.monotonic()

    def check(self) -> None:
        """Check every Job in flight; to be called about once a second."""
        now = time.monotonic()
        in_flight = [tracked for tracked in self.jobs.list_unfinished() if tracked.state == "in-flight"]
        self.start_problems.check(pod for tracked in in_flight for pod in tracked.pods.values())
        for tracked in in_flight:
            if tracked.job is not None and tracked.job.num_ready:
                self._last_progress[tracked.node_kind] = now
        for tracked in in_flight:
            if tracked.job is not None:
                self._check_job(tracked, tracked.job, now)
            elif now - _note_no_pod(tracked, now) >= UNSEEN_SECONDS:
                tracked.forget_no_pod()
                self.handle_missing_job(tracked)
        self.missing_pods.check([tracked for tracked in in_flight if tracked.job and _lacks_pod(tracked.job)])

    def _check_job(self, tracked: TrackedJob, job: JobStatus, now: float) -> None:
        if _lacks_pod(job):
            _note_no_pod(tracked, now)
        else:
            tracked.forget_no_pod()
        is_waiting = not (job.num_ready or job.is_suspended)
        failure = self._find_failure(tracked) if is_waiting else None
        if failure is None:
            tracked.forget_waiting()
        else:
            self._warn_or_give_up(tracked, job, failure, now)

    def _find_failure(self, tracked: TrackedJob) -> PodFailure | None:
        failure = find_pod_failure(tracked, unschedulable_seconds=self.unschedulable_seconds)
        pod = find_pending_pod(tracked)
        if failure is not None or pod is None:
            return failure
        found = self.start_problems.find(pod)
        return None if found is None else explain_start_problem(*found, self.start_seconds)

    def _warn_or_give_up(self, tracked: TrackedJob, job: JobStatus, failure: PodFailure, now: float) -> None:
        if failure.kind != tracked.waiting_for or tracked.waiting_since is None:
            tracked.waiting_for, tracked.waiting_since = failure.kind, failure.since or now
        # While others run that need the same nodes, a pod that no node takes merely waits for its turn.
        is_in_turn = failure.kind == "unschedulable"
        since = max(tracked.waiting_since, self._last_progress[tracked.node_kind] if is_in_turn else 0.0)
        if now - since >= min(WARN_SECONDS, failure.patience_seconds):
            slug = tracked.repeat.planned.cell.slug
            self.dispatcher.warn(f"{failure.to_failure().message} (waiting: {slug}, for example)", failure.dedup_key)
        if now - since < failure.patience_seconds:
            return
        if failure.is_node_fault:
            self.blame_node(tracked, job)
        elif failure.kind != "unschedulable":
            self.give_up(tracked, ("failed", failure.to_failure()))
        elif self.withdraw is not None:
            self.withdraw(tracked, job)
        else:
            self._give_up_alike(tracked, ("failed", failure.to_failure()))

    def _give_up_alike(self, tracked: TrackedJob, outcome: JobOutcome) -> None:
        """Give up a Job that no node takes, and those not submitted yet that ask for the same of the same nodes.

        One after the other, a few at a time, each would wait for as long.
        """
        cell = tracked.repeat.planned.cell
        alike = [
            other
            for other in self.jobs
            if other.state == "to-submit"
            and other.node_kind == tracked.node_kind
            and (other.repeat.planned.cell.num_gpus, other.repeat.planned.cell.tenants) == (cell.num_gpus, cell.tenants)
        ]
        for other in (tracked, *alike):
            self.give_up(other, outcome)


def _lacks_pod(job: JobStatus) -> bool:
    """Return whether a Job should have a pod and has none."""
    return not (job.num_active or job.num_ready or job.is_suspended)


def _note_no_pod(tracked: TrackedJob, now: float) -> float:
    """Return since when the Job has no pod."""
    tracked.no_pod_since = now if tracked.no_pod_since is None else tracked.no_pod_since
    return tracked.no_pod_since
