"""Bring a tracked Job to its terminal record, once it has finished or is given up."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

from bench.schema import Result
from runner.kubernetes.dispatcher import Dispatcher
from runner.kubernetes.finished_jobs import FinishedJob, FinishedJobs
from runner.kubernetes.job_outcomes import JobOutcome
from runner.kubernetes.object_status import JobStatus
from runner.kubernetes.recording import EndedFromOutside, ResultRecorder
from runner.kubernetes.submission import Submission
from runner.kubernetes.tracked_jobs import TrackedJob, TrackedJobs


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
