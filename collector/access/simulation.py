"""Simulate weeks of a lab: users submit jobs, a policy admits them to GPUs, which are shared, rented and interrupted.

Times are hours of the calendar from a Monday, 00:00; work is hours alone on the GPU that it runs on.
"""

import heapq
from bisect import insort
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Literal

import numpy as np
import numpy.typing as npt
import simpy

from collector.access.jobs import HOURS_PER_WEEK, Job, JobStream
from collector.access.scenario import Group, Policy

FloatArray = npt.NDArray[np.float64]

DRAIN_WEEKS = 2
"""How long jobs of the measured week are followed beyond it; what has not ended then counts with the hours so far."""
INTERRUPTION_STREAM = 2**20
"""Sets the random numbers of interruptions apart from those of users, whose third number is that of their group."""
SMALLEST_WORK = 1e-9
"""Hours; less is the rounding error of a job's progress, and counts as done."""


@dataclass(frozen=True, kw_only=True)
class Renting:
    """How GPUs come and go that are paid by the hour."""

    start_hours: float
    idle_hours: float
    interruptions_per_hour: float = 0.0
    is_always_on: bool = False


@dataclass(frozen=True, kw_only=True)
class Setting:
    """What is simulated: users, GPUs and a policy. Figures of one alternative, with everything looked up."""

    groups: tuple[Group, ...]
    policy: Policy
    num_gpus: int
    rates: tuple[float, ...]
    """The work that each of 1, 2, ... tenants gets done in an hour, in hours alone: one over the slowdown."""
    speed: float
    """Of this kind of GPU over that of the one that `job_hours` are of."""
    renting: Renting | None
    price_per_hour: float = 0.0
    """Of a rented GPU."""
    budget_per_week: float | None = None
    """No job is started once the rent of the week is so much."""
    warm_up_weeks: int
    seed: int

    @property
    def users(self) -> list[tuple[int, int, Group]]:
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
    """Jobs whose wait and turnaround are cut off, DRAIN_WEEKS after the week."""
    paid_hours: float
    busy_hours: float
    lost_work: float
    num_interruptions: int


# GPUs: what a policy admitted is placed here, as a Kubernetes scheduler with an autoscaler would.


class Gpu:
    """One GPU and the jobs on it."""

    def __init__(self) -> None:
        self.tenants: list[Job] = []
        self.state: Literal["off", "starting", "up"] = "off"
        self.advanced_at = 0.0
        self.paid_since: float | None = None
        self.version = 0
        """Counts the changes; what was scheduled before the last one no longer holds."""


class GpuPool:
    """All GPUs of an alternative, with as many jobs on each as there are rates.

    `rates[n - 1]` is the work that each of n tenants gets done in an hour. `renting` None: the GPUs are there all the
    time. `generator` draws the interruptions.
    """

    def __init__(
        self,
        env: simpy.Environment,
        *,
        size: int,
        num_users: int,
        rates: Sequence[float],
        renting: Renting | None = None,
        generator: np.random.Generator | None = None,
    ) -> None:
        self._env, self._rates, self._renting = env, rates, renting
        self._generator = generator or np.random.default_rng(0)
        self._gpus = [Gpu() for _ in range(size)]
        self._unplaced: list[Job] = []
        self._paid_hours = 0.0
        self.capacity = size * len(rates)
        self.num_admitted = 0
        self.work_by_user = np.zeros(num_users)
        """Work that is done and not lost, in hours alone on such a GPU."""
        self.busy_hours = 0.0
        self.lost_work = 0.0
        self.num_interruptions = 0
        self.on_end: Callable[[Job], None] = lambda job: None
        self.may_start: Callable[[], bool] = lambda: True
        """Whether a job may be started; one that runs goes on."""
        if renting is None or renting.is_always_on:
            for gpu in self._gpus:
                self._open(gpu)

    def admit(self, job: Job) -> None:
        """Run a job as soon as there is a place for it."""
        self.num_admitted += 1
        self._put(job)
        self.place()

    def evict(self, job: Job) -> None:
        """Stop a job that was admitted; it waits again, from its last checkpoint on."""
        self.num_admitted -= 1
        if job in self._unplaced:
            self._unplaced.remove(job)
            return
        gpu = next(gpu for gpu in self._gpus if job in gpu.tenants)
        self._advance(gpu)
        gpu.tenants.remove(job)
        self._lose(job)
        self._plan(gpu)

    def place(self) -> None:
        """Put waiting jobs where there is room, on the GPU with the fewest; start rented GPUs for the others."""
        while self._unplaced and self.may_start():
            running = [gpu for gpu in self._gpus if gpu.state == "up" and len(gpu.tenants) < len(self._rates)]
            if not running:
                num_starting = sum(gpu.state == "starting" for gpu in self._gpus)
                num_wanted = -(-len(self._unplaced) // len(self._rates)) - num_starting
                for gpu in [gpu for gpu in self._gpus if gpu.state == "off"][: max(0, num_wanted)]:
                    self._start(gpu)
                return
            job, gpu = self._unplaced.pop(0), min(running, key=lambda gpu: len(gpu.tenants))
            self._advance(gpu)
            job.run(self._env.now)
            gpu.tenants.append(job)
            self._plan(gpu)

    def advance(self) -> None:
        """Bring all that is counted up to now."""
        for gpu in self._gpus:
            self._advance(gpu)

    @property
    def paid_hours(self) -> float:
        """Hours for which GPUs were up or starting until now, of all together."""
        since = (gpu.paid_since for gpu in self._gpus if gpu.paid_since is not None)
        return self._paid_hours + sum(self._env.now - begun for begun in since)

    def _put(self, job: Job) -> None:
        insort(self._unplaced, job, key=lambda waiting: (waiting.submitted_at, waiting.number))

    def _start(self, gpu: Gpu) -> None:
        assert self._renting is not None  # others are always up
        gpu.state, gpu.paid_since = "starting", self._env.now
        self._call_later(gpu, self._renting.start_hours, lambda: self._open(gpu))

    def _open(self, gpu: Gpu) -> None:
        if gpu.paid_since is None:
            gpu.paid_since = self._env.now
        gpu.state, gpu.advanced_at = "up", self._env.now
        if self._renting is not None and self._renting.interruptions_per_hour:
            # Its own event, not one of `version`: what runs on the GPU does not keep the cloud from taking it.
            hours = float(self._generator.exponential(1 / self._renting.interruptions_per_hour))
            opened = gpu.paid_since
            event = self._env.timeout(hours)
            event.callbacks.append(lambda _: self._interrupt(gpu, opened))
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
        if self._renting is not None and self._renting.is_always_on:
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
        elif self._renting is not None and not self._renting.is_always_on:
            self._call_later(gpu, self._renting.idle_hours, lambda: self._close(gpu))
        else:
            gpu.version += 1

    def _finish(self, gpu: Gpu) -> None:
        self._advance(gpu)
        ended = [job for job in gpu.tenants if job.left <= SMALLEST_WORK]
        gpu.tenants = [job for job in gpu.tenants if job.left > SMALLEST_WORK]
        self.num_admitted -= len(ended)
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


# Policies: which of the waiting jobs is admitted next, and whether one that runs has to make room.


class FirstComeAdmission:
    """Admits jobs in the order of their submission while the pool has places; with one place a GPU, exclusive use."""

    def __init__(self, pool: GpuPool) -> None:
        self._pool = pool
        self._waiting: list[tuple[float, int, Job]] = []

    def submit(self, job: Job) -> None:
        """Take a job that was just submitted."""
        heapq.heappush(self._waiting, (job.submitted_at, job.number, job))
        self.end(job)

    def end(self, job: Job) -> None:
        """Admit what there is room for, after any job's submission or end."""
        while self._waiting and self._pool.num_admitted < self._pool.capacity:
            self._pool.admit(heapq.heappop(self._waiting)[2])


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


class FairShareAdmission:
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
                self._pool.admit(job)
            if not admitted and not preempted:
                return


class _Laboratory:
    """One simulation of a setting."""

    def __init__(self, setting: Setting, number: int) -> None:
        users = setting.users
        self.env, self.setting = simpy.Environment(), setting
        self.pool = GpuPool(
            self.env,
            size=setting.num_gpus,
            num_users=len(users),
            rates=setting.rates,
            renting=setting.renting,
            generator=np.random.default_rng((setting.seed, number, INTERRUPTION_STREAM)),
        )
        self.admission: FirstComeAdmission | FairShareAdmission = FirstComeAdmission(self.pool)
        if setting.policy == "fair-share":
            queues = [Queue(nominal=group.quota, weight=group.weight) for _, _, group in users]
            self.admission = FairShareAdmission(self.pool, queues)
        self.num_submitted = 0
        self.paid_before = 0.0
        """Hours that were paid before the present week."""
        self.measured: list[Job] = []
        self.is_measuring = False
        self.num_open = 0
        """Jobs of the measured week that have not ended."""
        self.all_ended: simpy.Event | None = None
        self.ends: dict[int, simpy.Event] = {}
        """By number of a job, the event that its user waits for."""
        self.pool.on_end = self._end
        if setting.budget_per_week is not None and setting.price_per_hour:
            hours = setting.budget_per_week / setting.price_per_hour
            self.pool.may_start = lambda: self.pool.paid_hours - self.paid_before < hours
        self.env.process(self._turn_weeks())
        for user, (place, index, group) in enumerate(users):
            stream = JobStream(group, (setting.seed, number, place, index))
            self.env.process(self._submit(user, group, stream))

    def _turn_weeks(self) -> simpy.events.ProcessGenerator:
        while True:
            yield self.env.timeout(HOURS_PER_WEEK)
            self.paid_before = self.pool.paid_hours
            self.pool.place()

    def _submit(self, user: int, group: Group, stream: JobStream) -> simpy.events.ProcessGenerator:
        """Submit the jobs of a user, who with `think_hours` waits for each one's end before thinking of the next."""
        while True:
            yield self.env.timeout(stream.draw_submission(self.env.now) - self.env.now)
            ended = self.env.event()
            self.ends[self.num_submitted] = ended
            self._add_job(user, group, stream)
            if group.think_hours is not None:
                yield ended

    def _add_job(self, user: int, group: Group, stream: JobStream) -> None:
        speed = self.setting.speed
        job = Job(
            number=self.num_submitted,
            user=user,
            submitted_at=self.env.now,
            work=stream.draw_hours() / speed,
            checkpoint_work=None if group.checkpoint_hours is None else group.checkpoint_hours / speed,
        )
        self.num_submitted += 1
        if self.is_measuring:
            self.measured.append(job)
            self.num_open += 1
        self.admission.submit(job)

    def _end(self, job: Job) -> None:
        self.admission.end(job)
        self.ends.pop(job.number).succeed()
        begin = self.setting.warm_up_weeks * HOURS_PER_WEEK
        if begin <= job.submitted_at < begin + HOURS_PER_WEEK:
            self.num_open -= 1
            if not self.num_open and self.all_ended is not None:
                self.all_ended.succeed()

    def count(self) -> tuple[FloatArray, float, float, float, int]:
        """Return what the pool has counted until now."""
        pool = self.pool
        pool.advance()
        return pool.work_by_user.copy(), pool.paid_hours, pool.busy_hours, pool.lost_work, pool.num_interruptions


def simulate_week(setting: Setting, number: int) -> Week:
    """Return what was observed in the `number`-th week; equal settings and numbers give equal weeks.

    Users' lengths and gaps depend on the seed, the week and the user alone, so alternatives and policies face the same.
    """
    laboratory = _Laboratory(setting, number)
    env, begin = laboratory.env, setting.warm_up_weeks * HOURS_PER_WEEK
    env.run(until=begin)
    before = laboratory.count()
    laboratory.is_measuring = True
    env.run(until=begin + HOURS_PER_WEEK)
    after = laboratory.count()
    laboratory.is_measuring = False
    if laboratory.num_open:
        laboratory.all_ended = env.event()
        env.run(until=laboratory.all_ended | env.timeout(DRAIN_WEEKS * HOURS_PER_WEEK))
    now, jobs = env.now, laboratory.measured
    turnarounds = [(now if job.ended_at is None else job.ended_at) - job.submitted_at for job in jobs]
    return Week(
        work_by_user=after[0] - before[0],
        users=np.array([job.user for job in jobs], dtype=np.int64),
        waits=np.array([job.measure_wait(now) for job in jobs], dtype=np.float64),
        turnarounds=np.array(turnarounds, dtype=np.float64),
        alone=np.array([job.work for job in jobs], dtype=np.float64),
        num_unended=sum(job.ended_at is None for job in jobs),
        paid_hours=after[1] - before[1],
        busy_hours=after[2] - before[2],
        lost_work=after[3] - before[3],
        num_interruptions=after[4] - before[4],
    )


def simulate_weeks(setting: Setting, num_weeks: int) -> Sequence[Week]:
    """Return independent weeks, each simulated from its own beginning."""
    return [simulate_week(setting, number) for number in range(num_weeks)]
