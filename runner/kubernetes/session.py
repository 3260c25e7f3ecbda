"""The session of one runner with one cluster: it measures what a run lacks, one Job per repeat.

All state is in the cluster and the store; what a session keeps can be rebuilt from them, so it may be killed at any
time. The states of a repeat are in tracked_jobs.py.

Kubernetes makes the retries, inside one Job; the runner only watches. manifests/job.yaml.j2 sets the rules:

- `podFailurePolicy`, the first rule that fits:
  - `Ignore` for pods with the condition DisruptionTarget (preempted, evicted, drained, node lost): another pod, which
    does not count towards `backoffLimit`. Here such pods are counted: after MAX_DISRUPTIONS the repeat is given up.
  - `Ignore` for the exit codes of a container that SIGTERM ended (bench.errors.INTERRUPTED_EXIT_CODES): the cell
    did not end by itself; another pod, not counted.
  - `FailJob` for every exit code with which a cell ends by itself (FINAL_EXIT_CODES): its result would not get better.
- Kueue suspends a Job whose quota another queue of the cohort reclaims: the Job controller deletes the pod, whose
  container ends by SIGTERM, as above; another pod when Kueue starts the Job again. Such a pod has no DisruptionTarget
  (https://github.com/kubernetes-sigs/jobset/issues/1117); it is counted all the same.
- `backoffLimit`: pods that fail otherwise, such as those that a node could not start, are replaced so many times.
- `restartPolicy: Never`: a container is not restarted within its pod, so an attempt is a pod.
- `podReplacementPolicy: Failed`: a pod is replaced only when it has ended, so no two attempts run at once.
- `activeDeadlineSeconds` of the Job ends all of this; that of the pod ends one attempt.

The runner creates a Job again, under the same name, in two cases:

- the Job is gone (somebody deleted it, or its TTL was over), the store has no record of it some seconds later, none of
  its pods runs on without it, and the run was not cancelled;
- the Job failed for a reason that is not the cell's and that its rules cannot tell: its node was at fault, or its pod
  was taken down without the condition DisruptionTarget (failures.py).

`--retry-failed` is not a retry within a run: it plans repeats whose record is a failure anew, with a new `retry_round`
and so a new name.
"""

import threading
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from functools import partial
from typing import Any

from bench.schema import Failure, NodeFault, Result
from runner.kubernetes.capacity import PoolCapacity, QueuedJobs, Spending
from runner.kubernetes.cleanup import CancellationWatcher, list_marks
from runner.kubernetes.failures import PendingPods, classify, find_interruption, find_node_fault
from runner.kubernetes.informers import Informer
from runner.kubernetes.nodes import NodeFaults, Placements, SharedNodes, read_node_faults
from runner.kubernetes.objects import JobStatus, PodStatus, read_job_status, read_pod_status
from runner.kubernetes.recording import EndedFromOutside, ResultRecorder
from runner.kubernetes.submission import FinishedJobs, Submission
from runner.kubernetes.tracked_jobs import TICK_SECONDS, OngoingRun, TrackedJob

LAST_EVENTS_SECONDS = 3.0
"""How long, at the deadline, ends are waited for that the informers have not reported yet."""
RECORDING_SECONDS = 120.0
"""How long, at the deadline, requests under way and the records of what has ended are waited for."""
# How well a pod ended is known from its Job and its record.
POD_FIELDS = "status.phase!=Succeeded"
HELD_SECONDS = 10.0
"""How long a container that a policy added may go on when the measurement beside it has ended."""
KEEP_OFF = (
    "Have what adds it leave this namespace or these pods alone; Istio does with "
    '`labels: {sidecar.istio.io/inject: "false"}` in the profile'
)
MISSING_SECONDS = 3.0
"""After how long the store is searched for the record of a missing Job: another runner may have given it up, and its
pod may run on without it."""
MAX_DISRUPTIONS = 20
"""How many pods of a repeat may be ended from outside before it is given up."""
MAX_NODE_FAULTS = 6
"""How many attempts at a repeat may end by a fault of their node before it is given up, while another node is sound:
twice on each of three nodes, after which each of these is left out (nodes.py)."""
NODE_FAULT_PAUSE_SECONDS = 10.0
"""How long after the first fault the repeat is tried again; after each further one twice as long, so that a device
plugin that starts again, or a driver that is being installed, has five minutes in all."""


class DeadlinePassed(Exception):  # noqa: N818  (an answer rather than an error)
    """The run has taken as long as it may."""


class BudgetSpent(Exception):  # noqa: N818  (an answer rather than an error)
    """The cap on the run's cost leaves no room for another Job."""


class ClusterSession:
    """Measures the repeats that `list_missing` returns. Used once. All but the informers is on the main thread."""

    def __init__(self, run: OngoingRun, list_missing: Callable[[], Iterable[TrackedJob]]) -> None:
        """Read the marks of earlier cancellations, and what is placed; nothing is sent to the cluster before `measure`.

        `list_missing` is called when the Jobs that exist are known. In this order nothing is measured twice: a Job that
        was deleted before the list has its record in the store. StoreError if the store cannot be used.
        """
        self.run, self._list_missing = run, list_missing
        self._has_begun, self._next_tick = False, 0.0
        self._deadline = run.bounds.find_deadline(run.plan)
        self._held: set[str] = set()  # the uids of pods that were seen kept from ending
        run.connection.warn = run.dispatcher.warn_later
        reach: dict[str, Any] = {"connection": run.connection, "labels": run.labels, "post": run.dispatcher.post}
        self._job_informer = Informer(
            path=run.path("jobs"), read=read_job_status, on_list=self._on_jobs, on_change=self._on_job_event, **reach
        )
        self._pod_informer = Informer(
            path=run.path("pods"),
            fields=POD_FIELDS,
            read=read_pod_status,
            on_list=self._on_pods,
            on_change=self._on_pod_event,
            **reach,
        )
        self._watcher = CancellationWatcher(
            dispatcher=run.dispatcher,
            store=run.store,
            run_ids=(run.run_id, *run.bounds.cancelled_with),
            known=list_marks(run.store, run.run_id).union(*run.bounds.cancelled_with.values()),
        )
        self.spending, self._capacity = Spending(run=run), PoolCapacity(run=run)
        self._pending_pods, self._queued_jobs = PendingPods(run), QueuedJobs(run=run)
        self._recorder = ResultRecorder(run=run)
        self._node_faults = NodeFaults(run=run)
        self._node_faults.load(read_node_faults(run.store, run.run_id))
        self._placements = Placements(run=run)
        self._placements.placed = self._placements.list_placed()
        self._shared_nodes = SharedNodes(run=run, find_instance_type=self._placements.find_instance_type)
        self._finished_jobs = FinishedJobs(run=run, placements=self._placements)
        self._submission = Submission(
            run=run,
            cancellation_watcher=self._watcher,
            capacity=self._capacity,
            spending=self.spending,
            finished_jobs=self._finished_jobs,
            find_wish=lambda tracked: self._shared_nodes.find_wish(tracked, self._node_faults.find_avoided(tracked)),
        )

    def measure(self) -> None:
        """Measure everything that is missing, and return when each repeat has its terminal record.

        UserError if the cluster refuses; NodesAtFaultError if no node of a pool can measure; RunCancelled if the run
        was cancelled; DeadlinePassed if time is up: what had ended has its record then, Jobs that have not finished
        are left as they are; BudgetSpent if the cap on the cost leaves no room for what is missing, when everything
        that was submitted has its record.
        """
        with self.run.dispatcher, self.run.connection.explain_refusals():
            try:
                _start(self._job_informer)
                while not self._has_begun:
                    self._run_next()
                _start(self._pod_informer)
                while self.run.jobs.count("done") < len(self.run.jobs) or self._placements.num_pending:
                    self._submission.submit_more()
                    # Before an end is handled that leaves more room than was expected.
                    if self._submission.is_budget_spent and not self._placements.num_pending:
                        raise BudgetSpent
                    self._run_next()
            finally:
                self._job_informer.stop()
                self._pod_informer.stop()

    def _run_next(self) -> None:
        self._handle_events()
        if self._node_faults.stop is not None:
            raise self._node_faults.stop
        if self._deadline is not None and read_clock() >= self._deadline:
            self._await_records()
            raise DeadlinePassed

    def _handle_events(self) -> None:
        self.run.dispatcher.run_next()
        now = time.monotonic()
        if now >= self._next_tick and self._has_begun:
            self._next_tick = now + TICK_SECONDS
            self._check_pending()
            for tracked in self._shared_nodes.check():
                self.run.dispatcher.request(partial(self._recorder.delete_job, tracked.name), lambda _: None)
            self._capacity.refresh()
            self.spending.update()
            self._queued_jobs.check()
            self.run.observer.tick(self.run.jobs)

    def _check_pending(self) -> None:
        for tracked, verdict in self._pending_pods.check():
            if tracked.job is None:  # it was created, and never reported
                self._handle_missing_job(tracked)
            elif verdict.node_fault:
                self._blame_node(tracked, tracked.job)
            elif verdict.kind == "unschedulable" and self.run.bounds.is_requeued:
                self._end(tracked, None)
            else:
                for each in self.run.jobs if verdict.kind == "unschedulable" else ():
                    # One after the other, a few at a time, each that asks for the same would wait for as long.
                    if each.state == "to-submit" and each.cell_kind == tracked.cell_kind:
                        self._end(each, verdict.to_failure())
                self._end(tracked, verdict.to_failure())
        if self._pending_pods.is_room_needed:
            self._finished_jobs.make_room()

    def _await_records(self) -> None:
        """Create no further Job, and wait until those that have ended have records."""
        if not self._has_begun:
            return
        self._submission.stop(RECORDING_SECONDS)
        begun = time.monotonic()
        while (seconds := time.monotonic() - begun) < RECORDING_SECONDS:
            if seconds > LAST_EVENTS_SECONDS and not (self.run.jobs.count("recording") or self._placements.num_pending):
                break
            self._handle_events()

    # What the informers report.

    def _on_jobs(self, jobs: list[JobStatus]) -> None:
        # While nothing was watched, the run may have been cancelled, and its marked Jobs be gone.
        self._watcher.check()
        if not self._has_begun:
            self._begin(jobs)
        existing = {job.name for job in jobs}
        for tracked in self.run.jobs:
            if tracked.name not in existing:
                self._on_job_deleted(tracked)
        for job in jobs:
            self._on_job_event(job, is_deleted=False)

    def _begin(self, jobs: list[JobStatus]) -> None:
        self._has_begun = True
        self.run.jobs.add(self._list_missing())
        self._capacity.begin()
        self._node_faults.begin(jobs)
        self._submission.add(self._shared_nodes.begin(self.run.jobs))
        missing = {tracked.repeat.key for tracked in self.run.jobs}
        for job in sorted(jobs, key=lambda job: job.created_at):  # recorded by an earlier runner
            if job.end and job.number and (job.cell_id, job.number) not in missing:
                self._finished_jobs.add(job, None)

    def _on_job_event(self, job: JobStatus, *, is_deleted: bool) -> None:
        tracked = self.run.jobs.find(job.name)
        if tracked is None or tracked.state == "done" or job.uid in tracked.settled_uids:
            return
        self._pending_pods.note_progress(tracked, job)
        if is_deleted:
            self._on_job_deleted(tracked)
            return
        before, tracked.job = tracked.job, job
        self._shared_nodes.note_job(tracked, job)
        is_same = before is not None and before.uid == job.uid
        if before is not None and is_same and job.is_suspended and not before.is_suspended and before.num_active > 0:
            # It had a pod, which is deleted, and which may have been seen by the watch of Jobs alone.
            uid = tracked.running_pod.uid if tracked.running_pod else f"{job.uid}/{len(tracked.disrupted_pod_uids)}"
            cause = "the suspension of its Job: a queue reclaimed its quota, or was stopped"
            self._count_disruption(tracked, uid, cause)
        if tracked.state != "recording":
            self._follow(tracked, job)

    def _on_job_deleted(self, tracked: TrackedJob) -> None:
        tracked.job = None
        if tracked.state == "in-flight":
            self._handle_missing_job(tracked)

    def _on_pods(self, pods: list[PodStatus]) -> None:
        self._shared_nodes.forget_pods()
        for tracked in self.run.jobs:
            tracked.pods = {name: pod for name, pod in tracked.pods.items() if pod.phase == "Failed"}
        for pod in pods:
            self._on_pod_event(pod, is_deleted=False)

    def _on_pod_event(self, pod: PodStatus, *, is_deleted: bool) -> None:
        self._placements.note(pod)
        tracked = self.run.jobs.find(pod.job_name)
        self._submission.add_first(self._shared_nodes.note_pod(tracked, pod, is_deleted=is_deleted))
        if tracked is None or tracked.state == "done" or pod.uid in tracked.settled_uids:
            return
        self._node_faults.note_pod(tracked, pod)
        if pod.phase == "Running":
            tracked.running_pod = pod
            if pod.is_held and not pod.is_deleted and tracked.job is not None and pod.uid not in self._held:
                self._held.add(pod.uid)
                self.run.dispatcher.call_later(HELD_SECONDS, partial(self._end_held, tracked, pod))
        if pod.phase == "Running" or (is_deleted and pod.phase != "Failed"):
            tracked.pods.pop(pod.name, None)
            return
        tracked.pods[pod.name] = pod
        if pod.phase == "Failed":
            self._note_failed_pod(tracked, pod)

    def _note_failed_pod(self, tracked: TrackedJob, pod: PodStatus) -> None:
        """Count a pod that was ended from outside, and give the repeat up if another pod would end the same way."""
        verdict = classify(pod)
        if verdict is None or verdict.node_fault:
            return
        if not verdict.retry:  # its container may have ended as by SIGTERM: the Job makes another pod
            if tracked.state == "in-flight":
                failure = Failure(kind=verdict.kind, message=verdict.message, exit_code=pod.exit_code)
                self._end(tracked, failure)
        elif not (pod.is_deleted and tracked.job is not None and tracked.job.is_suspended):  # counted with its Job
            self._count_disruption(tracked, pod.uid, verdict.message)

    def _count_disruption(self, tracked: TrackedJob, pod_uid: str, cause: str) -> None:
        if pod_uid in tracked.disrupted_pod_uids:
            return
        tracked.disrupted_pod_uids |= {pod_uid}
        if len(tracked.disrupted_pod_uids) >= MAX_DISRUPTIONS and tracked.state == "in-flight":
            self._end(tracked, _explain_disruptions(cause))

    # From a Job to its terminal record.

    def _follow(self, tracked: TrackedJob, job: JobStatus) -> None:
        if job.end is None:
            self.run.jobs.move(tracked, "in-flight")
            return
        self.run.jobs.move(tracked, "recording")
        find = partial(self._recorder.record_finished, tracked, job)
        self.run.dispatcher.record(find, partial(self._finish_or_requeue, tracked, job))

    def _end(self, tracked: TrackedJob, failure: Failure | None) -> None:
        """Delete a Job and record why its repeat failed; None: no node took its pod, it is created again later."""
        self.run.jobs.move(tracked, "recording")
        end = partial(self._recorder.end, tracked, failure)
        self.run.dispatcher.record(end, partial(self._finish_or_requeue, tracked, tracked.job))

    def _end_held(self, tracked: TrackedJob, pod: PodStatus) -> None:
        """End the Job of a pod whose measurement is over, if another container still keeps it from ending.

        Kubernetes would wait for that container until the pod's deadline, and measure again in another pod.
        """
        job, running = tracked.job, tracked.running_pod
        if tracked.state != "in-flight" or job is None or running is None or running.uid != pod.uid:
            return
        names = ", ".join(pod.other_containers)
        self.run.dispatcher.warn(
            f"the measurement in pod {pod.name} has ended, and the container {names}, which is none of this tool's, "
            f"keeps the pod from ending: its Job is deleted when the record is there. {KEEP_OFF}",
            f"held pods {names}",
        )
        has_failed = bool(pod.exit_code)
        ended = replace(job, end="failed" if has_failed else "complete", ended_at=pod.ended_at)
        tracked.pods[pod.name] = replace(pod, phase="Failed" if has_failed else "Succeeded", is_held=False)
        self.run.jobs.move(tracked, "recording")

        def record() -> Result | EndedFromOutside | None:
            found = self._recorder.record_finished(tracked, ended)
            if isinstance(found, Result):
                self._recorder.delete_job(ended.name, ended.uid)
            return found

        self.run.dispatcher.record(record, partial(self._finish_or_requeue, tracked, ended))

    def _finish(self, tracked: TrackedJob, result: Result) -> None:
        self.run.jobs.move(tracked, "done")
        if tracked.job is not None and tracked.job.end:
            self._finished_jobs.add(tracked.job, result.attempt)
        tracked.job = None
        tracked.forget_pods()
        self._node_faults.note_result(tracked, result)
        self.spending.add(tracked, result)
        self._submission.add_first(self._shared_nodes.note_end(tracked))
        self.run.observer.finish(tracked, result)

    def _finish_or_requeue(
        self, tracked: TrackedJob, job: JobStatus | None, result: Result | EndedFromOutside | None
    ) -> None:
        """Finish a repeat that has its record; otherwise its Job `job` was deleted, since it only waited for a node."""
        if isinstance(result, Result):
            self._finish(tracked, result)
            return
        assert job is not None
        if result is not None:
            self._measure_again(tracked, job, result)
        else:
            self._settle(tracked, job, (), self._submission.requeue)

    def _settle(
        self,
        tracked: TrackedJob,
        job: JobStatus,
        pods: Iterable[PodStatus],
        submit_again: Callable[[TrackedJob], None],
    ) -> None:
        """Forget a Job that was deleted, with its pods: what is still reported of these ids is old."""
        tracked.settled_uids |= {job.uid, *(pod.uid for pod in pods)}
        tracked.pods = {name: pod for name, pod in tracked.pods.items() if pod.uid not in tracked.settled_uids}
        if tracked.job is not None and tracked.job.uid != job.uid:  # another runner has created it again
            self._follow(tracked, tracked.job)
            return
        tracked.settled_uids |= {pod.uid for pod in tracked.pods.values()}
        tracked.job = None
        tracked.forget_pods()
        submit_again(tracked)

    # Measuring again.

    def _blame_node(self, tracked: TrackedJob, job: JobStatus) -> None:
        """Replace an unfinished Job whose pod its node cannot start by another, or give the repeat up."""
        self.run.jobs.move(tracked, "recording")
        pods = tuple(pod for pod in tracked.pods.values() if find_node_fault(pod))
        self._measure_again(tracked, job, EndedFromOutside(pods=pods, is_node_fault=True))

    def _measure_again(self, tracked: TrackedJob, job: JobStatus, ended: EndedFromOutside) -> None:
        """Store the faults of a failed Job's nodes, and replace it by another, or give the repeat up."""
        faults: list[NodeFault] = []
        failure, delay_seconds = None, 0.0
        if ended.is_node_fault:
            faults = self._node_faults.note_job(tracked, job, ended.pods)
            failure, delay_seconds = self._judge_faults(tracked, faults)
        else:
            causes = {pod.uid: cause for pod in ended.pods if (cause := find_interruption(pod))}
            tracked.disrupted_pod_uids |= causes.keys()
            if len(tracked.disrupted_pod_uids) >= MAX_DISRUPTIONS:
                failure = _explain_disruptions(list(causes.values())[-1])
        if failure is not None:
            if job.end is None:
                self._end(tracked, failure)
            else:
                write = partial(self._recorder.record_failure, tracked, failure, job, ended.pods)
                self.run.dispatcher.record(write, partial(self._finish, tracked))
        elif self._node_faults.stop is None:

            def discard() -> None:
                for fault in faults:
                    self._node_faults.write(fault)
                self._recorder.delete_job(job.name, job.uid)

            again = partial(self._submission.retry, delay_seconds=delay_seconds)
            self.run.dispatcher.record(discard, lambda _: self._settle(tracked, job, ended.pods, again))

    def _judge_faults(self, tracked: TrackedJob, faults: Sequence[NodeFault]) -> tuple[Failure | None, float]:
        """Return the failure of a repeat that met too many faults, or None and how long to wait for the next try."""
        number = self._node_faults.count_faults(tracked)
        may_be_sound = self._node_faults.find_pool(tracked.pool).has_sound_node(read_clock())
        if number < MAX_NODE_FAULTS or not may_be_sound:  # then the whole run stops
            return None, NODE_FAULT_PAUSE_SECONDS * 2 ** min(number - 1, MAX_NODE_FAULTS - 2)
        nodes = sorted({fault.node_name or "unknown" for fault in faults})
        message = f"its nodes were at fault {number} times, the last time {', '.join(nodes)}: {faults[-1].reason}"
        return Failure(kind="infrastructure", message=message), 0.0

    def _handle_missing_job(self, tracked: TrackedJob) -> None:
        """Search the store for the record of a Job that is gone, and create the Job again if there is none.

        Who deleted it may have cancelled the run; another runner may have given it up and be writing the record.
        """
        self.run.jobs.move(tracked, "recording")
        self._watcher.check()
        find, then = partial(self._recorder.find_record_or_pod, tracked), partial(self._handle_found, tracked)
        self.run.dispatcher.call_later(MISSING_SECONDS, partial(self.run.dispatcher.record, find, then))

    def _handle_found(self, tracked: TrackedJob, found: Result | str) -> None:
        """Create a missing Job again, unless its pod `found` measures on without it: that would make two records."""
        if isinstance(found, Result):
            self._finish(tracked, found)
            return
        self._watcher.check()  # nothing is created before it is answered
        if tracked.job is not None:  # created since, or the list of Jobs was older than the Job
            self._follow(tracked, tracked.job)
        elif found:
            self.run.dispatcher.warn(
                f"Job {tracked.name} was deleted without its pod {found}, which runs on: its record is waited for; to "
                "have the repeat measured anew, delete the pod"
            )
            self._handle_missing_job(tracked)
        else:
            if not tracked.is_released:  # else it was this runner that deleted it, and has said so
                self.run.dispatcher.warn(f"Job {tracked.name} was deleted before it had finished; it is created again")
            tracked.forget_pods()
            self._submission.retry(tracked)


def _start(informer: Informer[Any]) -> None:
    threading.Thread(target=informer.run, name="informer", daemon=True).start()


def _explain_disruptions(cause: str) -> Failure:
    message = f"it was taken down {MAX_DISRUPTIONS} times, the last time for {cause}"
    return Failure(kind="preempted", message=message)


def read_clock() -> datetime:
    return datetime.now(UTC)
