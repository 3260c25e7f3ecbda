"""The cluster executor: missing repeats of a Run in, a Job each on the cluster, one terminal record each in the store.

One thread decides, told by a queue: two feeds say what happens to Jobs and pods, a pool of threads sends requests. All
state is in the cluster and the store; whatever is kept here can be had from them again.
"""

import queue
import threading
import time
from collections import defaultdict, deque
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial
from typing import Any, Protocol, TypeVar

from bench.errors import UserError
from bench.schema import Failure, Result
from bench.store import StoreError
from runner.cluster.connection import ApiError, BusyError, Connection
from runner.cluster.endings import Ending
from runner.cluster.feed import Changed, Feed, Listed, Lost
from runner.cluster.hindrances import find_hindrance
from runner.cluster.observed import SeenJob, SeenPod, read_job, read_pod
from runner.cluster.settlement import Registrar
from runner.cluster.tasks import Task, Tasks
from runner.job_name import select_run
from runner.job_template import JobRenderer

NUM_SUBMITTERS = 16
NUM_REGISTRARS = 8
TICK_SECONDS = 1.0
QUOTA_PAUSE_SECONDS = 10.0
"""Before a submission that a quota refused is tried again."""
NO_POD_SECONDS = 20.0
"""After so long without a pod, the Job controller is asked why."""
TELL_SECONDS = 10.0
"""A pod that waits for so long, while no cell of its pool runs, is told about."""
MAX_DISRUPTIONS = 20
"""A repeat that nodes took down so often is given up."""
CONFLICT, FORBIDDEN = 409, 403
# Only these pods are followed: that a pod runs and how well it ended is told by its Job and its record.
POD_FIELDS = "status.phase!=Running,status.phase!=Succeeded"
STORE_PAUSE_SECONDS = 10.0

T = TypeVar("T")


class ClusterObserver(Protocol):
    """Who is told how the run goes on."""

    def tick(self, tasks: Tasks) -> None:
        """About a second has passed."""

    def finish_task(self, task: Task, result: Result) -> None:
        """A repeat has its terminal record."""

    def warn(self, message: str) -> None:
        """Something keeps cells from running that the user can mend."""


class RunCancelled(Exception):  # noqa: N818  (an answer rather than an error)
    """Somebody cancelled the run with `benchmatrix cancel`."""


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
    tasks: Tasks = field(init=False, repr=False)
    _inbox: "queue.SimpleQueue[Callable[[], None]]" = field(default_factory=queue.SimpleQueue, repr=False)
    _to_submit: deque[Task] = field(default_factory=deque, repr=False)
    _warnings: set[str] = field(default_factory=set, repr=False)
    _last_progress: defaultdict[str, float] = field(default_factory=lambda: defaultdict(time.monotonic), repr=False)
    """By pool: when a cell of it last ran or ended."""
    _submit_not_before: float = 0.0
    _next_tick: float = 0.0

    def measure(self, list_tasks: Callable[[], Tasks]) -> None:
        """Have every task measured that `list_tasks` returns. It is called once the Jobs that are there are known.

        In this order nothing is measured twice: a Job that was gone before they were listed has its record in the
        store. UserError where the cluster refuses; RunCancelled where the run was cancelled.
        """
        jobs, pods = self._make_feed("jobs", read_job), self._make_feed("pods", read_pod, POD_FIELDS)
        self._submitters = ThreadPoolExecutor(NUM_SUBMITTERS, "submit")
        self._registrars = ThreadPoolExecutor(NUM_REGISTRARS, "record")
        try:
            self._start(jobs, self._hear_jobs)
            hear_first_list = self._inbox.get()
            self.tasks = list_tasks()
            self._to_submit.extend(self.tasks)
            hear_first_list()
            self._start(pods, self._hear_pods)
            while self.tasks.count("done") < len(self.tasks):
                self._submit_more()
                self._hear_next()
        except ApiError as error:
            raise explain_refusal(error, self.connection.context) from error
        finally:
            jobs.stop()
            pods.stop()
            self._submitters.shutdown(wait=False, cancel_futures=True)
            self._registrars.shutdown(wait=False, cancel_futures=True)

    # Feeds

    def _make_feed(self, kind: str, read: Callable[[dict[str, Any]], T], fields: str = "") -> Feed[T]:
        group = "/apis/batch/v1" if kind == "jobs" else "/api/v1"
        path = f"{group}/namespaces/{self.namespace}/{kind}"
        return Feed(connection=self.connection, path=path, labels=select_run(self.run_id), read=read, fields=fields)

    def _start(self, feed: Feed[T], hear: Callable[[Listed[T] | Changed[T] | Lost], None]) -> None:
        def tell(news: Listed[T] | Changed[T] | Lost) -> None:
            self._inbox.put(partial(hear, news))

        threading.Thread(target=feed.follow, args=(tell,), name="feed", daemon=True).start()

    def _hear_next(self) -> None:
        with suppress(queue.Empty):
            self._inbox.get(timeout=TICK_SECONDS)()
        now = time.monotonic()
        if now >= self._next_tick:
            self._next_tick = now + TICK_SECONDS
            self._look_after_waiting(now)
            self.observer.tick(self.tasks)

    def _hear_jobs(self, news: Listed[SeenJob] | Changed[SeenJob] | Lost) -> None:
        match news:
            case Lost(error):
                raise error
            case Changed(job, is_gone):
                self._update_job(job, is_gone)
            case Listed(jobs):
                present = {job.name for job in jobs}
                for task in self.tasks:
                    if task.state == "in-flight" and task.name not in present:
                        self._settle_gone(task)
                for job in jobs:
                    self._update_job(job, is_gone=False)

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
        if task is None or task.state in ("settling", "done"):
            return
        if job.num_ready or job.end:
            self._last_progress[job.pool] = time.monotonic()
        task.job = job
        if is_gone:
            self._settle_gone(task)
        elif job.end:
            self.tasks.move(task, "settling")
            self._record(partial(self.registrar.settle_finished, task, job), partial(self._finish, task))
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

    # Submission

    def _submit_more(self) -> None:
        if time.monotonic() < self._submit_not_before:
            return
        num_free = self.max_in_flight - self.tasks.count("submitting", "in-flight")
        while num_free > 0 and self._to_submit:
            task = self._to_submit.popleft()
            if task.state == "to-submit":
                self.tasks.move(task, "submitting")
                self._work(self._submitters, partial(self._create, task), partial(self._hear_created, task))
                num_free -= 1

    def _create(self, task: Task) -> bool:
        """Make the Job; False where a quota leaves no room. One that is there already was made by another runner."""
        body = self.renderer.render(task.repeat.planned, task.key)
        try:
            self.connection.request("create", f"/apis/batch/v1/namespaces/{self.namespace}/jobs", body=body)
        except ApiError as error:
            if error.status == FORBIDDEN and "exceeded quota" in error.message:
                self._inbox.put(partial(self._warn, f"no room for more Jobs at present: {error.message}"))
                return False
            if error.status != CONFLICT:
                raise
        return True

    def _hear_created(self, task: Task, is_there: bool) -> None:
        if task.state != "submitting":  # its Job was seen first
            return
        if is_there:
            self.tasks.move(task, "in-flight")
        else:
            self.tasks.move(task, "to-submit")
            self._to_submit.appendleft(task)
            self._submit_not_before = time.monotonic() + QUOTA_PAUSE_SECONDS

    # Ends

    def _settle_gone(self, task: Task) -> None:
        """A Job was deleted, by its time to live or by somebody: without a record, it is made again."""
        self.tasks.move(task, "settling")

        def decide(result: Result | None) -> None:
            if result is not None:
                self._finish(task, result)
                return
            self._warn(f"Job {task.name} was deleted before it ended; it is made again")
            task.job, task.pods, task.waiting_since = None, {}, None
            self.tasks.move(task, "to-submit")
            self._to_submit.append(task)

        self._record(partial(self.registrar.find_record, task), decide)

    def _give_up(self, task: Task, ending: Ending) -> None:
        self.tasks.move(task, "settling")
        self._record(partial(self.registrar.give_up, task, ending), partial(self._finish, task))

    def _finish(self, task: Task, result: Result) -> None:
        self.tasks.move(task, "done")
        task.job, task.pods = None, {}
        self.observer.finish_task(task, result)

    # What waits

    def _look_after_waiting(self, now: float) -> None:
        for task in self.tasks:
            if task.state == "in-flight" and task.job is not None:
                self._look_after(task, task.job, now)

    def _look_after(self, task: Task, job: SeenJob, now: float) -> None:
        if job.num_ready or job.is_suspended:
            task.waiting_since = None
            return
        hindrance = find_hindrance(task, unschedulable_seconds=self.unschedulable_seconds)
        if hindrance is None and job.num_active:
            task.waiting_since = None
            return
        task.waiting_since = task.waiting_since or now
        if hindrance is None:
            self._ask_why_no_pod(task, now)
            return
        # While others of its pool run, a pod that no node takes merely waits for its turn.
        since = max(task.waiting_since, self._last_progress[job.pool] if hindrance.kind == "unschedulable" else 0.0)
        if now - since >= min(TELL_SECONDS, hindrance.patience_seconds):
            self._warn(f"{hindrance.to_failure().message} (waiting: {task.repeat.planned.cell.slug} for one)")
        if now - since >= hindrance.patience_seconds:
            self._give_up(task, ("failed", hindrance.to_failure()))

    def _ask_why_no_pod(self, task: Task, now: float) -> None:
        if now - (task.asked_at or task.waiting_since or now) < NO_POD_SECONDS:
            return
        task.asked_at = now

        def hear(words: str) -> None:
            task.no_pod_words = words

        self._work(self._registrars, partial(self.registrar.read_no_pod_words, task), hear)

    # Threads

    def _record(self, work: Callable[[], T], then: Callable[[T], None]) -> None:
        """Have work done that needs the store; while that cannot be used, it is tried again, and told about."""

        def persist() -> T:
            deadline = time.monotonic() + self.connection.patience_seconds
            while True:
                try:
                    return work()
                except StoreError as error:
                    if time.monotonic() > deadline:
                        raise
                    self._inbox.put(partial(self._warn, f"{error}; it is tried again"))
                    time.sleep(STORE_PAUSE_SECONDS)

        self._work(self._registrars, persist, then)

    def _work(self, pool: ThreadPoolExecutor, work: Callable[[], T], then: Callable[[T], None]) -> None:
        """Have a thread do `work`; the deciding thread hears what it returned, or meets what it raised."""

        def hear(done: "Future[T]") -> None:
            if not done.cancelled():
                self._inbox.put(lambda: then(done.result()))

        pool.submit(work).add_done_callback(hear)

    def _warn(self, message: str) -> None:
        if message not in self._warnings:
            self._warnings.add(message)
            self.observer.warn(message)


def explain_refusal(error: ApiError, context: str) -> UserError:
    """Return the message for what the API server refused, or for one that stayed away."""
    if isinstance(error, BusyError):
        hint = "the Jobs go on; give the same command again when it is back"
    else:
        hint = "`benchmatrix doctor` tells what is missing"
    return UserError(f"--on {context}: {error.message}; {hint}")
