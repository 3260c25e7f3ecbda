"""Simulate weeks of a lab: users submit jobs, a policy admits them to GPUs, which are shared, rented and interrupted.

Times are hours of the calendar from a Monday, 00:00; work is hours alone on the GPU that it runs on.
"""

import math
from bisect import insort
from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt
import pandas as pd
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
    def most_paid_hours(self) -> float:
        """How many hours of rent the budget of a week pays."""
        if self.budget_per_week is None or not self.price_per_hour:
            return math.inf
        return self.budget_per_week / self.price_per_hour

    @property
    def users(self) -> list[tuple[int, int, Group]]:
        """Of each user the group's place, his own in it, and the group."""
        return [(place, index, group) for place, group in enumerate(self.groups) for index in range(group.number)]


@dataclass(frozen=True, kw_only=True)
class Week:
    """What was observed of one week."""

    jobs: pd.DataFrame
    """Those that were submitted in the week: whose (user), hours alone on this kind of GPU (alone), of waiting (wait)
    and from submission to end (turnaround), both until now where it has not ended two weeks later (has_ended)."""
    work_by_user: FloatArray
    """Hours alone on this kind of GPU, done in the week and not lost."""
    paid_hours: float
    busy_hours: float


class WorkingTime:
    """The working hours of every week, in which people submit jobs."""

    def __init__(self, group: Group) -> None:
        self._starts = [24.0 * DAYS.index(day) + group.working_hours[0] for day in DAYS if day in group.working_days]
        self.hours_per_day = group.working_hours[1] - group.working_hours[0]
        self.hours_per_week = self.hours_per_day * len(self._starts)

    def measure(self, time: float) -> float:
        """Return the working hours from the beginning until `time` (calendar)."""
        weeks, hour = divmod(time, HOURS_PER_WEEK)
        of_week = sum(min(max(hour - start, 0.0), self.hours_per_day) for start in self._starts)
        return weeks * self.hours_per_week + of_week

    def locate(self, working: float) -> float:
        """Return the calendar time at which so many working hours have passed; at the end of a day, the next begin."""
        weeks, rest = divmod(working, self.hours_per_week)
        day, hour = divmod(rest, self.hours_per_day)
        # Rounding can make the last moment of a week its `len(starts)`-th day.
        return weeks * HOURS_PER_WEEK + self._starts[min(int(day), len(self._starts) - 1)] + hour


class Job:
    """One job of one user, submitted now; work is in hours alone on the GPU.

    `number` is in the order of submission, by which jobs wait; `checkpoint_work` lies between two checkpoints.
    """

    def __init__(
        self, env: simpy.Environment, *, number: int, user: int, work: float, checkpoint_work: float = math.inf
    ) -> None:
        self._env, self.number, self.user, self.work, self._checkpoint_work = env, number, user, work, checkpoint_work
        self.submitted_at = env.now
        self.left = work
        self.done = env.event()
        self.ended_at: float | None = None
        self.admission = 0
        """Of fair share: the number of its last admission."""
        self._waited = 0.0
        self._waiting_since: float | None = env.now

    def run(self) -> None:
        """Note that it waits no longer."""
        self._waited, self._waiting_since = self.measure_wait(), None

    def end(self) -> None:
        self.ended_at = self._env.now
        self.done.succeed()

    def set_back(self) -> float:
        """Put it back to its last checkpoint, to wait again; return the work that is lost."""
        lost = (self.work - self.left) % self._checkpoint_work
        self.left, self._waiting_since = self.left + lost, self._env.now
        return lost

    def measure_wait(self) -> float:
        """Return the hours until now in which it was there and did not run."""
        return self._waited + (0.0 if self._waiting_since is None else self._env.now - self._waiting_since)

    def observe(self) -> tuple[int, float, float, float, bool]:
        """Return its row in `Week.jobs`."""
        turnaround = (self._env.now if self.ended_at is None else self.ended_at) - self.submitted_at
        return self.user, self.work, self.measure_wait(), turnaround, self.ended_at is not None


@dataclass(eq=False)
class Gpu:
    """One GPU and the jobs on it."""

    tenants: list[Job] = field(default_factory=list)
    is_up: bool = False
    paid_since: float | None = None
    """None: it is neither up nor starting."""
    advanced_at: float = 0.0
    process: simpy.Process | None = None


class GpuPool:
    """All GPUs of an alternative; jobs are placed in the order of submission, as Kubernetes with an autoscaler would.

    `rates[n - 1]` is the work that each of n tenants of a GPU gets done in an hour. `rent` None: the GPUs are there all
    the time. `generator` draws the interruptions. No job is started once a week's rent has come to `most_paid_hours`.
    """

    def __init__(
        self,
        env: simpy.Environment,
        *,
        size: int,
        num_users: int,
        rates: Sequence[float] = (1.0,),
        rent: Rent | None = None,
        generator: np.random.Generator | None = None,
        most_paid_hours: float = math.inf,
    ) -> None:
        self._env, self._rates, self._most_paid_hours = env, rates, most_paid_hours
        self._rent = rent or Rent(always_on=True)
        self._generator = generator or np.random.default_rng(0)
        self._gpus = [Gpu() for _ in range(size)]
        self._waiting: list[Job] = []
        self._paid_hours = self._paid_before = self._busy_hours = 0.0
        self._work_by_user = np.zeros(num_users)
        self.size = size
        if self._rent.always_on:
            for gpu in self._gpus:
                self._start(gpu, 0.0)
        if most_paid_hours < math.inf:
            env.process(self._turn_weeks())

    def submit(self, job: Job) -> None:
        """Run a job as soon as there is a place for it."""
        insort(self._waiting, job, key=lambda waiting: waiting.number)
        self._place()

    def evict(self, job: Job) -> None:
        """Stop a job, which leaves the pool; it can be submitted again, and goes on from its last checkpoint."""
        if job in self._waiting:
            self._waiting.remove(job)
            return
        gpu = next(gpu for gpu in self._gpus if job in gpu.tenants)
        self._advance(gpu)
        gpu.tenants.remove(job)
        self._work_by_user[job.user] -= job.set_back()
        self._wake(gpu)

    def count(self) -> FloatArray:
        """Return the hours until now that were paid for, those of GPUs with a job, and the work of each user."""
        for gpu in self._gpus:
            self._advance(gpu)
        return np.array([self._measure_paid(), self._busy_hours, *self._work_by_user])

    def _measure_paid(self) -> float:
        """Return for how many hours GPUs were up or starting until now, all together."""
        since = (gpu.paid_since for gpu in self._gpus if gpu.paid_since is not None)
        return self._paid_hours + sum(self._env.now - begun for begun in since)

    def _turn_weeks(self) -> simpy.events.ProcessGenerator:
        while True:
            yield self._env.timeout(HOURS_PER_WEEK)
            self._paid_before = self._measure_paid()
            self._place()

    def _place(self) -> None:
        """Put waiting jobs where there is room, on the GPU with the fewest; start rented GPUs for the others."""
        while self._waiting and self._measure_paid() - self._paid_before < self._most_paid_hours:
            open_gpus = [gpu for gpu in self._gpus if gpu.is_up and len(gpu.tenants) < len(self._rates)]
            if not open_gpus:
                num_starting = sum(gpu.paid_since is not None and not gpu.is_up for gpu in self._gpus)
                num_wanted = -(-len(self._waiting) // len(self._rates)) - num_starting
                for gpu in [gpu for gpu in self._gpus if gpu.paid_since is None][: max(0, num_wanted)]:
                    self._start(gpu, self._rent.start_minutes / 60)
                return
            job, gpu = self._waiting.pop(0), min(open_gpus, key=lambda gpu: len(gpu.tenants))
            self._advance(gpu)
            job.run()
            gpu.tenants.append(job)
            self._wake(gpu)

    def _start(self, gpu: Gpu, hours: float) -> None:
        gpu.paid_since = self._env.now
        gpu.process = self._env.process(self._operate(gpu, hours))

    def _wake(self, gpu: Gpu) -> None:
        """Let a GPU see that others have changed its tenants."""
        assert gpu.process is not None
        if gpu.process is not self._env.active_process:
            gpu.process.interrupt()

    def _operate(self, gpu: Gpu, start_hours: float) -> simpy.events.ProcessGenerator:
        """Run the tenants of a GPU from its start until it is given back or the cloud takes it."""
        env, rent = self._env, self._rent
        yield env.timeout(start_hours)
        gpu.is_up, gpu.advanced_at, taken_at = True, env.now, math.inf
        if rent.interruptions_per_hour:
            taken_at = env.now + float(self._generator.exponential(1 / rent.interruptions_per_hour))
        is_over = is_taken = False
        while not is_over:
            self._place()
            hours = math.inf if rent.always_on else rent.idle_minutes / 60
            if gpu.tenants:
                hours = min(job.left for job in gpu.tenants) / self._rates[len(gpu.tenants) - 1]
            is_taken = taken_at - env.now <= hours
            try:
                yield env.timeout(min(hours, taken_at - env.now)) if min(hours, taken_at) < math.inf else env.event()
            except simpy.Interrupt:
                continue
            is_over = is_taken or not gpu.tenants
            self._advance(gpu)
            ended = [job for job in gpu.tenants if job.left <= SMALLEST_WORK]
            for job in ended:
                gpu.tenants.remove(job)
                job.end()
        assert gpu.paid_since is not None
        self._paid_hours += env.now - gpu.paid_since
        gpu.is_up, gpu.paid_since = False, None
        for job in gpu.tenants:
            self._work_by_user[job.user] -= job.set_back()
            insort(self._waiting, job, key=lambda waiting: waiting.number)
        gpu.tenants = []
        if rent.always_on:
            self._start(gpu, rent.start_minutes / 60)
        self._place()

    def _advance(self, gpu: Gpu) -> None:
        hours = self._env.now - gpu.advanced_at
        gpu.advanced_at = self._env.now
        if gpu.tenants:
            self._busy_hours += hours
        for job in gpu.tenants:
            done = min(hours * self._rates[len(gpu.tenants) - 1], job.left)
            job.left -= done
            self._work_by_user[job.user] += done


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
    pending: list[Job] = field(default_factory=list)
    """In the order of submission."""

    def push(self, job: Job) -> None:
        """Queue a job, for the first or another time; its place is that of its submission."""
        insort(self.pending, job, key=lambda pending: pending.number)

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
    nominated = [(queue, queue.pending[0]) for queue in queues if queue.pending]
    nominated.sort(key=lambda entry: (entry[0].compute_share(total, 1), entry[1].number))
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
    """Admits jobs to a pool and preempts them as Kueue does, with a queue per user."""

    def __init__(self, pool: GpuPool, queues: Sequence[Queue]) -> None:
        self._pool, self._queues = pool, queues
        self._num_admissions = 0
        self.num_preempted = 0

    def submit(self, job: Job) -> None:
        """Take a job that was just submitted."""
        queue = self._queues[job.user]

        def end(_: simpy.Event) -> None:
            queue.running.remove(job)
            self._schedule()

        job.done.callbacks.append(end)
        queue.push(job)
        self._schedule()

    def _schedule(self) -> None:
        while True:
            admitted, preempted = run_cycle(self._queues, self._pool.size)
            for queue, job in preempted:
                queue.running.remove(job)
                queue.push(job)
                self._pool.evict(job)
                self.num_preempted += 1
            for queue, job in admitted:
                queue.pending.remove(job)
                queue.running.append(job)
                self._num_admissions += 1
                job.admission = self._num_admissions
                self._pool.submit(job)
            if not admitted and not preempted:
                return


def use_gpus(
    env: simpy.Environment,
    policy: GpuPool | FairShare,
    jobs: list[Job],
    *,
    user: int,
    group: Group,
    speed: float,
    seed: tuple[int, ...],
) -> simpy.events.ProcessGenerator:
    """Submit the jobs of one user, and append them to `jobs`.

    Lengths and gaps are drawn in the user's own order, so that all policies face the same jobs. With `jobs_per_day`
    submissions are a Poisson process of working time; with `think_hours` the gap begins at the end of the last job.
    """
    lengths, gaps = (np.random.default_rng(stream) for stream in np.random.SeedSequence(seed).spawn(2))
    time = WorkingTime(group)
    mean_gap = group.think_hours or time.hours_per_day / (group.jobs_per_day or math.inf)
    while True:
        submission = time.locate(time.measure(env.now) + mean_gap * gaps.standard_exponential())
        yield env.timeout(max(0.0, submission - env.now))
        hours = group.job_hours[0 if len(group.job_hours) == 1 else int(lengths.integers(len(group.job_hours)))]
        if group.spread == "exponential":
            hours *= lengths.standard_exponential()
        checkpoint_work = (group.checkpoint_hours or math.inf) / speed
        job = Job(env, number=len(jobs), user=user, work=hours / speed, checkpoint_work=checkpoint_work)
        jobs.append(job)
        policy.submit(job)
        if group.think_hours is not None:
            yield job.done


def simulate_week(choice: Choice, number: int) -> Week:
    """Return what was observed in the `number`-th week; equal choices and numbers give equal weeks.

    Users' lengths and gaps depend on the seed, the week and the user alone, so alternatives and policies face the same.
    """
    env, users, jobs = simpy.Environment(), choice.users, list[Job]()
    pool = GpuPool(
        env,
        size=choice.alternative.gpus,
        num_users=len(users),
        rates=choice.rates,
        rent=choice.alternative.rent,
        generator=np.random.default_rng((choice.seed, number, INTERRUPTION_STREAM)),
        most_paid_hours=choice.most_paid_hours,
    )
    policy: GpuPool | FairShare = pool  # a pool takes who comes first
    if choice.policy == "fair-share":
        policy = FairShare(pool, [Queue(nominal=group.quota, weight=group.weight) for _, _, group in users])
    for user, (place, index, group) in enumerate(users):
        seed = (choice.seed, number, place, index)
        env.process(use_gpus(env, policy, jobs, user=user, group=group, speed=choice.speed, seed=seed))
    env.run(until=choice.warm_up_weeks * HOURS_PER_WEEK)
    before, first = pool.count(), len(jobs)
    env.run(until=(choice.warm_up_weeks + 1) * HOURS_PER_WEEK)
    counted, measured = pool.count() - before, jobs[first:]
    for _ in range(DRAIN_DAYS):
        if any(job.ended_at is None for job in measured):
            env.run(until=env.now + 24.0)
    observed = pd.DataFrame(
        [job.observe() for job in measured], columns=["user", "alone", "wait", "turnaround", "has_ended"]
    )
    return Week(jobs=observed, paid_hours=counted[0], busy_hours=counted[1], work_by_user=counted[2:])


def simulate_weeks(choice: Choice, num_weeks: int) -> list[Week]:
    """Return independent weeks, each simulated from its own beginning."""
    return [simulate_week(choice, number) for number in range(num_weeks)]
