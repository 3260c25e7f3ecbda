"""Why a repeat is measured again: the retries that Kubernetes makes, and the one that the runner makes.

Kubernetes makes them, inside one Job; the runner only watches. manifests/job.yaml.j2 sets the rules:

- `podFailurePolicy`, the first rule that fits:
  - `Ignore` for pods with the condition DisruptionTarget (preempted, evicted, drained, node lost): another pod, which
    does not count towards `backoffLimit`. Here such pods are counted: after MAX_DISRUPTIONS the repeat is given up.
  - `Ignore` for the exit codes of a container that SIGTERM ended (bench.exit_codes.INTERRUPTED_EXIT_CODES): the cell
    did not end by itself; another pod, not counted.
  - `FailJob` for every exit code with which a cell ends by itself (FINAL_EXIT_CODES): its result would not get better.
- Kueue suspends a Job whose quota another queue of the cohort reclaims: the Job controller deletes the pod, whose
  container ends by SIGTERM, as above; another pod when Kueue starts the Job again. Such a pod has no DisruptionTarget
  (https://github.com/kubernetes-sigs/jobset/issues/1117); it is counted all the same.
- `backoffLimit`: pods that fail otherwise, such as those that a node could not start, are replaced so many times.
- `restartPolicy: Never`: a container is not restarted within its pod, so an attempt is a pod.
- `podReplacementPolicy: Failed`: a pod is replaced only when it has ended, so no two attempts run at once.
- `activeDeadlineSeconds` of the Job ends all of this; that of the pod ends one attempt.

What a Job that failed for good means for the repeat is in job_outcomes.py.

The runner creates a Job again, under the same name, in one case: the Job is gone (somebody deleted it, or its TTL was
over), the store has no record of it, now and some seconds later, and the run was not cancelled. `--retry-failed` is not
a retry within a run: it plans repeats whose record is a failure anew, with a new `retry_round` and so a new name.

Retries of single requests to the API server are in request_retries.py.
"""

from dataclasses import dataclass
from functools import partial

from bench.schema import Failure, Result
from runner.kubernetes.cancellation import CancellationWatcher
from runner.kubernetes.dispatcher import Dispatcher
from runner.kubernetes.job_completion import JobCompletion
from runner.kubernetes.object_status import JobStatus, PodStatus
from runner.kubernetes.recording import ResultRecorder
from runner.kubernetes.submission import Submission
from runner.kubernetes.tracked_jobs import TrackedJob, TrackedJobs

MISSING_SECONDS = 3.0
"""After how long the store is searched again for a missing Job: another runner may have given it up."""
MAX_DISRUPTIONS = 20
"""How many pods of a repeat may be disrupted before it is given up."""


@dataclass(frozen=True, kw_only=True)
class JobRetries:
    """Decides whether a missing Job is created again, and when a disrupted one is given up."""

    dispatcher: Dispatcher
    recorder: ResultRecorder
    cancellation_watcher: CancellationWatcher
    submission: Submission
    completion: JobCompletion
    jobs: TrackedJobs

    def count_disruption(self, tracked: TrackedJob, pod: PodStatus) -> None:
        """Note a pod that its node took down, and give the repeat up if that has happened too often."""
        self._count(tracked, pod.uid, pod.disruption)

    def count_suspension(self, tracked: TrackedJob, job: JobStatus) -> None:
        """Note that the Job was suspended while it had a pod; `job`: as it was before."""
        # The pod may have been seen by the watch of Jobs alone.
        uid = tracked.running_pod_uid or f"{job.uid}/{len(tracked.disrupted_pod_uids)}"
        self._count(tracked, uid, "the suspension of its Job: a queue reclaimed its quota, or was stopped")

    def _count(self, tracked: TrackedJob, pod_uid: str, reason: str) -> None:
        if pod_uid in tracked.disrupted_pod_uids:
            return
        tracked.disrupted_pod_uids.add(pod_uid)
        if len(tracked.disrupted_pod_uids) >= MAX_DISRUPTIONS and tracked.state == "in-flight":
            message = f"it was taken down {MAX_DISRUPTIONS} times, the last time for {reason}"
            self.completion.give_up(tracked, ("preempted", Failure(kind="preempted", message=message)))

    def handle_missing_job(self, tracked: TrackedJob) -> None:
        """Search the store for the record of a Job that is gone, and create the Job again if there is none."""
        self.jobs.move(tracked, "job-missing")
        self._find_record(tracked, is_last=False)

    def _find_record(self, tracked: TrackedJob, *, is_last: bool) -> None:
        find = partial(self.recorder.find_record, tracked)
        self.dispatcher.record(find, partial(self._handle_record, tracked, is_last=is_last))

    def _handle_record(self, tracked: TrackedJob, result: Result | None, *, is_last: bool) -> None:
        if result is not None:
            self.completion.finish(tracked, result)
        elif not is_last:
            self.dispatcher.call_later(MISSING_SECONDS, partial(self._find_record, tracked, is_last=True))
        else:
            self.cancellation_watcher.check(partial(self._create_again, tracked))

    def _create_again(self, tracked: TrackedJob) -> None:
        if tracked.job is not None:  # created since, or the list of Jobs was older than the Job
            self.completion.follow(tracked, tracked.job)
            return
        self.dispatcher.warn(f"Job {tracked.name} was deleted before it had finished; it is created again")
        tracked.pods = {}
        tracked.forget_waiting()
        tracked.forget_no_pod()
        self.submission.retry(tracked)
