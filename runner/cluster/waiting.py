"""Tasks in flight that do not run in; why not told to the user, and those that wait in vain given up, out."""

import time
from collections import defaultdict
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial

from runner.cluster.desk import Desk
from runner.cluster.endings import Ending
from runner.cluster.hindrances import find_hindrance
from runner.cluster.observed import SeenJob
from runner.cluster.settlement import Registrar
from runner.cluster.tasks import Task, Tasks

NO_POD_SECONDS = 20.0
"""After so long without a pod, the Job controller is asked why; then after twice as long, and so on."""
UNSEEN_SECONDS = 60.0
"""A Job that was made and that the feed has not told of for so long is looked after."""
TELL_SECONDS = 10.0
"""A pod that waits for so long, while no cell of its pool runs, is told about."""


@dataclass(kw_only=True)
class WaitingRoom:
    """Looks after the tasks whose Job is made and whose pod does not run."""

    desk: Desk
    registrar: Registrar
    unschedulable_seconds: float
    give_up: Callable[[Task, Ending], None]
    """What is to be done with a task that cannot start."""
    settle_gone: Callable[[Task], None]
    """What is to be done with a task whose Job was made and never seen."""
    _last_progress: defaultdict[str, float] = field(default_factory=lambda: defaultdict(time.monotonic), repr=False)
    """By pool: when a cell of it last ran or ended."""

    def note_progress(self, job: SeenJob) -> None:
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
                self.settle_gone(task)

    def _look_after(self, task: Task, job: SeenJob, now: float) -> None:
        if job.num_active or job.num_ready or job.is_suspended:
            task.forget_no_pod()
        else:
            self._ask_why_no_pod(task, job, now)
        is_waiting = not (job.num_ready or job.is_suspended)
        hindrance = find_hindrance(task, unschedulable_seconds=self.unschedulable_seconds) if is_waiting else None
        if hindrance is None:
            task.forget_waiting()
            return
        if hindrance.kind != task.waiting_for or task.waiting_since is None:
            task.waiting_for, task.waiting_since = hindrance.kind, now
        # While others of its pool run, a pod that no node takes merely waits for its turn.
        since = max(task.waiting_since, self._last_progress[job.pool] if hindrance.kind == "unschedulable" else 0.0)
        if now - since >= min(TELL_SECONDS, hindrance.patience_seconds):
            slug = task.repeat.planned.cell.slug
            self.desk.warn(f"{hindrance.to_failure().message} (waiting: {slug} for one)", hindrance.gist)
        if now - since >= hindrance.patience_seconds:
            self.give_up(task, ("failed", hindrance.to_failure()))

    def _ask_why_no_pod(self, task: Task, job: SeenJob, now: float) -> None:
        if now - _note_no_pod(task, now) < NO_POD_SECONDS * 2**task.num_asked:
            return
        task.num_asked += 1

        def hear_no_pod(words: str) -> None:
            task.no_pod_words = words

        def hear_leaving(words: str) -> None:
            task.leaving_words = words

        if job.num_terminating:
            self.desk.ask(partial(self.registrar.read_leaving_words, task), hear_leaving)
        else:
            task.leaving_words = ""
            self.desk.ask(partial(self.registrar.read_no_pod_words, task), hear_no_pod)


def _note_no_pod(task: Task, now: float) -> float:
    """Return since when the task has no pod."""
    task.no_pod_since = now if task.no_pod_since is None else task.no_pod_since
    return task.no_pod_since
