"""Decide whether a repeat is measured again: the retries that Kubernetes makes, and the one of the runner.

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

The runner creates a Job again, under the same name, in two cases. The first: the Job is gone (somebody deleted it, or
its TTL was over), the store has no record of it, now and some seconds later, none of its pods runs on without it, and
the run was not cancelled. The second:
the Job failed for a reason that is not the cell's and that its rules cannot tell (pod_ends.py): its node was at fault,
or its pod was taken down without the condition DisruptionTarget. The failed Job is deleted then. `--retry-failed` is
not a retry within a run: it plans repeats whose record is a failure anew, with a new `retry_round` and so a new name.

Retries of single requests to the API server are in request_retries.py.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial

from bench.schema import Failure, NodeFault, Result
from runner.kubernetes.cancellation import CancellationWatcher
from runner.kubernetes.dispatcher import Dispatcher
from runner.kubernetes.job_completion import JobCompletion
from runner.kubernetes.job_outcomes import JobOutcome
from runner.kubernetes.missing_pods import find_running_pod
from runner.kubernetes.node_fault_tracker import NodeFaultTracker
from runner.kubernetes.object_status import JobStatus, PodStatus
from runner.kubernetes.pod_ends import explain_interruption, explain_node_fault, explain_own_limit
from runner.kubernetes.recording import EndedFromOutside, ResultRecorder
from runner.kubernetes.submission import Submission
from runner.kubernetes.tracked_jobs import TrackedJob, TrackedJobs

MISSING_SECONDS = 3.0
"""After how long the store is searched again for a missing Job: another runner may have given it up."""
ORPHAN_SECONDS = 5.0
"""After how long it is looked again whether a pod whose Job was deleted without it has ended."""
MAX_DISRUPTIONS = 20
"""How many pods of a repeat may be ended from outside before it is given up."""
MAX_NODE_FAULTS = 6
"""How many attempts at a repeat may end by a fault of their node before it is given up, while another node is sound:
twice on each of three nodes, after which each of these is left out (node_health.py)."""
NODE_FAULT_PAUSE_SECONDS = 10.0
"""How long after the first fault the repeat is tried again; after each further one twice as long, so that a device
plugin that starts again, or a driver that is being installed, has five minutes in all."""


@dataclass(frozen=True, kw_only=True)
class JobRetries:
    """Decides whether a missing Job is created again, and when a disrupted one is given up."""

    dispatcher: Dispatcher
    recorder: ResultRecorder
    cancellation_watcher: CancellationWatcher
    submission: Submission
    completion: JobCompletion
    node_faults: NodeFaultTracker
    jobs: TrackedJobs

    def note_failed_pod(self, tracked: TrackedJob, pod: PodStatus) -> None:
        """Note a pod that was ended from outside, and give the repeat up if another pod would end the same way."""
        if words := explain_own_limit(pod):  # its container may have ended as by SIGTERM: the Job makes another pod
            failure = Failure(kind="killed", message=f"evicted by the kubelet: {words}", exit_code=pod.exit_code)
            if tracked.state == "in-flight":
                self.completion.give_up(tracked, ("failed", failure))
        elif (cause := explain_interruption(pod)) and not _is_suspended(tracked, pod):
            self._count(tracked, pod.uid, cause)

    def blame_node(self, tracked: TrackedJob, job: JobStatus) -> None:
        """Replace an unfinished Job whose pod its node cannot start by another, or give the repeat up."""
        self.jobs.move(tracked, "withdrawn")
        pods = tuple(pod for pod in tracked.pods.values() if explain_node_fault(pod))
        self.measure_again(tracked, job, EndedFromOutside(pods=pods, is_node_fault=True))

    def measure_again(self, tracked: TrackedJob, job: JobStatus, ended: EndedFromOutside) -> None:
        """Replace a Job whose pod failed for a reason that is not the cell's by another, or give the repeat up.

        What the faults of its nodes were is stored before the Job that shows them is deleted.
        """
        faults: list[NodeFault] = []
        if ended.is_node_fault:
            faults = self.node_faults.note_job(tracked, job, ended.pods)
            outcome, delay_seconds = self._judge_faults(tracked, faults)
        else:
            causes = {pod.uid: cause for pod in ended.pods if (cause := explain_interruption(pod))}
            tracked.disrupted_pod_uids |= causes.keys()
            is_last = len(tracked.disrupted_pod_uids) >= MAX_DISRUPTIONS
            outcome, delay_seconds = _explain_disruptions(list(causes.values())[-1]) if is_last else None, 0.0
        if outcome is not None:
            if job.end is None:
                write = partial(self.recorder.give_up, tracked, outcome)
            else:
                write = partial(self.recorder.record_outcome, tracked, outcome, job, ended.pods)
            self.dispatcher.record(write, partial(self.completion.finish, tracked))
        elif self.node_faults.stop is None:
            discard = partial(self._discard, tracked, job, faults)
            self.dispatcher.record(discard, partial(self._replace, tracked, job, ended, delay_seconds))

    def _judge_faults(self, tracked: TrackedJob, faults: Sequence[NodeFault]) -> tuple[JobOutcome | None, float]:
        """Return the outcome of a repeat that met too many faults, or None and how long to wait for the next try."""
        number = self.node_faults.count_faults(tracked)
        if number < MAX_NODE_FAULTS or not self.node_faults.has_sound_node(tracked):  # then the whole run stops
            return None, NODE_FAULT_PAUSE_SECONDS * 2 ** min(number - 1, MAX_NODE_FAULTS - 2)
        nodes = sorted({fault.node_name or "unknown" for fault in faults})
        message = f"its nodes were at fault {number} times, the last time {', '.join(nodes)}: {faults[-1].reason}"
        return ("failed", Failure(kind="infrastructure", message=message)), 0.0

    def _discard(self, tracked: TrackedJob, job: JobStatus, faults: Sequence[NodeFault]) -> None:
        for fault in faults:
            self.node_faults.recorder.write(fault)
        self.recorder.delete_job(job.name, job.uid)

    def _replace(
        self, tracked: TrackedJob, job: JobStatus, ended: EndedFromOutside, delay_seconds: float, _: None
    ) -> None:
        tracked.settled_uids |= {job.uid, *(pod.uid for pod in ended.pods), *(pod.uid for pod in tracked.pods.values())}
        tracked.pods = {}
        tracked.forget_waiting()
        tracked.forget_no_pod()
        if tracked.job is not None and tracked.job.uid != job.uid:  # another runner of the run was faster
            self.completion.follow(tracked, tracked.job)
            return
        tracked.job = None
        self.submission.retry(tracked, delay_seconds)

    def count_suspension(self, tracked: TrackedJob, job: JobStatus) -> None:
        """Note that the Job was suspended while it had a pod; `job`: as it was before."""
        # The pod may have been seen by the watch of Jobs alone.
        uid = tracked.running_pod_uid or f"{job.uid}/{len(tracked.disrupted_pod_uids)}"
        self._count(tracked, uid, "the suspension of its Job: a queue reclaimed its quota, or was stopped")

    def _count(self, tracked: TrackedJob, pod_uid: str, reason: str) -> None:
        if pod_uid in tracked.disrupted_pod_uids:
            return
        tracked.disrupted_pod_uids |= {pod_uid}
        if len(tracked.disrupted_pod_uids) >= MAX_DISRUPTIONS and tracked.state == "in-flight":
            self.completion.give_up(tracked, _explain_disruptions(reason))

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
            find = partial(find_running_pod, self.recorder.connection, self.recorder.namespace, tracked)
            self.dispatcher.request(find, partial(self._handle_running_pod, tracked))

    def _handle_running_pod(self, tracked: TrackedJob, pod: str) -> None:
        """Create a missing Job again, unless its pod measures on without it: the repeat would have two records."""
        is_over = not pod or tracked.job is not None
        then = partial(self._create_again, tracked) if is_over else partial(self._wait_for_pod, tracked, pod)
        self.cancellation_watcher.check(then)

    def _wait_for_pod(self, tracked: TrackedJob, pod: str) -> None:
        self.dispatcher.warn(
            f"Job {tracked.name} was deleted without its pod {pod}, which runs on: its record is waited for; to have "
            f"the repeat measured anew, delete the pod"
        )
        self.dispatcher.call_later(ORPHAN_SECONDS, partial(self._find_record, tracked, is_last=True))

    def _create_again(self, tracked: TrackedJob) -> None:
        if tracked.job is not None:  # created since, or the list of Jobs was older than the Job
            self.completion.follow(tracked, tracked.job)
            return
        if not tracked.is_released:  # else it was this runner that deleted it, and has said so
            self.dispatcher.warn(f"Job {tracked.name} was deleted before it had finished; it is created again")
        tracked.pods = {}
        tracked.forget_waiting()
        tracked.forget_no_pod()
        self.submission.retry(tracked)


def _explain_disruptions(cause: str) -> JobOutcome:
    message = f"it was taken down {MAX_DISRUPTIONS} times, the last time for {cause}"
    return "preempted", Failure(kind="preempted", message=message)


def _is_suspended(tracked: TrackedJob, pod: PodStatus) -> bool:
    """Return whether a pod was deleted since its Job was suspended: `count_suspension` counts it."""
    return pod.is_deleted and tracked.job is not None and tracked.job.is_suspended
