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

from bench.errors import PassingError, UserError
from bench.schema import Failure, Result
from runner.cluster.cancellation import Lookout, RunCancelled, list_marks
from runner.cluster.connection import ApiError, BusyError, Connection
from runner.cluster.desk import TICK_SECONDS, Desk
from runner.cluster.endings import Ending
from runner.cluster.feed import Changed, Feed, Listed, Lost
from runner.cluster.observed import SeenJob, SeenPod, read_job, read_pod
from runner.cluster.settlement import Registrar
from runner.cluster.submission import Submission
from runner.cluster.tasks import Task, Tasks
from runner.cluster.waiting import WaitingRoom
from runner.job_name import select_run
from runner.job_template import JobRenderer

GONE_SECONDS = 3.0
"""After so long the store is looked at again for a Job that was deleted: another runner may have given it up."""
LAST_NEWS_SECONDS = 3.0
"""At the deadline: for what has ended and is not yet known to have."""
SETTLE_SECONDS = 120.0
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
    registrar: Registrar
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
        jobs, pods = self._make_feed("jobs", read_job), self._make_feed("pods", read_pod, POD_FIELDS)
        self._list_tasks, self.tasks, self._is_begun = list_tasks, Tasks(()), False
        self._open_desk()
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
            self._desk.stop()

    def _open_desk(self) -> None:
        store = self.registrar.store
        known = list_marks(store, self.run_id)
        desk = self._desk = Desk(tell_user=self.observer.warn, patience_seconds=self.connection.patience_seconds)
        self.connection.warn = desk.warn_later
        self._lookout = Lookout(desk=desk, store=store, run_id=self.run_id, known=known)
        self._waiting_room = WaitingRoom(
            desk=desk,
            registrar=self.registrar,
            unschedulable_seconds=self.unschedulable_seconds,
            give_up=self._give_up,
            settle_gone=self._settle_gone,
        )

    def _hear_next(self) -> None:
        self._desk.hear_next()
        now = time.monotonic()
        if now >= self._next_tick and self._is_begun:
            self._next_tick = now + TICK_SECONDS
            while self._later and self._later[0][0] <= now:
                self._later.popleft()[1]()
            self._waiting_room.look_after(self.tasks)
            self.observer.tick(self.tasks)

    def _check_deadline(self) -> None:
        """Raise DeadlinePassed when time is up and what had ended by then has its record.

        No Job is made any more when it is raised: who ends the unfinished ones meets all of them.
        """
        if self.deadline is None or read_clock() < self.deadline:
            return
        if self._is_begun:
            self._submission.stop(SETTLE_SECONDS)
            begun = time.monotonic()
            while (seconds := time.monotonic() - begun) < SETTLE_SECONDS:
                if seconds > LAST_NEWS_SECONDS and not self.tasks.count("settling"):
                    break
                self._hear_next()
        raise DeadlinePassed

    # Feeds

    def _make_feed(self, kind: str, read: Callable[[dict[str, Any]], T], fields: str = "") -> Feed[T]:
        group = "/apis/batch/v1" if kind == "jobs" else "/api/v1"
        path = f"{group}/namespaces/{self.namespace}/{kind}"
        return Feed(connection=self.connection, path=path, labels=select_run(self.run_id), read=read, fields=fields)

    def _start(self, feed: Feed[T], hear: Callable[[Listed[T] | Changed[T] | Lost], None]) -> None:
        def tell(news: Listed[T] | Changed[T] | Lost) -> None:
            self._desk.put(partial(hear, news))

        threading.Thread(target=feed.follow, args=(tell,), name="feed", daemon=True).start()

    def _hear_jobs(self, news: Listed[SeenJob] | Changed[SeenJob] | Lost) -> None:
        match news:
            case Lost(error):
                raise error
            case Changed(job, is_gone):
                self._update_job(job, is_gone)
            case Listed(jobs):
                self._lookout.look()  # what was not watched may have been cancelled, and the Jobs that told so be gone
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
                desk=self._desk,
                lookout=self._lookout,
                connection=self.connection,
                namespace=self.namespace,
                renderer=self.renderer,
                max_in_flight=self.max_in_flight,
                tasks=self.tasks,
            )
            self._submission.add(self.tasks)

    def _hear_pods(self, news: Listed[SeenPod] | Changed[SeenPod] | Lost) -> None:
        match news:
            case Lost(error):
                raise error
            case Changed(pod, is_gone):
                self._update_pod(pod, is_gone)
            case Listed(pods):
                for task in self.tasks:
                    task.pods = {name: pod for name, pod in task.pods.items() if pod.phase == "Failed"}
                for pod in pods:
                    self._update_pod(pod, is_gone=False)

    def _update_job(self, job: SeenJob, is_gone: bool) -> None:
        if job.is_cancelled:
            raise RunCancelled
        task = self.tasks.find(job.name)
        if task is None or task.state == "done":
            return
        self._waiting_room.note_progress(job)
        if is_gone:
            self._hear_gone(task)
            return
        task.job = job
        if task.state != "settling":
            self._take_up(task, job)

    def _take_up(self, task: Task, job: SeenJob) -> None:
        """Follow a Job that is there, or see to the record of one that has finished."""
        if job.end:
            self.tasks.move(task, "settling")
            self._desk.record(partial(self.registrar.settle_finished, task, job), partial(self._finish, task))
        else:
            self.tasks.move(task, "in-flight")

    def _update_pod(self, pod: SeenPod, is_gone: bool) -> None:
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
            self._settle_gone(task)

    def _settle_gone(self, task: Task) -> None:
        """A Job is not there, deleted by its time to live or by somebody: without a record, it is made again."""
        self.tasks.move(task, "settling")
        look = partial(self.registrar.find_record, task)

        def decide(result: Result | None) -> None:
            if result is not None:
                self._finish(task, result)
            else:
                self._later.append((time.monotonic() + GONE_SECONDS, partial(self._desk.record, look, decide_for_good)))

        def decide_for_good(result: Result | None) -> None:
            if result is not None:
                self._finish(task, result)
            else:
                self._lookout.look(partial(self._make_again, task))

        self._desk.record(look, decide)

    def _make_again(self, task: Task) -> None:
        if task.job is not None:  # it was made meanwhile, or the list of Jobs was older than it
            self._take_up(task, task.job)
            return
        self._desk.warn(f"Job {task.name} went before it had ended; it is made again")
        task.pods = {}
        task.forget_waiting()
        task.forget_no_pod()
        self._submission.add_again(task)

    def _give_up(self, task: Task, ending: Ending) -> None:
        self.tasks.move(task, "settling")
        self._desk.record(partial(self.registrar.give_up, task, ending), partial(self._finish, task))

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
        return PassingError(f"--on {context}: {error.message}; {hint}")
    return UserError(f"--on {context}: {error.message}; `benchmatrix doctor` tells what is missing")
