"""Handle what the informers report about Jobs and pods."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass

from runner.kubernetes.cancellation import CancellationWatcher, RunCancelled
from runner.kubernetes.changed_pods import ChangedPods
from runner.kubernetes.finished_jobs import FinishedJob, FinishedJobs
from runner.kubernetes.informers import Changed, InformerFailed, Listed, Notification
from runner.kubernetes.job_completion import JobCompletion
from runner.kubernetes.job_retries import JobRetries
from runner.kubernetes.node_fault_tracker import NodeFaultTracker
from runner.kubernetes.object_status import JobStatus, PodStatus
from runner.kubernetes.pending_pods import PendingPods
from runner.kubernetes.placements import PlacementTracker
from runner.kubernetes.pool_capacity import PoolCapacity
from runner.kubernetes.rendering.job_name import REPEAT_LABEL
from runner.kubernetes.shared_nodes import SharedNodes
from runner.kubernetes.submission import Submission
from runner.kubernetes.tracked_jobs import TrackedJob, TrackedJobs


@dataclass(kw_only=True)
class JobTracker:
    """Keeps the tracked Jobs up to date, on the main thread."""

    list_missing: Callable[[], Iterable[TrackedJob]]
    """Called once, when the Jobs that exist are known: returns the repeats that have no record yet."""
    jobs: TrackedJobs
    """Empty until the first list of Jobs is there."""
    cancellation_watcher: CancellationWatcher
    capacity: PoolCapacity
    submission: Submission
    finished_jobs: FinishedJobs
    completion: JobCompletion
    retries: JobRetries
    pending_pods: PendingPods
    placements: PlacementTracker
    shared_nodes: SharedNodes
    node_faults: NodeFaultTracker
    changed_pods: ChangedPods
    has_begun: bool = False
    """The Jobs that existed at the start are known, so it is known what is missing."""

    def on_jobs(self, notification: Notification[JobStatus]) -> None:
        """Handle what the informer of Jobs reports; raise what made it fail."""
        match notification:
            case InformerFailed(error):
                raise error
            case Changed(job, is_deleted):
                self._on_job_event(job, is_deleted=is_deleted)
            case Listed(jobs):
                self._on_jobs_listed(jobs)

    def on_pods(self, notification: Notification[PodStatus]) -> None:
        """Handle what the informer of pods reports; raise what made it fail."""
        match notification:
            case InformerFailed(error):
                raise error
            case Changed(pod, is_deleted):
                self._on_pod_event(pod, is_deleted=is_deleted)
            case Listed(pods):
                self.shared_nodes.forget_pods()
                for tracked in self.jobs:
                    tracked.pods = {name: pod for name, pod in tracked.pods.items() if pod.phase == "Failed"}
                for pod in pods:
                    self._on_pod_event(pod, is_deleted=False)

    def _on_jobs_listed(self, jobs: tuple[JobStatus, ...]) -> None:
        # While nothing was watched, the run may have been cancelled, and its marked Jobs be gone.
        self.cancellation_watcher.check()
        if not self.has_begun:
            self._begin(jobs)
        existing = {job.name for job in jobs}
        for tracked in self.jobs:
            if tracked.name not in existing:
                self._on_job_deleted(tracked)
        for job in jobs:
            self._on_job_event(job, is_deleted=False)

    def _begin(self, jobs: tuple[JobStatus, ...]) -> None:
        """Find out what is missing. Finished Jobs of other repeats have been recorded by an earlier runner."""
        self.has_begun = True
        self.jobs.add(self.list_missing())
        self.capacity.begin(self.jobs)
        self.node_faults.begin(jobs)
        self.submission.add(self.shared_nodes.begin(self.jobs))
        missing = {tracked.repeat.key for tracked in self.jobs}
        for job in sorted(jobs, key=lambda job: job.created_at):
            if job.end and job.number and (job.cell_id, job.number) not in missing:
                self.finished_jobs.add(FinishedJob(status=job, attempt=None))

    def _on_job_event(self, job: JobStatus, *, is_deleted: bool) -> None:
        if job.is_cancelled:
            raise RunCancelled
        tracked = self.jobs.find(job.name)
        if tracked is None and not job.number:
            self.changed_pods.dispatcher.warn(
                f"Job {job.name} has the labels of this run and names no repeat ({REPEAT_LABEL}): it is passed by",
                f"job of others {job.uid}",
            )
        if tracked is None or tracked.state == "done":
            return
        if job.uid in tracked.settled_uids:
            return
        self.pending_pods.note_progress(tracked, job)
        if is_deleted:
            self._on_job_deleted(tracked)
            return
        before, tracked.job = tracked.job, job
        self.shared_nodes.note_job(tracked, job)
        if before is not None and _is_suspended_since(before, job):
            self.retries.count_suspension(tracked, before)
        if tracked.state != "recording":
            self.completion.follow(tracked, job)

    def _on_job_deleted(self, tracked: TrackedJob) -> None:
        tracked.job = None
        if tracked.state == "in-flight":
            self.retries.handle_missing_job(tracked)

    def _on_pod_event(self, pod: PodStatus, *, is_deleted: bool) -> None:
        self.placements.note(pod)
        tracked = self.jobs.find(pod.job_name)
        self.shared_nodes.note_pod(tracked, pod, is_deleted=is_deleted)
        if tracked is None or tracked.state == "done" or pod.uid in tracked.settled_uids:
            return
        self.node_faults.note_pod(tracked, pod)
        if not (is_deleted or pod.is_deleted):
            self.changed_pods.note(tracked, pod)
        if pod.phase == "Running":
            tracked.running_pod_uid = pod.uid
            if pod.is_held and not pod.is_deleted and tracked.job is not None:
                self.completion.note_held(tracked, tracked.job, pod)
        if pod.phase == "Running" or (is_deleted and pod.phase != "Failed"):
            tracked.pods.pop(pod.name, None)
            return
        tracked.pods[pod.name] = pod
        if pod.phase == "Failed":
            self.retries.note_failed_pod(tracked, pod)


def _is_suspended_since(before: JobStatus, job: JobStatus) -> bool:
    """Return whether the Job had a pod and was suspended, so that the pod is deleted."""
    return before.uid == job.uid and not before.is_suspended and job.is_suspended and before.num_active > 0
