"""Simulate weeks of a lab: users submit jobs, a policy admits them to GPUs, which are shared, rented and interrupted.

Times are hours of the calendar from a Monday, 00:00; work is hours alone on the GPU that it runs on.
"""

import heapq
import math
from bisect import bisect_right, insort
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

import numpy as np
import numpy.typing as npt
import simpy

from collector.access.scenario import DAYS, Alternative, Group, Policy, Rent

FloatArray = npt.NDArray[np.float64]

HOURS_PER_WEEK = 168.0
DRAIN_DAYS = 14
"""How long jobs of the measured week are followed beyond it; what has not ended then counts with the hours so far."""
INTERRUPTION_STREAM = 2**20
"""Sets the random numbers of interruptions apart from those of users, whose third number is that of their group."""
SMALLEST_WORK = 1e-9
"""Hours; less is the rounding error of a job's progress, and counts as done."""


@dataclass(frozen=True, kw_only=True)
class Choice:
    """One alternative under one policy, with every figure that its simulation needs."""

    alternative: Alternative
    policy: Policy
    groups: tuple[Group, ...]
    rates: tuple[float, ...] = (1.0,)
    """The work that each of 1, 2, ... tenants gets done in an hour, in hours alone: one over the slowdown."""
    speed: float = 1.0
    """Of this kind of GPU over that of the one that `job_hours` are of."""
    samples_per_hour: float = 1.0
    """Of one GPU with one job."""
    price_per_hour: float = 0.0
    """Of a rented GPU."""
    budget_per_week: float | None = None
    """No job is started once the rent of the week is so much."""
    warm_up_weeks: int
    seed: int

    @property
    def name(self) -> str:
        """The alternative with the policy: `rent T4s, exclusive`."""
        return f"{self.alternative.name}, {self.policy}"

    @property
    def users(self) -> list[tuple[int, int, Group]]:
        """Of each user the group's place, his own in it, and the group."""
        return [(place, index, group) for place, group in enumerate(self.groups) for index in range(group.number)]


@dataclass(frozen=True, kw_only=True)
class Week:
    """What was observed of one week. Arrays over users hold hours alone on this kind of GPU."""

    work_by_user: FloatArray
    """Done in the week and not lost."""
    users: npt.NDArray[np.int64]
    """Of each job that was submitted in the week: whose it was; the arrays below are in the same order."""
    waits: FloatArray
    turnarounds: FloatArray
    alone: FloatArray
    """Hours that each job takes alone."""
    num_unended: int
    """Jobs whose wait and turnaround are cut off, two weeks after the week."""
    paid_hours: float
    busy_hours: float
    lost_work: float
    num_interruptions: int


# What users submit: drawn at random, the same for every alternative and policy of a week.


class WorkingTime:
    """The working hours of every week, in which people submit jobs."""

    def __init__(self, group: Group) -> None:
        numbers = sorted(DAYS.index(day) for day in group.working_days)
        self._starts = [24.0 * number + group.working_hours[0] for number in numbers]
        self.hours_per_day = group.working_hours[1] - group.working_hours[0]
        self.hours_per_week = self.hours_per_day * len(numbers)

    def measure(self, time: float) -> float:
        """Return the working hours from the beginning until `time` (calendar)."""
        weeks, hour = divmod(time, HOURS_PER_WEEK)
        num_begun = bisect_right(self._starts, hour)
        if not num_begun:
            return weeks * self.hours_per_week
        of_last = min(hour - self._starts[num_begun - 1], self.hours_per_day)
        return weeks * self.hours_per_week + (num_begun - 1) * self.hours_per_day + of_last

    def locate(self, working: float) -> float:
        """Return the calendar time at which so many working hours have passed; at the end of a day, the next begin."""
        weeks, rest = divmod(working, self.hours_per_week)
        day, hour = divmod(rest, self.hours_per_day)
        # Rounding can make the last moment of a week its `len(starts)`-th day.
        return weeks * HOURS_PER_WEEK + self._starts[min(int(day), len(self._starts) - 1)] + hour


class JobStream:
    """One user's lengths and gaps in one week; drawn in the user's own order, so that policies face the same jobs."""

    def __init__(self, group: Group, seed: tuple[int, ...]) -> None:
        lengths, gaps = np.random.SeedSequence(seed).spawn(2)
        self._lengths, self._gaps = np.random.default_rng(lengths), np.random.default_rng(gaps)
        self._group, self._working_time = group, WorkingTime(group)

    def draw_hours(self) -> float:
        """Return the length of the next job: one of `job_hours` times a factor of mean 1."""
        group = self._group
        hours = group.job_hours[0 if len(group.job_hours) == 1 else int(self._lengths.integers(len(group.job_hours)))]
        if group.spread == "exponential":
            return hours * float(self._lengths.standard_exponential())
        if group.spread == "lognormal":
            assert group.cv is not None  # the scenario checks it
            variance = math.log1p(group.cv**2)
            return hours * math.exp(float(self._lengths.normal(-variance / 2, math.sqrt(variance))))
        return hours

    def draw_submission(self, now: float) -> float:
        """Return the calendar time of the next submission: exponential gaps of working time.

        With `jobs_per_day` that is a Poisson process; with `think_hours`, `now` is the end of the last job.
        """
        group, time = self._group, self._working_time
        mean = group.think_hours or time.hours_per_day / (group.jobs_per_day or math.inf)
        return max(now, time.locate(time.measure(now) + mean * float(self._gaps.standard_exponential())))


@dataclass(slots=True, eq=False)
class Job:
    """One job of one user."""

    number: int
    """In the order of submission."""
    user: int
    submitted_at: float
    work: float
    checkpoint_work: float | None = None
    """Work between two checkpoints. None: nothing is saved."""
    left: float = field(init=False)
    waiting_since: float | None = field(init=False)
    """None while it runs, and after its end."""
    waited: float = 0.0
    """Hours of waiting that are over."""
    ended_at: float | None = None
    admission: int = 0
    """In the order of admissions; of its last one."""

    def __post_init__(self) -> None:
        self.left = self.work
        self.waiting_since = self.submitted_at

    def run(self, now: float) -> None:
        """Count the hours that it waited: it runs from now on."""
        self.waited = self.measure_wait(now)
        self.waiting_since = None

    def interrupt(self, now: float) -> float:
        """Put it back to its last checkpoint, to wait again; return the work that is lost."""
        done = self.work - self.left
        saved = 0.0 if self.checkpoint_work is None else math.floor(done / self.checkpoint_work) * self.checkpoint_work
        self.left = self.work - saved
        self.waiting_since = now
        return done - saved

    def measure_wait(self, now: float) -> float:
        """Return the hours until now in which it was there and did not run."""
        return self.waited + (0.0 if self.waiting_since is None else now - self.waiting_since)


# GPUs: jobs are placed here in the order of their submission, as a Kubernetes scheduler with an autoscaler would.


@dataclass(eq=False)
class Gpu:
    """One GPU and the jobs on it."""

    tenants: list[Job] = field(default_factory=list)
    state: Literal["off", "starting", "up"] = "off"
    advanced_at: float = 0.0
    paid_since: float | None = None
    version: int = 0
    """Counts the changes; what was scheduled before the last one no longer holds."""


class GpuPool:
    """All GPUs of an alternative, with as many jobs on each as there are rates.

    `rates[n - 1]` is the work that each of n tenants gets done in an hour. `rent` None: the GPUs are there all the
    time. `generator` draws the interruptions.
    """

    def __init__(
        self,
        env: simpy.Environment,
        *,
        size: int,
        num_users: int,
        rates: Sequence[float],
        rent: Rent | None = None,
        generator: np.random.Generator | None = None,
    ) -> None:
        self._env, self._rates, self._rent = env, rates, rent
        self._is_elastic = rent is not None and not rent.always_on
        self._generator = generator or np.random.default_rng(0)
        self._gpus = [Gpu() for _ in range(size)]
        self._waiting: list[Job] = []
        self._paid_hours = 0.0
        self.capacity = size * len(rates)
        self.work_by_user = np.zeros(num_users)
        """Work that is done and not lost, in hours alone on such a GPU."""
        self.busy_hours = 0.0
        self.lost_work = 0.0
        self.num_interruptions = 0
        self.on_end: Callable[[Job], None] = lambda job: None
        self.may_start: Callable[[], bool] = lambda: True
        """Whether a job may be started; one that runs goes on."""
        if not self._is_elastic:
            for gpu in self._gpus:
                self._open(gpu)

    def submit(self, job: Job) -> None:
        """Run a job as soon as there is a place for it."""
        self._put(job)
        self.place()

    def evict(self, job: Job) -> None:
        """Stop a job, which leaves the pool; it can be submitted again, and goes on from its last checkpoint."""
        if job in self._waiting:
            self._waiting.remove(job)
            return
        gpu = next(gpu for gpu in self._gpus if job in gpu.tenants)
        self._advance(gpu)
        gpu.tenants.remove(job)
        self._lose(job)
        self._plan(gpu)

    def place(self) -> None:
        """Put waiting jobs where there is room, on the GPU with the fewest; start rented GPUs for the others."""
        while self._waiting and self.may_start():
            running = [gpu for gpu in self._gpus if gpu.state == "up" and len(gpu.tenants) < len(self._rates)]
            if not running:
                num_starting = sum(gpu.state == "starting" for gpu in self._gpus)
                num_wanted = -(-len(self._waiting) // len(self._rates)) - num_starting
                for gpu in [gpu for gpu in self._gpus if gpu.state == "off"][: max(0, num_wanted)]:
                    self._start(gpu)
                return
            job, gpu = self._waiting.pop(0), min(running, key=lambda gpu: len(gpu.tenants))
            self._advance(gpu)
            job.run(self._env.now)
            gpu.tenants.append(job)
            self._plan(gpu)

    def count(self) -> tuple[FloatArray, dict[str, Any]]:
        """Return what was done until now by user, and what else of `Week` is counted until now."""
        for gpu in self._gpus:
            self._advance(gpu)
        counted = ("paid_hours", "busy_hours", "lost_work", "num_interruptions")
        return self.work_by_user.copy(), {name: getattr(self, name) for name in counted}

    @property
    def paid_hours(self) -> float:
        """Hours for which GPUs were up or starting until now, of all together."""
        since = (gpu.paid_since for gpu in self._gpus if gpu.paid_since is not None)
        return self._paid_hours + sum(self._env.now - begun for begun in since)

    def _put(self, job: Job) -> None:
        insort(self._waiting, job, key=lambda waiting: (waiting.submitted_at, waiting.number))

    def _start(self, gpu: Gpu) -> None:
        assert self._rent is not None  # others are always up
        gpu.state, gpu.paid_since = "starting", self._env.now
        self._call_later(gpu, self._rent.start_minutes / 60, lambda: self._open(gpu))

    def _open(self, gpu: Gpu) -> None:
        if gpu.paid_since is None:
            gpu.paid_since = self._env.now
        gpu.state, gpu.advanced_at = "up", self._env.now
        if self._rent is not None and self._rent.interruptions_per_hour:
            # Its own event, not one of `version`: what runs on the GPU does not keep the cloud from taking it.
            hours = float(self._generator.exponential(1 / self._rent.interruptions_per_hour))
            opened = gpu.paid_since
            self._env.timeout(hours).callbacks.append(lambda _: self._interrupt(gpu, opened))
        self._plan(gpu)
        self.place()

    def _close(self, gpu: Gpu) -> None:
        assert gpu.paid_since is not None
        self._paid_hours += self._env.now - gpu.paid_since
        gpu.state, gpu.paid_since = "off", None
        gpu.version += 1

    def _interrupt(self, gpu: Gpu, opened: float) -> None:
        if gpu.paid_since != opened:
            return  # it was given back meanwhile
        self._advance(gpu)
        self.num_interruptions += 1
        jobs, gpu.tenants = gpu.tenants, []
        self._close(gpu)
        for job in jobs:
            self._lose(job)
            self._put(job)
        if not self._is_elastic:
            self._start(gpu)
        self.place()

    def _lose(self, job: Job) -> None:
        lost = job.interrupt(self._env.now)
        self.lost_work += lost
        self.work_by_user[job.user] -= lost

    def _advance(self, gpu: Gpu) -> None:
        hours = self._env.now - gpu.advanced_at
        gpu.advanced_at = self._env.now
        if not gpu.tenants or not hours:
            return
        self.busy_hours += hours
        work = hours * self._rates[len(gpu.tenants) - 1]
        for job in gpu.tenants:
            done = min(work, job.left)
            job.left -= done
            self.work_by_user[job.user] += done

    def _plan(self, gpu: Gpu) -> None:
        """Schedule what happens to a GPU next, after any change of its tenants."""
        if gpu.tenants:
            work = min(job.left for job in gpu.tenants)
            self._call_later(gpu, work / self._rates[len(gpu.tenants) - 1], lambda: self._finish(gpu))
        elif self._rent is not None and self._is_elastic:
            self._call_later(gpu, self._rent.idle_minutes / 60, lambda: self._close(gpu))
        else:
            gpu.version += 1

    def _finish(self, gpu: Gpu) -> None:
        self._advance(gpu)
        ended = [job for job in gpu.tenants if job.left <= SMALLEST_WORK]
        gpu.tenants = [job for job in gpu.tenants if job.left > SMALLEST_WORK]
        self._plan(gpu)
        for job in ended:
            job.ended_at = self._env.now
        self.place()
        for job in ended:
            self.on_end(job)

    def _call_later(self, gpu: Gpu, hours: float, act: Callable[[], None]) -> None:
        """Call `act` after some hours, unless the GPU has changed until then."""
        gpu.version += 1
        version = gpu.version

        def act_if_unchanged(_: simpy.Event) -> None:
            if gpu.version == version:
                act()

        self._env.timeout(max(0.0, hours)).callbacks.append(act_if_unchanged)


# Fair share is as in Kueue 0.19.2 with fair sharing enabled, its default preemption strategies and feature gates, and
# ClusterQueues with `reclaimWithinCohort: Any` and `withinClusterQueue: Never`, for jobs of one GPU and equal priority:
# https://github.com/kubernetes-sigs/kueue/tree/v0.19.2, pkg/scheduler/{scheduler,fair_sharing_iterator}.go,
# pkg/scheduler/preemption, pkg/cache/scheduler/fair_sharing.go. The words (share, nominal quota, cycle) are Kueue's.


@dataclass(kw_only=True)
class Queue:
    """A ClusterQueue with one LocalQueue: the jobs of one user."""

    nominal: int
    """GPUs that it is guaranteed."""
    weight: float
    running: list[Job] = field(default_factory=list)
    """In the order of admission."""
    pending: list[tuple[float, int, Job]] = field(default_factory=list)
    """A heap by the time of submission."""

    def push(self, job: Job) -> None:
        """Queue a job, for the first or another time; its place is that of its submission."""
        heapq.heappush(self.pending, (job.submitted_at, job.number, job))

    def pop(self) -> Job:
        """Take the first job out."""
        return heapq.heappop(self.pending)[2]

    def compute_share(self, total: int, more: int = 0) -> float:
        """Return Kueue's share value with `more` jobs: what is borrowed of all that can be lent, by weight; from 0."""
        return max(0, len(self.running) + more - self.nominal) / total / self.weight


Entries = list[tuple[Queue, Job]]


def run_cycle(queues: Sequence[Queue], total: int) -> tuple[Entries, Entries]:
    """Return which heads are admitted to `total` GPUs, and which jobs are preempted for others.

    Every queue nominates its head. They are taken by the share that their queue would have, then by the time of
    submission; a head that finds no free GPU may name a job to preempt, and is admitted in a later cycle. The queues
    are not changed.

    Cycles that preempt come to an end: the larger of the two shares that a preemption changes becomes smaller.
    """
    free = total - sum(len(queue.running) for queue in queues)
    nominated = [(queue, queue.pending[0][2]) for queue in queues if queue.pending]
    nominated.sort(key=lambda entry: (entry[0].compute_share(total, 1), entry[1].submitted_at, entry[1].number))
    has_room = free > 0  # a head is nominated to fit, or to preempt, by what was free when the cycle began
    admitted: Entries = []
    preempted: Entries = []
    for queue, head in nominated:
        if has_room and free > 0:
            admitted.append((queue, head))
            free -= 1
        elif not has_room:
            found = find_target(queue, queues, total)
            # Two heads of a cycle do not preempt the same job: the later one is skipped.
            if found is not None and all(job is not found[1] for _, job in preempted):
                preempted.append(found)
    return admitted, preempted


def find_target(queue: Queue, queues: Sequence[Queue], total: int) -> tuple[Queue, Job] | None:
    """Return the job that is preempted so that the head of `queue` fits, with its queue, or None.

    Each queue that borrows offers the job that was admitted last. The one with the largest share is asked first; of
    equal ones that whose job was admitted last. First by the strategy LessThanOrEqualToFinalShare (the share of `queue`
    with the head is at most that of the other without its job), then by LessThanInitialShare (it is less than that of
    the other as it is).
    """
    share = queue.compute_share(total, 1)
    borrowing = [other for other in queues if other is not queue and len(other.running) > other.nominal]
    borrowing.sort(key=lambda other: (other.compute_share(total), other.running[-1].admission), reverse=True)
    by_final_share = (other for other in borrowing if share <= other.compute_share(total, -1))
    by_initial_share = (other for other in borrowing if share < other.compute_share(total))
    found = next(by_final_share, None) or next(by_initial_share, None)
    return None if found is None else (found, found.running[-1])


class FairShare:
    """Admits and preempts as Kueue does, with a queue per user."""

    def __init__(self, pool: GpuPool, queues: Sequence[Queue]) -> None:
        self._pool, self._queues = pool, queues
        self._num_admissions = 0
        self.num_preempted = 0

    def submit(self, job: Job) -> None:
        """Take a job that was just submitted."""
        self._queues[job.user].push(job)
        self._schedule()

    def end(self, job: Job) -> None:
        self._queues[job.user].running.remove(job)
        self._schedule()

    def _schedule(self) -> None:
        while True:
            admitted, preempted = run_cycle(self._queues, self._pool.capacity)
            for queue, job in preempted:
                queue.running.remove(job)
                queue.push(job)
                self._pool.evict(job)
                self.num_preempted += 1
            for queue, job in admitted:
                queue.pop()
                queue.running.append(job)
                self._num_admissions += 1
                job.admission = self._num_admissions
                self._pool.submit(job)
            if not admitted and not preempted:
                return


def simulate_week(choice: Choice, number: int) -> Week:
    """Return what was observed in the `number`-th week; equal choices and numbers give equal weeks.

    Users' lengths and gaps depend on the seed, the week and the user alone, so alternatives and policies face the same.
    """
    env, users, rent = simpy.Environment(), choice.users, choice.alternative.rent
    pool = GpuPool(
        env,
        size=choice.alternative.gpus,
        num_users=len(users),
        rates=choice.rates,
        rent=rent,
        generator=np.random.default_rng((choice.seed, number, INTERRUPTION_STREAM)),
    )
    policy: GpuPool | FairShare = pool  # a pool takes who comes first
    if choice.policy == "fair-share":
        policy = FairShare(pool, [Queue(nominal=group.quota, weight=group.weight) for _, _, group in users])
    jobs: list[Job] = []
    ends: dict[int, simpy.Event] = {}
    """By number of a job, the event that its user waits for."""

    def end(job: Job) -> None:
        if isinstance(policy, FairShare):
            policy.end(job)
        ends.pop(job.number).succeed()

    def submit(user: int, group: Group, stream: JobStream) -> simpy.events.ProcessGenerator:
        """Submit the jobs of a user, who with `think_hours` waits for each one's end before thinking of the next."""
        saved = None if group.checkpoint_hours is None else group.checkpoint_hours / choice.speed
        while True:
            yield env.timeout(stream.draw_submission(env.now) - env.now)
            work = stream.draw_hours() / choice.speed
            job = Job(number=len(jobs), user=user, submitted_at=env.now, work=work, checkpoint_work=saved)
            jobs.append(job)
            ended = ends[job.number] = env.event()
            policy.submit(job)
            if group.think_hours is not None:
                yield ended

    pool.on_end = end
    env.process(_turn_weeks(env, pool, choice))
    for user, (place, index, group) in enumerate(users):
        env.process(submit(user, group, JobStream(group, (choice.seed, number, place, index))))
    env.run(until=choice.warm_up_weeks * HOURS_PER_WEEK)
    work_before, before = pool.count()
    first = len(jobs)
    env.run(until=(choice.warm_up_weeks + 1) * HOURS_PER_WEEK)
    work, after = pool.count()
    measured = jobs[first:]
    for _ in range(DRAIN_DAYS):
        if any(job.ended_at is None for job in measured):
            env.run(until=env.now + 24.0)
    counted = {name: after[name] - before[name] for name in after}
    return Week(work_by_user=work - work_before, **_observe(measured, env.now), **counted)


def _observe(jobs: Sequence[Job], now: float) -> dict[str, Any]:
    """Return the parts of `Week` that are of jobs; those that have not ended count until now."""
    turnarounds = [(now if job.ended_at is None else job.ended_at) - job.submitted_at for job in jobs]
    return {
        "users": np.array([job.user for job in jobs], dtype=np.int64),
        "waits": np.array([job.measure_wait(now) for job in jobs], dtype=np.float64),
        "turnarounds": np.array(turnarounds, dtype=np.float64),
        "alone": np.array([job.work for job in jobs], dtype=np.float64),
        "num_unended": sum(job.ended_at is None for job in jobs),
    }


def _turn_weeks(env: simpy.Environment, pool: GpuPool, choice: Choice) -> simpy.events.ProcessGenerator:
    """Let jobs start while the rent of the week is below the budget."""
    paid_before = 0.0
    if choice.budget_per_week is not None and choice.price_per_hour:
        hours = choice.budget_per_week / choice.price_per_hour
        pool.may_start = lambda: pool.paid_hours - paid_before < hours
    while True:
        yield env.timeout(HOURS_PER_WEEK)
        paid_before = pool.paid_hours
        pool.place()


def simulate_weeks(choice: Choice, num_weeks: int) -> list[Week]:
    """Return independent weeks, each simulated from its own beginning."""
    return [simulate_week(choice, number) for number in range(num_weeks)]
