"""Bring a tracked Job to its terminal record, once it has finished or is given up."""

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import partial

from bench.schema import Result
from runner.kubernetes.dispatcher import Dispatcher
from runner.kubernetes.finished_jobs import FinishedJob, FinishedJobs
from runner.kubernetes.job_outcomes import JobOutcome
from runner.kubernetes.object_status import JobStatus, PodStatus
from runner.kubernetes.recording import EndedFromOutside, ResultRecorder
from runner.kubernetes.submission import Submission
from runner.kubernetes.tracked_jobs import TrackedJob, TrackedJobs

HELD_SECONDS = 10.0
"""How long a container that a policy added may go on when the measurement beside it has ended."""
KEEP_OFF = (
    "Have what adds it leave this namespace or these pods alone; Istio does with "
    '`labels: {sidecar.istio.io/inject: "false"}` in the profile'
)


@dataclass(frozen=True, kw_only=True)
class JobCompletion:
    """Finds or writes records on request threads, and marks Jobs and repeats as done."""

    dispatcher: Dispatcher
    recorder: ResultRecorder
    jobs: TrackedJobs
    submission: Submission
    finished_jobs: FinishedJobs
    report: Callable[[TrackedJob, Result], None]
    """Called for each repeat that has its record."""
    measure_again: Callable[[TrackedJob, JobStatus, EndedFromOutside], None]
    """Called for a Job that failed for a reason that is not the cell's."""
    _held: set[str] = field(default_factory=set, repr=False)
    """The uids of pods that were seen kept from ending."""

    def follow(self, tracked: TrackedJob, job: JobStatus) -> None:
        """Note that the Job exists; find or write its record if it has finished."""
        if job.end is None:
            self.jobs.move(tracked, "job-seen")
            return
        self.jobs.move(tracked, "job-finished")
        find = partial(self.recorder.record_finished, tracked, job)
        self.dispatcher.record(find, partial(self._finish_or_requeue, tracked, job))

    def give_up(self, tracked: TrackedJob, outcome: JobOutcome) -> None:
        """Delete the Job and write its record with this outcome, on request threads."""
        self.jobs.move(tracked, "given-up")
        self.dispatcher.record(partial(self.recorder.give_up, tracked, outcome), partial(self.finish, tracked))

    def note_held(self, tracked: TrackedJob, job: JobStatus, pod: PodStatus) -> None:
        """Have the Job of a pod ended whose measurement is over, if another container still keeps it from ending then.

        Kubernetes would wait for that container until the pod's deadline, and measure again in another pod.
        """
        if pod.uid not in self._held:
            self._held.add(pod.uid)
            self.dispatcher.call_later(HELD_SECONDS, partial(self._end_held, tracked, job, pod))

    def _end_held(self, tracked: TrackedJob, job: JobStatus, pod: PodStatus) -> None:
        is_same = tracked.job is not None and tracked.job.uid == job.uid and tracked.running_pod_uid == pod.uid
        if tracked.state != "in-flight" or not is_same:
            return
        names = ", ".join(pod.other_containers)
        self.dispatcher.warn(
            f"the measurement in pod {pod.name} has ended, and the container {names}, which is none of this tool's, "
            f"keeps the pod from ending: its Job is deleted when the record is there. {KEEP_OFF}",
            f"held pods {names}",
        )
        has_failed = bool(pod.exit_code)
        ended = replace(job, end="failed" if has_failed else "complete", ended_at=pod.ended_at)
        tracked.pods[pod.name] = replace(pod, phase="Failed" if has_failed else "Succeeded", is_held=False)
        self.jobs.move(tracked, "given-up")
        find = partial(self._record_held, tracked, ended)
        self.dispatcher.record(find, partial(self._finish_or_requeue, tracked, ended))

    def _record_held(self, tracked: TrackedJob, job: JobStatus) -> Result | EndedFromOutside | None:
        found = self.recorder.record_finished(tracked, job)
        if isinstance(found, Result):
            self.recorder.delete_job(job.name, job.uid)
        return found

    def withdraw(self, tracked: TrackedJob, job: JobStatus) -> None:
        """Delete a Job whose pod no node takes; it is created again after a pause."""
        self.jobs.move(tracked, "withdrawn")
        self.dispatcher.record(partial(self.recorder.withdraw, tracked), partial(self._finish_or_requeue, tracked, job))

    def finish(self, tracked: TrackedJob, result: Result) -> None:
        """Note and report that the repeat has its terminal record."""
        self.jobs.move(tracked, "recorded")
        if tracked.job is not None and tracked.job.end:
            self.finished_jobs.add(FinishedJob(status=tracked.job, attempt=result.attempt))
        tracked.job, tracked.pods = None, {}
        self.report(tracked, result)

    def _finish_or_requeue(self, tracked: TrackedJob, job: JobStatus, result: Result | EndedFromOutside | None) -> None:
        """Finish a repeat that has its record; otherwise its Job `job` was deleted, since it only waited for a node."""
        if isinstance(result, EndedFromOutside):
            self.measure_again(tracked, job, result)
            return
        if result is not None:
            self.finish(tracked, result)
            return
        tracked.settled_uids |= {job.uid}
        if tracked.job is not None and tracked.job.uid != job.uid:  # another runner has created it again
            self.follow(tracked, tracked.job)
            return
        tracked.job, tracked.pods = None, {}
        tracked.forget_waiting()
        tracked.forget_no_pod()
        self.submission.requeue(tracked)
