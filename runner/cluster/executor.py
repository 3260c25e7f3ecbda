"""The cluster executor: missing repeats of a Run in, a Job each on the cluster, one terminal record each in the store.

One thread decides, told by a queue: two feeds say what happens to Jobs and pods, a pool of threads sends requests. All
state is in the cluster and the store; whatever is kept here can be had from them again.
"""

import queue
import threading
import time
from collections import defaultdict, deque
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial
from typing import Any, NoReturn, Protocol, TypeVar

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
from runner.cluster.workers import Workers
from runner.job_name import select_run
from runner.job_template import JobRenderer

NUM_SUBMITTERS = 16
NUM_REGISTRARS = 8
MAX_HEARD = 500
"""News that are heard before anything else is done."""
TICK_SECONDS = 1.0
QUOTA_PAUSE_SECONDS = 10.0
"""Before a submission that a quota refused is tried again."""
NO_POD_SECONDS = 20.0
"""After so long without a pod, the Job controller is asked why; then after twice as long, and so on."""
UNSEEN_SECONDS = 60.0
"""A Job that was made and that the feed has not told of for so long is looked after."""
GONE_SECONDS = 3.0
"""After so long the store is looked at again for a Job that was deleted: another runner may have given it up."""
TELL_SECONDS = 10.0
"""A pod that waits for so long, while no cell of its pool runs, is told about."""
MAX_DISRUPTIONS = 20
"""A repeat that nodes took down so often is given up."""
TELL_AGAIN_SECONDS = 600.0
"""Before the same warning may come again."""
FORBIDDEN = 403
ALREADY_EXISTS = "AlreadyExists"
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
    _told_at: dict[str, float] = field(default_factory=dict, repr=False)
    """By gist of a warning: when it was last told."""
    _later: deque[tuple[float, Callable[[], None]]] = field(default_factory=deque, repr=False)
    """What is to be done and when, in this order."""
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
        self._submitters, self._registrars = Workers(NUM_SUBMITTERS, "submit"), Workers(NUM_REGISTRARS, "record")
        self._list_tasks, self.tasks, self._is_begun = list_tasks, Tasks(()), False
        self.connection.warn = self._warn_later
        try:
            self._start(jobs, self._hear_jobs)
            while not self._is_begun:
                self._hear_next()
            self._start(pods, self._hear_pods)
            while self.tasks.count("done") < len(self.tasks):
                self._submit_more()
                self._hear_next()
        except ApiError as error:
            raise explain_refusal(error, self.connection.context) from error
        finally:
            jobs.stop()
            pods.stop()
            self._submitters.stop()
            self._registrars.stop()

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
            for _ in range(MAX_HEARD):  # what has come meanwhile
                self._inbox.get_nowait()()
        now = time.monotonic()
        if now >= self._next_tick and self._is_begun:
            self._next_tick = now + TICK_SECONDS
            while self._later and self._later[0][0] <= now:
                self._later.popleft()[1]()
            self._look_after_waiting(now)
            self.observer.tick(self.tasks)

    def _hear_jobs(self, news: Listed[SeenJob] | Changed[SeenJob] | Lost) -> None:
        match news:
            case Lost(error):
                raise error
            case Changed(job, is_gone):
                self._update_job(job, is_gone)
            case Listed(jobs):
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
            self._to_submit.extend(self.tasks)

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
        if job.num_ready or job.end:
            self._last_progress[job.pool] = time.monotonic()
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
                hint = "finished Jobs count until they are deleted: `keep_finished_seconds` of the profile"
                self._warn_later(f"no room for more Jobs at present: {error.message} ({hint})", "quota of Jobs")
                return False
            if error.reason != ALREADY_EXISTS:
                raise
        return True

    def _hear_created(self, task: Task, is_there: bool) -> None:
        if task.state != "submitting":  # its Job was seen first
            return
        if is_there:
            self.tasks.move(task, "in-flight")
        else:
            self._submit_later(task, is_next=True)
            self._submit_not_before = time.monotonic() + QUOTA_PAUSE_SECONDS

    def _submit_later(self, task: Task, *, is_next: bool) -> None:
        self.tasks.move(task, "to-submit")
        if is_next:
            self._to_submit.appendleft(task)
        else:
            self._to_submit.append(task)

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
                self._later.append((time.monotonic() + GONE_SECONDS, partial(self._record, look, decide_for_good)))

        def decide_for_good(result: Result | None) -> None:
            if result is not None:
                self._finish(task, result)
            elif task.job is not None:  # it was made meanwhile, or the list of Jobs was older than it
                self._take_up(task, task.job)
            else:
                self._warn(f"Job {task.name} went before it had ended; it is made again")
                task.pods = {}
                task.forget_waiting()
                task.forget_no_pod()
                self._submit_later(task, is_next=False)

        self._record(look, decide)

    def _give_up(self, task: Task, ending: Ending) -> None:
        self.tasks.move(task, "settling")
        self._record(partial(self.registrar.give_up, task, ending), partial(self._finish, task))

    def _finish(self, task: Task, result: Result) -> None:
        self.tasks.move(task, "done")
        task.job, task.pods = None, {}
        self.observer.finish_task(task, result)

    # What waits

    def _look_after_waiting(self, now: float) -> None:
        in_flight = [task for task in self.tasks if task.state == "in-flight"]
        for task in in_flight:
            if task.job is not None and task.job.num_ready:
                self._last_progress[task.job.pool] = now
        for task in in_flight:
            if task.job is not None:
                self._look_after(task, task.job, now)
            elif now - self._note_no_pod(task, now) >= UNSEEN_SECONDS:
                task.forget_no_pod()
                self._settle_gone(task)

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
            self._warn(f"{hindrance.to_failure().message} (waiting: {slug} for one)", hindrance.gist)
        if now - since >= hindrance.patience_seconds:
            self._give_up(task, ("failed", hindrance.to_failure()))

    def _note_no_pod(self, task: Task, now: float) -> float:
        """Return since when the task has no pod."""
        task.no_pod_since = now if task.no_pod_since is None else task.no_pod_since
        return task.no_pod_since

    def _ask_why_no_pod(self, task: Task, job: SeenJob, now: float) -> None:
        if now - self._note_no_pod(task, now) < NO_POD_SECONDS * 2**task.num_asked:
            return
        task.num_asked += 1

        def hear_no_pod(words: str) -> None:
            task.no_pod_words = words

        def hear_leaving(words: str) -> None:
            task.leaving_words = words

        if job.num_terminating:
            self._work(self._registrars, partial(self.registrar.read_leaving_words, task), hear_leaving)
        else:
            task.leaving_words = ""
            self._work(self._registrars, partial(self.registrar.read_no_pod_words, task), hear_no_pod)

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
                    self._warn_later(f"{error}; it is tried again", "store")
                    time.sleep(STORE_PAUSE_SECONDS)

        self._work(self._registrars, persist, then)

    def _work(self, workers: Workers, work: Callable[[], T], then: Callable[[T], None]) -> None:
        """Have a thread do `work`; the deciding thread hears what it returned, or meets what it raised."""

        def do() -> None:
            try:
                result = work()
            except Exception as error:  # noqa: BLE001  (raised where it is heard)
                self._inbox.put(partial(_raise, error))
            else:
                self._inbox.put(partial(then, result))

        workers.submit(do)

    def _warn_later(self, message: str, gist: str | None = None) -> None:
        """Have the deciding thread warn."""
        self._inbox.put(partial(self._warn, message, gist))

    def _warn(self, message: str, gist: str | None = None) -> None:
        """Tell the user, but not twice in short time what has the same gist."""
        now, key = time.monotonic(), gist or message
        if now - self._told_at.get(key, -TELL_AGAIN_SECONDS) >= TELL_AGAIN_SECONDS:
            self._told_at[key] = now
            self.observer.warn(message)


def _raise(error: Exception) -> NoReturn:
    raise error


def explain_refusal(error: ApiError, context: str) -> UserError:
    """Return the message for what the API server refused, or for one that stayed away."""
    if isinstance(error, BusyError):
        hint = "the Jobs go on; give the same command again when it is back"
    else:
        hint = "`benchmatrix doctor` tells what is missing"
    return UserError(f"--on {context}: {error.message}; {hint}")
