"""Tasks without a Job in, their Jobs on the cluster out: as many at once as are allowed, none that a quota refuses."""

import threading
import time
from collections import deque
from collections.abc import Iterable
from dataclasses import dataclass, field
from functools import partial

from runner.kubernetes.cancellation import CancellationWatcher
from runner.kubernetes.connection import FORBIDDEN, ApiError, Connection
from runner.kubernetes.dispatcher import Dispatcher
from runner.kubernetes.rendering.job_template import JobRenderer
from runner.kubernetes.tasks import Task, Tasks

QUOTA_PAUSE_SECONDS = 10.0
"""Before a submission that a quota refused is tried again."""
ALREADY_EXISTS = "AlreadyExists"


@dataclass(kw_only=True)
class Submission:
    """Makes the Jobs of a run, in the order of its tasks."""

    dispatcher: Dispatcher
    cancellation_watcher: CancellationWatcher
    connection: Connection
    namespace: str
    renderer: JobRenderer
    max_in_flight: int
    tasks: Tasks
    _waiting: deque[Task] = field(default_factory=deque, repr=False)
    _is_stopped: threading.Event = field(default_factory=threading.Event, repr=False)
    _paused_until: float | None = None
    """When (time.monotonic) a quota that left no room is tried again; None: it left some."""

    def add(self, tasks: Iterable[Task]) -> None:
        """Have Jobs made of tasks that are `to-submit`."""
        self._waiting.extend(tasks)

    def add_again(self, task: Task, *, is_next: bool = False) -> None:
        """Have a Job made of a task whose former one is not there, after all others or before them."""
        self.tasks.move(task, "to-submit")
        if is_next:
            self._waiting.appendleft(task)
        else:
            self._waiting.append(task)

    def submit_more(self) -> None:
        """Send requests for as many Jobs as there is room for, unless it is not clear whether the run is cancelled."""
        if self._paused_until is not None and time.monotonic() >= self._paused_until:
            self._paused_until = None
            self.cancellation_watcher.look()  # while a quota leaves no room, there may be no Job whose end would tell
        if self._paused_until is not None or self.cancellation_watcher.is_looking:
            return
        num_free = self.max_in_flight - self.tasks.count("submitting", "in-flight")
        while num_free > 0 and self._waiting:
            task = self._waiting.popleft()
            if task.state == "to-submit":
                self.tasks.move(task, "submitting")
                self.dispatcher.submit(partial(self._create, task), partial(self._hear_created, task))
                num_free -= 1

    def stop(self, seconds: float) -> None:
        """Have no Job made any more: a request that waits for the API server is given up; waits `seconds` at most."""
        self._is_stopped.set()
        self.dispatcher.stop_submitting(seconds)

    def _create(self, task: Task) -> bool:
        """Make the Job; False where a quota leaves no room. One that is there already was made by another runner."""
        body = self.renderer.render(task.repeat.planned, task.key)
        try:
            path = f"/apis/batch/v1/namespaces/{self.namespace}/jobs"
            self.connection.request("create", path, body=body, stop=self._is_stopped)
        except ApiError as error:
            if error.status == FORBIDDEN and "exceeded quota" in error.message:
                hint = "finished Jobs count until they are deleted: `ttl_seconds_after_finished` of the profile"
                self.dispatcher.warn_later(
                    f"no room for more Jobs at present: {error.message} ({hint})", "quota of Jobs"
                )
                return False
            if error.reason != ALREADY_EXISTS and not self._is_stopped.is_set():
                raise
        return True

    def _hear_created(self, task: Task, is_there: bool) -> None:
        if task.state != "submitting":  # its Job was seen first
            return
        if is_there:
            self.tasks.move(task, "in-flight")
        else:
            self.add_again(task, is_next=True)
            self._paused_until = time.monotonic() + QUOTA_PAUSE_SECONDS
