"""Tasks in flight that do not run in; why not told to the user, and those that wait in vain given up, out."""

import time
from collections import defaultdict
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial

from runner.kubernetes.dispatcher import Dispatcher
from runner.kubernetes.job_outcomes import Ending
from runner.kubernetes.object_status import JobStatus
from runner.kubernetes.pod_failures import find_pod_failure
from runner.kubernetes.recording import ResultRecorder
from runner.kubernetes.tasks import Task, Tasks

NO_POD_SECONDS = 20.0
"""After so long without a pod, the Job controller is asked why; then after twice as long, and so on."""
UNSEEN_SECONDS = 60.0
"""A Job that was made and that the feed has not told of for so long is looked after."""
TELL_SECONDS = 10.0
"""A pod that waits for so long, while no cell of its pool runs, is told about."""


@dataclass(kw_only=True)
class PendingPods:
    """Looks after the tasks whose Job is made and whose pod does not run."""

    dispatcher: Dispatcher
    recorder: ResultRecorder
    unschedulable_seconds: float
    give_up: Callable[[Task, Ending], None]
    """What is to be done with a task that cannot start."""
    handle_missing_job: Callable[[Task], None]
    """What is to be done with a task whose Job was made and never seen."""
    _last_progress: defaultdict[str, float] = field(default_factory=lambda: defaultdict(time.monotonic), repr=False)
    """By pool: when a cell of it last ran or ended."""

    def note_progress(self, job: JobStatus) -> None:
        """Remember that a pool gets on, if this Job tells so."""
        if job.num_ready or job.end:
            self._last_progress[job.pool] = time.monotonic()

    def look_after(self, tasks: Tasks) -> None:
        """Look at every task in flight; to be called about once a second."""
        now = time.monotonic()
        in_flight = [task for task in tasks if task.state == "in-flight"]
        for task in in_flight:
            if task.job is not None and task.job.num_ready:
                self._last_progress[task.job.pool] = now
        for task in in_flight:
            if task.job is not None:
                self._look_after(task, task.job, now)
            elif now - _note_no_pod(task, now) >= UNSEEN_SECONDS:
                task.forget_no_pod()
                self.handle_missing_job(task)

    def _look_after(self, task: Task, job: JobStatus, now: float) -> None:
        if job.num_active or job.num_ready or job.is_suspended:
            task.forget_no_pod()
        else:
            self._ask_why_no_pod(task, job, now)
        is_waiting = not (job.num_ready or job.is_suspended)
        pod_failure = find_pod_failure(task, unschedulable_seconds=self.unschedulable_seconds) if is_waiting else None
        if pod_failure is None:
            task.forget_waiting()
            return
        if pod_failure.kind != task.waiting_for or task.waiting_since is None:
            task.waiting_for, task.waiting_since = pod_failure.kind, now
        # While others of its pool run, a pod that no node takes merely waits for its turn.
        since = max(task.waiting_since, self._last_progress[job.pool] if pod_failure.kind == "unschedulable" else 0.0)
        if now - since >= min(TELL_SECONDS, pod_failure.patience_seconds):
            slug = task.repeat.planned.cell.slug
            self.dispatcher.warn(f"{pod_failure.to_failure().message} (waiting: {slug} for one)", pod_failure.dedup_key)
        if now - since >= pod_failure.patience_seconds:
            self.give_up(task, ("failed", pod_failure.to_failure()))

    def _ask_why_no_pod(self, task: Task, job: JobStatus, now: float) -> None:
        if now - _note_no_pod(task, now) < NO_POD_SECONDS * 2**task.num_asked:
            return
        task.num_asked += 1

        def hear_no_pod(words: str) -> None:
            task.no_pod_words = words

        def hear_leaving(words: str) -> None:
            task.leaving_words = words

        if job.num_terminating:
            self.dispatcher.ask(partial(self.recorder.read_leaving_words, task), hear_leaving)
        else:
            task.leaving_words = ""
            self.dispatcher.ask(partial(self.recorder.read_no_pod_words, task), hear_no_pod)


def _note_no_pod(task: Task, now: float) -> float:
    """Return since when the task has no pod."""
    task.no_pod_since = now if task.no_pod_since is None else task.no_pod_since
    return task.no_pod_since
