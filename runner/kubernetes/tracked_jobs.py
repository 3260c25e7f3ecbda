"""A run while it is measured on a cluster: its repeats that are missing, with what is known of their Jobs and pods."""

import queue
import sched
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from functools import cached_property, partial
from typing import Literal, NoReturn, Protocol, Self, TypeVar

from bench.schema import Device, Result, Run
from bench.store import Store, StoreError
from runner.kubernetes.connection import Connection
from runner.kubernetes.names import JobKey, make_path, select_run
from runner.kubernetes.objects import JobStatus, PodStatus
from runner.kubernetes.rendering import JobRenderer, compute_fingerprint
from runner.matrix import Repeat
from runner.profiles.model import is_shared

NUM_SUBMITTERS = 16
NUM_RECORDERS = 8
MAX_BATCH = 500
"""Queued calls that are run before anything else is done."""
TICK_SECONDS = 1.0
"""How long the main thread waits for an event before it looks for other work."""
REPEAT_WARNING_SECONDS = 600.0
"""How long the same warning is held back."""
STORE_PAUSE_SECONDS = 10.0
LAST_REQUESTS_SECONDS = 10.0
"""How long, at the end, the requests under way are waited for: one that is repeated may take minutes."""

T = TypeVar("T")


class RequestThreads:
    """Daemon threads that take work, which must not raise; unlike a pool's they do not keep the process from ending."""

    def __init__(self, num_threads: int, name: str) -> None:
        self._queue: queue.SimpleQueue[Callable[[], None] | None] = queue.SimpleQueue()
        self._is_stopped = False
        self._threads = [
            threading.Thread(target=self._work, name=f"{name}-{number}", daemon=True) for number in range(num_threads)
        ]
        for thread in self._threads:
            thread.start()

    def submit(self, work: Callable[[], None]) -> None:
        self._queue.put(work)

    def stop(self) -> None:
        self._is_stopped = True
        for _ in self._threads:
            self._queue.put(None)

    def await_end(self, deadline: float) -> None:
        """Wait, after `stop`, until no work is being done any more; until `deadline` (time.monotonic) at the most."""
        for thread in self._threads:
            thread.join(max(0.0, deadline - time.monotonic()))

    def _work(self) -> None:
        while (work := self._queue.get()) is not None and not self._is_stopped:
            work()


@dataclass(kw_only=True)
class Dispatcher:
    """Runs calls on the main thread, where all state is changed, so that nothing needs a lock; requests on others.

    Stops at the end of its `with` block and waits for its requests under way, also after an error: otherwise they would
    go on beside whatever comes next, each with a socket. Ctrl-C, and a signal that ends the process, are not to wait
    for an answer.
    """

    warn_user: Callable[[str], None]
    patience_seconds: float
    """How long requests to a store that fails are repeated."""
    _queue: "queue.SimpleQueue[Callable[[], None]]" = field(default_factory=queue.SimpleQueue, repr=False)
    _later: sched.scheduler = field(default_factory=partial(sched.scheduler, time.monotonic), repr=False)
    _warned_at: dict[str, float] = field(default_factory=dict, repr=False)
    """When a warning was last given, by its dedup_key."""
    _submitters: RequestThreads = field(default_factory=partial(RequestThreads, NUM_SUBMITTERS, "submit"), repr=False)
    _recorders: RequestThreads = field(default_factory=partial(RequestThreads, NUM_RECORDERS, "record"), repr=False)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, _kind: object, error: BaseException | None, _traceback: object) -> None:
        deadline = time.monotonic() + LAST_REQUESTS_SECONDS
        self.stop()
        if error is None or isinstance(error, Exception):
            for threads in (self._submitters, self._recorders):
                threads.await_end(deadline)

    def stop(self) -> None:
        for threads in (self._submitters, self._recorders):
            threads.stop()

    def post(self, call: Callable[[], None]) -> None:
        """Queue a call for the main thread; may be used from any thread."""
        self._queue.put(call)

    def call_later(self, seconds: float, call: Callable[[], None]) -> None:
        self._later.enter(seconds, 0, call)

    def run_next(self) -> None:
        """Wait TICK_SECONDS at most for a call; run it and those queued behind it. Raise what they raise."""
        with suppress(queue.Empty):
            self._queue.get(timeout=TICK_SECONDS)()
            for _ in range(MAX_BATCH):
                self._queue.get_nowait()()
        self._later.run(blocking=False)

    def stop_submitting(self, seconds: float) -> None:
        """Drop the Jobs that are queued, and wait at most `seconds` for the requests under way."""
        self._submitters.stop()
        self._submitters.await_end(time.monotonic() + seconds)

    def submit(self, work: Callable[[], T], then: Callable[[T], None]) -> None:
        """Run `work`, which creates a Job, on a submitting thread and pass its result to `then` on the main thread.

        What `work` raises is raised on the main thread.
        """
        self._run(self._submitters, work, then)

    def request(self, work: Callable[[], T], then: Callable[[T], None]) -> None:
        """Run `work`, which asks the API server, on a recording thread and pass its result to `then`; see `submit`."""
        self._run(self._recorders, work, then)

    def record(self, work: Callable[[], T], then: Callable[[T], None]) -> None:
        """Run `work`, which uses the store, as `request` does; repeat it, with a warning, while the store fails."""

        def persist() -> T:
            deadline = time.monotonic() + self.patience_seconds
            while True:
                try:
                    return work()
                except StoreError as error:
                    if time.monotonic() > deadline:
                        raise
                    self.warn_later(f"{error}; it is tried again", "store")
                    time.sleep(STORE_PAUSE_SECONDS)

        self._run(self._recorders, persist, then)

    def warn_later(self, message: str, dedup_key: str | None = None) -> None:
        self.post(partial(self.warn, message, dedup_key))

    def warn(self, message: str, dedup_key: str | None = None) -> None:
        """Warn the user, unless a warning of the same dedup_key was given a short time ago."""
        now, key = time.monotonic(), dedup_key or message
        if now - self._warned_at.get(key, -REPEAT_WARNING_SECONDS) >= REPEAT_WARNING_SECONDS:
            self._warned_at[key] = now
            self.warn_user(message)

    def _run(self, threads: RequestThreads, work: Callable[[], T], then: Callable[[T], None]) -> None:
        def run() -> None:
            try:
                result = work()
            except Exception as error:  # noqa: BLE001  (raised on the main thread)
                self.post(partial(raise_error, error))
            else:
                self.post(partial(then, result))

        threads.submit(run)


def raise_error(error: Exception) -> NoReturn:
    raise error


# The states of a repeat while its run measures it, and the one table of the transitions between them.

State = Literal[
    "to-submit",  # its Job is to be created
    "submitting",  # the request that creates its Job is under way
    "in-flight",  # its Job exists and has not finished
    "recording",  # its Job has finished, is missing, was given up or withdrawn; its record is being found or written
    "done",  # its terminal record is in the store
]
FOLLOWING: Mapping[State, frozenset[State]] = {
    # A Job that an earlier runner, or another one, has created is seen first; one that no node takes is given up with
    # those that ask for the same.
    "to-submit": frozenset({"submitting", "in-flight", "recording"}),
    "submitting": frozenset({"in-flight", "to-submit", "recording"}),  # "to-submit": a quota leaves no room
    "in-flight": frozenset({"in-flight", "recording"}),
    # Another Job is created if it left no record, or another runner has created one.
    "recording": frozenset({"in-flight", "recording", "to-submit", "done"}),
    "done": frozenset(),
}
"""The states that each may change to. Every other change is a mistake in this program."""


CellKind = tuple[str, int, int]
"""The kind of nodes, GPUs and tenants: what cells of a run request differs in nothing else."""
UNFINISHED: frozenset[State] = frozenset({"submitting", "in-flight"})


@dataclass(kw_only=True, slots=True)
class TrackedJob:
    """One repeat that is to be measured, and the Job that measures it. A run may have 100,000 of them."""

    repeat: Repeat
    key: JobKey
    earlier: tuple[str, ...] = ()
    """The keys of the records that the repeat had before."""
    state: State = "to-submit"
    """Changed by `TrackedJobs.move` only."""
    job: JobStatus | None = None
    """As the informer reported it last. None: it was not reported yet, or was deleted."""
    pods: dict[str, PodStatus] = field(default_factory=dict)
    """Pending and failed pods by name."""
    disrupted_pod_uids: frozenset[str] = frozenset()
    """Pods that were ended from outside: preempted, evicted, deleted, lost with their node, past their deadline, or of
    a Job that its queue suspended."""
    running_pod: PodStatus | None = None
    """The pod that was seen running last. None: none was."""
    is_released: bool = False
    """Its Job was deleted because it waited too long for a certain node: it may go to any."""
    node: str | None = None
    """The node of its newest pod. None: none was seen there."""
    settled_uids: frozenset[str] = frozenset()
    """Its former Jobs and their pods, which the runner replaced by another Job: what is reported of them is old."""
    waiting_for: str = ""
    """What it waits for, as failures.py has it; empty: nothing that is known."""
    waiting_since: float = 0.0
    """When (time.monotonic) it was first seen to wait for that."""
    num_withdrawn: int = 0
    """How often its Job was deleted because no node took its pod, to be created again after a pause."""

    def forget_pods(self) -> None:
        self.pods, self.running_pod, self.waiting_for = {}, None, ""

    @property
    def name(self) -> str:
        return self.key.job_name

    @property
    def pool(self) -> Device:
        return self.repeat.planned.cell.device

    @property
    def node_kind(self) -> str:
        """Which nodes of its pool the cell needs: `gpu`, `gpu (shared by mps)`."""
        cell = self.repeat.planned.cell
        return f"{cell.device} (shared by {cell.sharing})" if is_shared(cell) else cell.device

    @property
    def cell_kind(self) -> "CellKind":
        cell = self.repeat.planned.cell
        return self.node_kind, cell.num_gpus, cell.tenants


@dataclass(frozen=True, kw_only=True)
class Cost:
    """An amount of money."""

    amount: float
    currency: str

    def __str__(self) -> str:
        return f"{self.amount:.2f} {self.currency}"


class TrackedJobs:
    """All tracked Jobs of a run: found by name, counted by state. Jobs of a former retry round are not among them."""

    cost: Cost | None = None
    """What the run has cost so far, as an estimate. None: the prices are unknown."""

    def __init__(self, jobs: Iterable[TrackedJob] = ()) -> None:
        self._by_name: dict[str, TrackedJob] = {}
        self._counts: Counter[tuple[str, str, State]] = Counter()  # by pool and kind of nodes
        self._unfinished: dict[str, TrackedJob] = {}
        self.add(jobs)

    def __len__(self) -> int:
        return len(self._by_name)

    def __iter__(self) -> Iterator[TrackedJob]:
        return iter(self._by_name.values())

    def add(self, jobs: Iterable[TrackedJob]) -> None:
        for tracked in jobs:
            self._by_name[tracked.name] = tracked
            self._count(tracked, 1)

    def find(self, job_name: str) -> TrackedJob | None:
        return self._by_name.get(job_name)

    def list_unfinished(self) -> list[TrackedJob]:
        return list(self._unfinished.values())

    def count(self, *states: State, pool: str | None = None, node_kind: str | None = None) -> int:
        """Return how many are in one of these states: of all, of a pool, or of those that need one kind of nodes."""
        return sum(
            number
            for (own_pool, own_kind, state), number in self._counts.items()  # a few dozen at most
            if state in states and pool in (None, own_pool) and node_kind in (None, own_kind)
        )

    def move(self, tracked: TrackedJob, state: State) -> None:
        assert state in FOLLOWING[tracked.state], f"from {tracked.state} to {state}"
        self._count(tracked, -1)
        tracked.state = state
        self._count(tracked, 1)

    def _count(self, tracked: TrackedJob, change: int) -> None:
        self._counts[tracked.pool, tracked.node_kind, tracked.state] += change
        if change > 0 and tracked.state in UNFINISHED:
            self._unfinished[tracked.name] = tracked
        else:
            self._unfinished.pop(tracked.name, None)


class ClusterObserver(Protocol):
    """Receives the reports of a session, all on its main thread."""

    def tick(self, jobs: TrackedJobs) -> None:
        """Show the state of the run; called about once a second."""

    def finish(self, tracked: TrackedJob, result: Result) -> None:
        """Report a repeat that has its terminal record."""

    def warn(self, message: str) -> None:
        """Report something that keeps cells from running and that the user can fix."""


def warn_once(tell: Callable[[str], None]) -> Callable[[str, str], None]:
    """Return a function that tells a warning the first time that its cause comes; a session has its own way."""
    told: set[str] = set()

    def warn(message: str, dedup_key: str) -> None:
        if dedup_key not in told:
            told.add(dedup_key)
            tell(message)

    return warn


@dataclass(frozen=True, kw_only=True)
class RunBounds:
    """How much of a cluster a run may take, and what ends it."""

    max_in_flight: int
    unschedulable_seconds: float
    is_requeued: bool = False
    """A Job that no node takes for so long is deleted and created again later, rather than given up."""
    max_cost: float | None = None
    """In the profile's currency. None: there is no cap."""
    deadline_seconds: float | None = None
    """Counted from the beginning of the run. None: there is no deadline."""
    cancelled_with: Mapping[str, frozenset[str]] = field(default_factory=dict)
    """By the ids of other runs whose cancellation ends this one too: the marks of earlier cancellations of theirs."""

    def find_deadline(self, run: Run) -> datetime | None:
        if self.deadline_seconds is None:
            return None
        return min(run.created_at, datetime.now(UTC)) + timedelta(seconds=self.deadline_seconds)


@dataclass(kw_only=True)
class OngoingRun:
    """One run on one cluster and how to measure it: what all parts of a session work with."""

    plan: Run
    store: Store
    connection: Connection
    renderer: JobRenderer
    observer: ClusterObserver
    bounds: RunBounds
    jobs: TrackedJobs = field(default_factory=TrackedJobs)

    @cached_property
    def dispatcher(self) -> Dispatcher:
        return Dispatcher(warn_user=self.observer.warn, patience_seconds=self.connection.patience_seconds)

    @cached_property
    def fingerprint(self) -> str:
        """Only Jobs and pods that carry it are followed."""
        return compute_fingerprint(self.plan, self.renderer.profile, self.store.url)

    @property
    def run_id(self) -> str:
        return self.plan.run_id

    @property
    def namespace(self) -> str:
        return self.renderer.profile.namespace

    @property
    def labels(self) -> str:
        return select_run(self.run_id, fingerprint=self.fingerprint)

    def path(self, kind: str) -> str:
        return make_path(self.namespace, kind)
