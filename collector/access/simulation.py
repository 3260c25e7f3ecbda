"""Simulate weeks of a lab: users submit jobs, a policy admits them to GPUs, which are shared, rented and interrupted.

Times are hours of the calendar from a Monday, 00:00; work is hours alone on the GPU that it runs on.
"""

import math
from bisect import insort
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Literal

import numpy as np
import numpy.typing as npt
import pandas as pd
import simpy

from collector.access.scenario import DAYS, HOURS_PER_WEEK, Choice, Group, Rent

FloatArray = npt.NDArray[np.float64]
Process = simpy.events.ProcessGenerator

DRAIN_DAYS = 14
"""How long jobs of the measured week are followed beyond it; what has not ended then counts with the hours so far."""
INTERRUPTION_STREAM = 2**20
"""Sets the random numbers of interruptions apart from those of users, whose third number is that of their group."""
SMALLEST_HOURS = 1e-9
"""Less is the rounding error of a job's progress or of its wait, and counts as none."""


@dataclass(slots=True, eq=False, kw_only=True)
class Job:
    """One job of one user. Jobs wait in the order of their numbers, which is that of submission."""

    number: int
    user: int
    submitted_at: float
    work: float
    checkpoint_work: float = math.inf
    """Work between two checkpoints; infinite: nothing is saved."""
    ended: simpy.Event
    ended_at: float = math.nan
    done: float = 0.0
    """Work that is done and not lost."""
    hours_on_gpu: float = 0.0
    admission: int = 0
    """Of fair share: in the order of admissions; of its last one."""

    def __lt__(self, other: "Job") -> bool:
        return self.number < other.number


@dataclass(eq=False)
class Gpu:
    """One GPU and the jobs on it."""

    tenants: list[Job] = field(default_factory=list)
    state: Literal["off", "starting", "up"] = "off"
    advanced_at: float = 0.0
    process: simpy.Process | None = None


class GpuPool:
    """All GPUs of an alternative; jobs are placed in the order of submission, as Kubernetes with an autoscaler would.

    `generator` draws the interruptions.
    """

    def __init__(self, env: simpy.Environment, choice: Choice, generator: np.random.Generator) -> None:
        self._env, self._generator = env, generator
        self._rates, self._most_paid_hours = choice.rates, choice.most_paid_hours
        self._rent = choice.alternative.rent or Rent(always_on=True)
        self._gpus = [Gpu() for _ in range(choice.alternative.gpus)]
        self._waiting: list[Job] = []
        self._counts = [0.0] * (2 + sum(group.number for group in choice.scenario.users.values()))
        self._paid_before = 0.0
        if self._rent.always_on:
            for gpu in self._gpus:
                self._start(gpu, 0.0)
        if self._most_paid_hours < math.inf:
            env.process(self._turn_weeks())

    def submit(self, job: Job) -> None:
        insort(self._waiting, job)
        self._place()

    def evict(self, job: Job) -> None:
        """Stop a job, which can be submitted again, and goes on from its last checkpoint."""
        if job in self._waiting:
            self._waiting.remove(job)
            return
        gpu = next(gpu for gpu in self._gpus if job in gpu.tenants)
        self._advance(gpu)
        gpu.tenants.remove(job)
        self._set_back(job)
        self._wake(gpu)

    def count(self) -> FloatArray:
        """Return the hours until now in which GPUs were paid for, those in which they had a job, and work by user."""
        for gpu in self._gpus:
            self._advance(gpu)
        return np.array(self._counts)

    def _turn_weeks(self) -> Process:
        while True:
            yield self._env.timeout(HOURS_PER_WEEK)
            self._paid_before = self.count()[0]
            self._place()

    def _place(self) -> None:
        """Put waiting jobs where there is room, on the GPU with the fewest; start rented GPUs for the others."""
        while self._waiting and self.count()[0] - self._paid_before < self._most_paid_hours:
            has_room = [gpu for gpu in self._gpus if gpu.state == "up" and len(gpu.tenants) < len(self._rates)]
            if not has_room:
                num_starting = sum(gpu.state == "starting" for gpu in self._gpus)
                num_wanted = math.ceil(len(self._waiting) / len(self._rates)) - num_starting
                for gpu in [gpu for gpu in self._gpus if gpu.state == "off"][: max(0, num_wanted)]:
                    self._start(gpu, self._rent.start_minutes / 60)
                return
            gpu = min(has_room, key=lambda gpu: len(gpu.tenants))
            self._advance(gpu)
            gpu.tenants.append(self._waiting.pop(0))
            self._wake(gpu)

    def _start(self, gpu: Gpu, hours: float) -> None:
        gpu.state, gpu.advanced_at = "starting", self._env.now
        gpu.process = self._env.process(self._operate(gpu, hours))

    def _wake(self, gpu: Gpu) -> None:
        """Let a GPU see that others have changed its tenants."""
        if gpu.process is not None and gpu.process is not self._env.active_process:
            gpu.process.interrupt()

    def _operate(self, gpu: Gpu, start_hours: float) -> Process:
        """Run the tenants of a GPU from its start until it is given back or the cloud takes it."""
        env, rent = self._env, self._rent
        yield env.timeout(start_hours)
        self._advance(gpu)
        gpu.state, taken_at = "up", math.inf
        if rent.interruptions_per_hour:
            taken_at = env.now + float(self._generator.exponential(1 / rent.interruptions_per_hour))
        is_over = False
        while not is_over:
            self._place()
            hours = math.inf if rent.always_on else rent.idle_minutes / 60
            if gpu.tenants:
                hours = min(job.work - job.done for job in gpu.tenants) / self._rates[len(gpu.tenants) - 1]
            is_over = taken_at - env.now <= hours or not gpu.tenants
            hours = max(0.0, min(hours, taken_at - env.now))
            try:
                yield env.timeout(hours) if hours < math.inf else env.event()
            except simpy.Interrupt:
                is_over = False
                continue
            self._advance(gpu)
            for job in [job for job in gpu.tenants if job.work - job.done <= SMALLEST_HOURS]:
                gpu.tenants.remove(job)
                job.ended_at = env.now
                job.ended.succeed()
        gpu.state = "off"
        for job in gpu.tenants:
            self._set_back(job)
            insort(self._waiting, job)
        gpu.tenants = []
        if rent.always_on:
            self._start(gpu, rent.start_minutes / 60)
        self._place()

    def _set_back(self, job: Job) -> None:
        """Put a job that was stopped back to its last checkpoint."""
        lost = job.done % job.checkpoint_work
        job.done -= lost
        self._counts[2 + job.user] -= lost

    def _advance(self, gpu: Gpu) -> None:
        hours, gpu.advanced_at = self._env.now - gpu.advanced_at, self._env.now
        self._counts[0] += hours if gpu.state != "off" else 0.0
        self._counts[1] += hours if gpu.tenants else 0.0
        for job in gpu.tenants:
            done = min(hours * self._rates[len(gpu.tenants) - 1], job.work - job.done)
            job.done += done
            job.hours_on_gpu += hours
            self._counts[2 + job.user] += done


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


class FairPool(GpuPool):
    """GPUs to which jobs are admitted, and from which they are preempted, as Kueue does it, with a queue per user."""

    def __init__(self, env: simpy.Environment, choice: Choice, generator: np.random.Generator) -> None:
        super().__init__(env, choice, generator)
        groups = choice.scenario.users.values()
        self.queues = [Queue(nominal=one.quota, weight=one.weight) for one in groups for _ in range(one.number)]
        self.num_admissions = 0

    def submit(self, job: Job) -> None:
        job.ended.callbacks.append(lambda _: self._end(job))
        insort(self.queues[job.user].pending, job)
        self._schedule()

    def _end(self, job: Job) -> None:
        self.queues[job.user].running.remove(job)
        self._schedule()

    def _schedule(self) -> None:
        admitted = preempted = None
        while admitted is None or admitted or preempted:
            admitted, preempted = run_cycle(self.queues, len(self._gpus))
            for queue, job in preempted:
                queue.running.remove(job)
                insort(queue.pending, job)
                self.evict(job)
            for queue, job in admitted:
                queue.pending.remove(job)
                queue.running.append(job)
                self.num_admissions += 1
                job.admission = self.num_admissions
                super().submit(job)


def add_working_time(group: Group, time: float, hours: float) -> float:
    """Return the calendar time at which so many working hours have passed; at the end of a day, the next begin."""
    day = math.floor(time / 24)
    while True:
        if DAYS[day % 7] in group.working_days:
            begin = max(time, 24 * day + group.working_hours[0])
            left = max(0.0, 24 * day + group.working_hours[1] - begin)
            if hours < left:
                return begin + hours
            hours -= left
        day += 1


def simulate_week(choice: Choice, number: int) -> tuple[pd.DataFrame, FloatArray]:
    """Return the jobs that were submitted in the `number`-th week, and what the GPUs did in it, as `GpuPool.count`.

    Of each job: whose (user), hours alone on this kind of GPU (alone), there without running (wait) and from submission
    to end (turnaround), both until now where it has not ended two weeks later (has_ended).

    Users' lengths and gaps are drawn in the user's own order and depend on the seed, the week and the user alone, so
    alternatives and policies face the same jobs. With `jobs_per_day` submissions are a Poisson process of working time;
    with `think_hours` the gap begins at the end of the last job.
    """
    env, scenario, jobs = simpy.Environment(), choice.scenario, list[Job]()
    make_pool = FairPool if choice.policy == "fair-share" else GpuPool
    pool = make_pool(env, choice, np.random.default_rng((scenario.seed, number, INTERRUPTION_STREAM)))

    def use_gpus(user: int, group: Group, seed: tuple[int, ...]) -> Process:
        lengths, gaps = (np.random.default_rng(stream) for stream in np.random.SeedSequence(seed).spawn(2))
        mean_gap = group.think_hours or group.hours_per_day / (group.jobs_per_day or math.inf)
        while True:
            submission = add_working_time(group, env.now, mean_gap * gaps.standard_exponential())
            yield env.timeout(submission - env.now)
            hours = group.job_hours[0 if len(group.job_hours) == 1 else int(lengths.integers(len(group.job_hours)))]
            if group.spread == "exponential":
                hours *= lengths.standard_exponential()
            job = Job(number=len(jobs), user=user, submitted_at=env.now, work=hours / choice.speed, ended=env.event())
            job.checkpoint_work = (group.checkpoint_hours or math.inf) / choice.speed
            jobs.append(job)
            pool.submit(job)
            if group.think_hours is not None:
                yield job.ended

    users = (
        (place, group, index) for place, group in enumerate(scenario.users.values()) for index in range(group.number)
    )
    for user, (place, group, index) in enumerate(users):
        env.process(use_gpus(user, group, (scenario.seed, number, place, index)))
    env.run(until=scenario.warm_up_weeks * HOURS_PER_WEEK)
    before, first = pool.count(), len(jobs)
    env.run(until=(scenario.warm_up_weeks + 1) * HOURS_PER_WEEK)
    counted, measured = pool.count() - before, jobs[first:]
    for _ in range(DRAIN_DAYS):
        if not all(job.ended.triggered for job in measured):
            env.run(until=env.now + 24.0)
    pool.count()
    columns = ["user", "alone", "submitted_at", "ended_at", "hours_on_gpu"]
    rows = [(job.user, job.work, job.submitted_at, job.ended_at, job.hours_on_gpu) for job in measured]
    observed = pd.DataFrame(rows, columns=columns, dtype=np.float64).astype({"user": np.int64})
    observed["has_ended"] = observed["ended_at"].notna()
    observed["turnaround"] = observed["ended_at"].fillna(env.now) - observed["submitted_at"]
    waits = observed["turnaround"] - observed["hours_on_gpu"]
    observed["wait"] = waits.where(waits > SMALLEST_HOURS, 0.0)
    return observed, counted
