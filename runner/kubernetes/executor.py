"""The cluster executor: missing repeats of a Run in, a Job each on the cluster, one terminal record each in the store.

One thread decides, told by a queue: two feeds say what happens to Jobs and pods, a pool of threads sends requests. All
state is in the cluster and the store; whatever is kept here can be had from them again.
"""

import threading
import time
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import partial
from typing import Any, Protocol, TypeVar

from bench.errors import TransientError, UserError
from bench.schema import Failure, Result
from runner.kubernetes.cancellation import CancellationWatcher, RunCancelled, list_marks
from runner.kubernetes.connection import ApiError, BusyError, Connection
from runner.kubernetes.dispatcher import TICK_SECONDS, Dispatcher
from runner.kubernetes.informers import Changed, Informer, InformerFailed, Listed
from runner.kubernetes.job_outcomes import Ending
from runner.kubernetes.object_status import JobStatus, PodStatus, read_job_status, read_pod_status
from runner.kubernetes.pending_pods import PendingPods
from runner.kubernetes.recording import ResultRecorder
from runner.kubernetes.rendering.job_name import select_run
from runner.kubernetes.rendering.job_template import JobRenderer
from runner.kubernetes.submission import Submission
from runner.kubernetes.tasks import Task, Tasks

GONE_SECONDS = 3.0
"""After so long the store is looked at again for a Job that was deleted: another runner may have given it up."""
LAST_NEWS_SECONDS = 3.0
"""At the deadline: for what has ended and is not yet known to have."""
RECORDING_SECONDS = 120.0
"""At the deadline: for requests on their way, and for the records of what has ended."""
MAX_DISRUPTIONS = 20
"""A repeat that nodes took down so often is given up."""
# Only these pods are followed: that a pod runs and how well it ended is told by its Job and its record.
POD_FIELDS = "status.phase!=Running,status.phase!=Succeeded"

T = TypeVar("T")


class ClusterObserver(Protocol):
    """Who is told how the run goes on."""

    def tick(self, tasks: Tasks) -> None:
        """About a second has passed."""

    def finish_task(self, task: Task, result: Result) -> None:
        """A repeat has its terminal record."""

    def warn(self, message: str) -> None:
        """Something keeps cells from running that the user can mend."""


class DeadlinePassed(Exception):  # noqa: N818  (an answer rather than an error)
    """The run has taken as long as it may."""


@dataclass(kw_only=True)
class ClusterExecutor:
    """One run on one cluster."""

    connection: Connection
    namespace: str
    run_id: str
    renderer: JobRenderer
    recorder: ResultRecorder
    observer: ClusterObserver
    max_in_flight: int
    unschedulable_seconds: float
    deadline: datetime | None = None
    """When it stops, whatever is missing then."""
    tasks: Tasks = field(init=False, repr=False)
    _later: deque[tuple[float, Callable[[], None]]] = field(default_factory=deque, repr=False)
    """What is to be done and when, in this order."""
    _next_tick: float = 0.0

    def measure(self, list_tasks: Callable[[], Tasks]) -> None:
        """Have every task measured that `list_tasks` returns. It is called once the Jobs that are there are known.

        In this order nothing is measured twice: a Job that was gone before they were listed has its record in the
        store. UserError where the cluster refuses; RunCancelled where the run was cancelled, DeadlinePassed where
        time is up: what had ended has its record, Jobs that have not finished are left as they are.
        """
        jobs, pods = self._make_feed("jobs", read_job_status), self._make_feed("pods", read_pod_status, POD_FIELDS)
        self._list_tasks, self.tasks, self._is_begun = list_tasks, Tasks(()), False
        self._open_dispatcher()
        try:
            self._start(jobs, self._hear_jobs)
            while not self._is_begun:
                self._hear_next()
                self._check_deadline()
            self._start(pods, self._hear_pods)
            while self.tasks.count("done") < len(self.tasks):
                self._submission.submit_more()
                self._hear_next()
                self._check_deadline()
        except ApiError as error:
            raise explain_refusal(error, self.connection.context) from error
        finally:
            jobs.stop()
            pods.stop()
            self._dispatcher.stop()

    def _open_dispatcher(self) -> None:
        store = self.recorder.store
        known = list_marks(store, self.run_id)
        dispatcher = self._dispatcher = Dispatcher(
            tell_user=self.observer.warn, patience_seconds=self.connection.patience_seconds
        )
        self.connection.warn = dispatcher.warn_later
        self._cancellation_watcher = CancellationWatcher(
            dispatcher=dispatcher, store=store, run_id=self.run_id, known=known
        )
        self._pending_pods = PendingPods(
            dispatcher=dispatcher,
            recorder=self.recorder,
            unschedulable_seconds=self.unschedulable_seconds,
            give_up=self._give_up,
            handle_missing_job=self._handle_missing_job,
        )

    def _hear_next(self) -> None:
        self._dispatcher.hear_next()
        now = time.monotonic()
        if now >= self._next_tick and self._is_begun:
            self._next_tick = now + TICK_SECONDS
            while self._later and self._later[0][0] <= now:
                self._later.popleft()[1]()
            self._pending_pods.look_after(self.tasks)
            self.observer.tick(self.tasks)

    def _check_deadline(self) -> None:
        """Raise DeadlinePassed when time is up and what had ended by then has its record.

        No Job is made any more when it is raised: who ends the unfinished ones meets all of them.
        """
        if self.deadline is None or read_clock() < self.deadline:
            return
        if self._is_begun:
            self._submission.stop(RECORDING_SECONDS)
            begun = time.monotonic()
            while (seconds := time.monotonic() - begun) < RECORDING_SECONDS:
                if seconds > LAST_NEWS_SECONDS and not self.tasks.count("recording"):
                    break
                self._hear_next()
        raise DeadlinePassed

    # Feeds

    def _make_feed(self, kind: str, read: Callable[[dict[str, Any]], T], fields: str = "") -> Informer[T]:
        group = "/apis/batch/v1" if kind == "jobs" else "/api/v1"
        path = f"{group}/namespaces/{self.namespace}/{kind}"
        return Informer(connection=self.connection, path=path, labels=select_run(self.run_id), read=read, fields=fields)

    def _start(self, feed: Informer[T], hear: Callable[[Listed[T] | Changed[T] | InformerFailed], None]) -> None:
        def tell(news: Listed[T] | Changed[T] | InformerFailed) -> None:
            self._dispatcher.put(partial(hear, news))

        threading.Thread(target=feed.follow, args=(tell,), name="feed", daemon=True).start()

    def _hear_jobs(self, news: Listed[JobStatus] | Changed[JobStatus] | InformerFailed) -> None:
        match news:
            case InformerFailed(error):
                raise error
            case Changed(job, is_gone):
                self._update_job(job, is_gone)
            case Listed(jobs):
                # What was not watched may have been cancelled, and the Jobs that told so be gone.
                self._cancellation_watcher.look()
                self._begin()
                present = {job.name for job in jobs}
                for task in self.tasks:
                    if task.name not in present:
                        self._hear_gone(task)
                for job in jobs:
                    self._update_job(job, is_gone=False)

    def _begin(self) -> None:
        """Learn what is to be measured: the Jobs that are there are known, later ends come through the feed."""
        if not self._is_begun:
            self._is_begun, self.tasks = True, self._list_tasks()
            self._submission = Submission(
                dispatcher=self._dispatcher,
                cancellation_watcher=self._cancellation_watcher,
                connection=self.connection,
                namespace=self.namespace,
                renderer=self.renderer,
                max_in_flight=self.max_in_flight,
                tasks=self.tasks,
            )
            self._submission.add(self.tasks)

    def _hear_pods(self, news: Listed[PodStatus] | Changed[PodStatus] | InformerFailed) -> None:
        match news:
            case InformerFailed(error):
                raise error
            case Changed(pod, is_gone):
                self._update_pod(pod, is_gone)
            case Listed(pods):
                for task in self.tasks:
                    task.pods = {name: pod for name, pod in task.pods.items() if pod.phase == "Failed"}
                for pod in pods:
                    self._update_pod(pod, is_gone=False)

    def _update_job(self, job: JobStatus, is_gone: bool) -> None:
        if job.is_cancelled:
            raise RunCancelled
        task = self.tasks.find(job.name)
        if task is None or task.state == "done":
            return
        self._pending_pods.note_progress(job)
        if is_gone:
            self._hear_gone(task)
            return
        task.job = job
        if task.state != "recording":
            self._take_up(task, job)

    def _take_up(self, task: Task, job: JobStatus) -> None:
        """Follow a Job that is there, or see to the record of one that has finished."""
        if job.end:
            self.tasks.move(task, "recording")
            self._dispatcher.record(partial(self.recorder.record_finished, task, job), partial(self._finish, task))
        else:
            self.tasks.move(task, "in-flight")

    def _update_pod(self, pod: PodStatus, is_gone: bool) -> None:
        task = self.tasks.find(pod.job_name)
        if task is None or task.state == "done":
            return
        if is_gone and pod.phase != "Failed":
            task.pods.pop(pod.name, None)
            return
        task.pods[pod.name] = pod
        if pod.disruption and pod.phase == "Failed" and pod.uid not in task.disrupted:
            task.disrupted.add(pod.uid)
            if len(task.disrupted) >= MAX_DISRUPTIONS and task.state == "in-flight":
                message = f"its nodes took it down {MAX_DISRUPTIONS} times, the last time for {pod.disruption}"
                self._give_up(task, ("preempted", Failure(kind="preempted", message=message)))

    # Ends

    def _hear_gone(self, task: Task) -> None:
        was_seen, task.job = task.job is not None, None
        if task.state == "in-flight" or (task.state == "submitting" and was_seen):
            self._handle_missing_job(task)

    def _handle_missing_job(self, task: Task) -> None:
        """A Job is not there, deleted by its time to live or by somebody: without a record, it is made again."""
        self.tasks.move(task, "recording")
        look = partial(self.recorder.find_record, task)

        def decide(result: Result | None) -> None:
            if result is not None:
                self._finish(task, result)
            else:
                self._later.append(
                    (time.monotonic() + GONE_SECONDS, partial(self._dispatcher.record, look, decide_for_good))
                )

        def decide_for_good(result: Result | None) -> None:
            if result is not None:
                self._finish(task, result)
            else:
                self._cancellation_watcher.look(partial(self._make_again, task))

        self._dispatcher.record(look, decide)

    def _make_again(self, task: Task) -> None:
        if task.job is not None:  # it was made meanwhile, or the list of Jobs was older than it
            self._take_up(task, task.job)
            return
        self._dispatcher.warn(f"Job {task.name} went before it had ended; it is made again")
        task.pods = {}
        task.forget_waiting()
        task.forget_no_pod()
        self._submission.add_again(task)

    def _give_up(self, task: Task, ending: Ending) -> None:
        self.tasks.move(task, "recording")
        self._dispatcher.record(partial(self.recorder.give_up, task, ending), partial(self._finish, task))

    def _finish(self, task: Task, result: Result) -> None:
        self.tasks.move(task, "done")
        task.job, task.pods = None, {}
        self.observer.finish_task(task, result)


def read_clock() -> datetime:
    """Return the time of day."""
    return datetime.now(UTC)


def explain_refusal(error: ApiError, context: str) -> UserError:
    """Return the message for what the API server refused, or for one that stayed away."""
    if isinstance(error, BusyError):
        hint = "the Jobs go on; give the same command again when it is back"
        return TransientError(f"--on {context}: {error.message}; {hint}")
    return UserError(f"--on {context}: {error.message}; `benchmatrix doctor` tells what is missing")
