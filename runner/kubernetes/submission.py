"""Creating the Jobs of a run: as many at once as are allowed, and none while a quota leaves no room."""

import threading
import time
from collections import deque
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from functools import partial
from http import HTTPStatus

from runner.kubernetes.api_errors import ApiError
from runner.kubernetes.cancellation import CancellationWatcher
from runner.kubernetes.connection import Connection
from runner.kubernetes.dispatcher import Dispatcher
from runner.kubernetes.rendering.avoided_nodes import AvoidedNodes
from runner.kubernetes.rendering.job_template import JobRenderer
from runner.kubernetes.tracked_jobs import TrackedJob, TrackedJobs

QUOTA_PAUSE_SECONDS = 10.0
"""How long nothing is submitted after a refusal by a quota."""
ALREADY_EXISTS = "AlreadyExists"


@dataclass(kw_only=True)
class Submission:
    """Creates the Jobs of a run in the order in which they were added."""

    dispatcher: Dispatcher
    cancellation_watcher: CancellationWatcher
    connection: Connection
    namespace: str
    renderer: JobRenderer
    max_in_flight: int
    jobs: TrackedJobs
    find_avoided: Callable[[TrackedJob], AvoidedNodes]
    """Returns the nodes that a new Job keeps off."""
    _waiting: deque[TrackedJob] = field(default_factory=deque, repr=False)
    _is_stopped: threading.Event = field(default_factory=threading.Event, repr=False)
    _paused_until: float | None = None
    """When (time.monotonic) to try again after a refusal by a quota. None: it left room."""

    def add(self, jobs: Iterable[TrackedJob]) -> None:
        """Queue Jobs that are `to-submit`."""
        self._waiting.extend(jobs)

    def retry(self, tracked: TrackedJob, delay_seconds: float = 0.0) -> None:
        """Queue a Job that is gone and left no record, behind all others, after a delay."""
        self.jobs.move(tracked, "retried")
        if delay_seconds:
            self.dispatcher.call_later(delay_seconds, partial(self._waiting.append, tracked))
        else:
            self._waiting.append(tracked)

    def submit_more(self) -> None:
        """Send as many requests as there is room for, unless it is being checked whether the run is cancelled."""
        if self._paused_until is not None and time.monotonic() >= self._paused_until:
            self._paused_until = None
            # While a quota leaves no room, there may be no Job whose end would show a cancellation.
            self.cancellation_watcher.check()
        if self._paused_until is not None or self.cancellation_watcher.is_checking:
            return
        num_free = self.max_in_flight - self.jobs.count("submitting", "in-flight")
        while num_free > 0 and self._waiting:
            tracked = self._waiting.popleft()
            if tracked.state == "to-submit":
                self.jobs.move(tracked, "request-sent")
                self.dispatcher.submit(
                    partial(self._create, tracked, self.find_avoided(tracked)), partial(self._handle_created, tracked)
                )
                num_free -= 1

    def stop(self, seconds: float) -> None:
        """Create no further Job: requests that wait for the API server are given up; waits `seconds` at most."""
        self._is_stopped.set()
        self.dispatcher.stop_submitting(seconds)

    def _create(self, tracked: TrackedJob, avoided: AvoidedNodes) -> bool:
        """Create the Job; return whether a quota left room. A Job that exists already was created by another runner."""
        body = self.renderer.render(tracked.repeat.planned, tracked.key, avoided)
        try:
            path = f"/apis/batch/v1/namespaces/{self.namespace}/jobs"
            self.connection.request("create", path, body=body, stop=self._is_stopped)
        except ApiError as error:
            if error.status == HTTPStatus.FORBIDDEN and "exceeded quota" in error.message:
                hint = "finished Jobs count until they are deleted: `ttl_seconds_after_finished` of the profile"
                self.dispatcher.warn_later(
                    f"no room for more Jobs at present: {error.message} ({hint})", "quota of Jobs"
                )
                return False
            if error.reason != ALREADY_EXISTS and not self._is_stopped.is_set():
                raise
        return True

    def _handle_created(self, tracked: TrackedJob, has_room: bool) -> None:
        if tracked.state != "submitting":  # the informer reported the Job first
            return
        if has_room:
            self.jobs.move(tracked, "created")
        else:
            self.jobs.move(tracked, "refused-by-quota")
            self._waiting.appendleft(tracked)
            self._paused_until = time.monotonic() + QUOTA_PAUSE_SECONDS
