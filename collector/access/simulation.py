"""Simulate a week of an alternative under a policy, after a warm-up: what each user got, and what it cost."""

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt
import simpy

from collector.access.fair_share import Queue
from collector.access.gpus import GpuPool, Renting
from collector.access.job_streams import JobStream
from collector.access.jobs import Job
from collector.access.policies import Admission, FairShareAdmission, FirstComeAdmission
from collector.access.scenario import Group, Policy
from collector.access.working_time import HOURS_PER_WEEK, WorkingTime

FloatArray = npt.NDArray[np.float64]

DRAIN_WEEKS = 2
"""How long jobs of the measured week are followed beyond it; what has not ended then counts with the hours so far."""
INTERRUPTION_STREAM = 2**20
"""Sets the random numbers of interruptions apart from those of users, whose third number is that of their group."""


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
        """Number of the group, number in the group, and group, of each user."""
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


@dataclass(kw_only=True)
class _Laboratory:
    """The state of one simulation."""

    env: simpy.Environment
    setting: Setting
    streams: list[JobStream]
    pool: GpuPool
    admission: Admission
    num_submitted: int = 0
    paid_before: float = 0.0
    """Hours that were paid before the present week."""
    measured: list[Job] = field(default_factory=list)
    is_measuring: bool = False
    num_open: int = 0
    """Jobs of the measured week that have not ended."""
    all_ended: simpy.Event | None = None
    ends: dict[int, simpy.Event] = field(default_factory=dict)
    """By number of a job, the event that its user waits for."""


def simulate_week(setting: Setting, number: int) -> Week:
    """Return what was observed in the `number`-th week; equal settings and numbers give equal weeks.

    Users' lengths and gaps depend on the seed, the week and the user alone, so alternatives and policies face the same.
    """
    laboratory = _open_laboratory(setting, number)
    env, begin = laboratory.env, setting.warm_up_weeks * HOURS_PER_WEEK
    env.process(_turn_weeks(laboratory))
    for user, (_, _, group) in enumerate(setting.users):
        env.process(_submit(laboratory, user, group) if group.think_hours is None else _work(laboratory, user, group))
    env.run(until=begin)
    before = _count(laboratory.pool)
    laboratory.is_measuring = True
    env.run(until=begin + HOURS_PER_WEEK)
    after = _count(laboratory.pool)
    laboratory.is_measuring = False
    if laboratory.num_open:
        laboratory.all_ended = env.event()
        env.run(until=laboratory.all_ended | env.timeout(DRAIN_WEEKS * HOURS_PER_WEEK))
    return _observe(laboratory, before, after)


def _open_laboratory(setting: Setting, number: int) -> _Laboratory:
    env = simpy.Environment()
    users = setting.users
    pool = GpuPool(
        env,
        size=setting.num_gpus,
        num_users=len(users),
        rates=setting.rates,
        renting=setting.renting,
        generator=np.random.default_rng((setting.seed, number, INTERRUPTION_STREAM)),
    )
    admission: Admission
    if setting.policy == "fair-share":
        queues = [Queue(nominal=group.quota, weight=group.weight) for _, _, group in users]
        admission = FairShareAdmission(pool, queues)
    else:
        admission = FirstComeAdmission(pool)
    streams = [
        JobStream(group, WorkingTime(group.working_hours, group.working_days), (setting.seed, number, place, index))
        for place, index, group in users
    ]
    laboratory = _Laboratory(env=env, setting=setting, streams=streams, pool=pool, admission=admission)
    pool.on_end = lambda job: _end(laboratory, job)
    if setting.budget_per_week is not None and setting.price_per_hour:
        hours = setting.budget_per_week / setting.price_per_hour
        pool.may_start = lambda: pool.paid_hours - laboratory.paid_before < hours
    return laboratory


def _turn_weeks(laboratory: _Laboratory) -> simpy.events.ProcessGenerator:
    """Give every week its budget."""
    while True:
        yield laboratory.env.timeout(HOURS_PER_WEEK)
        laboratory.paid_before = laboratory.pool.paid_hours
        laboratory.pool.place()


def _submit(laboratory: _Laboratory, user: int, group: Group) -> simpy.events.ProcessGenerator:
    """Submit the jobs of a user who does not wait for them."""
    stream, env = laboratory.streams[user], laboratory.env
    while True:
        yield env.timeout(stream.draw_submission(env.now) - env.now)
        _add_job(laboratory, user, group)


def _work(laboratory: _Laboratory, user: int, group: Group) -> simpy.events.ProcessGenerator:
    """Submit the jobs of a user who thinks after each one's end before submitting the next."""
    stream, env = laboratory.streams[user], laboratory.env
    while True:
        yield env.timeout(stream.draw_submission(env.now) - env.now)
        ended = env.event()
        laboratory.ends[laboratory.num_submitted] = ended
        _add_job(laboratory, user, group)
        yield ended


def _add_job(laboratory: _Laboratory, user: int, group: Group) -> None:
    setting = laboratory.setting
    job = Job(
        number=laboratory.num_submitted,
        user=user,
        submitted_at=laboratory.env.now,
        work=laboratory.streams[user].draw_hours() / setting.speed,
        checkpoint_work=None if group.checkpoint_hours is None else group.checkpoint_hours / setting.speed,
    )
    laboratory.num_submitted += 1
    if laboratory.is_measuring:
        laboratory.measured.append(job)
        laboratory.num_open += 1
    laboratory.admission.submit(job)


def _end(laboratory: _Laboratory, job: Job) -> None:
    laboratory.admission.end(job)
    ended = laboratory.ends.pop(job.number, None)
    if ended is not None:
        ended.succeed()
    begin = laboratory.setting.warm_up_weeks * HOURS_PER_WEEK
    if begin <= job.submitted_at < begin + HOURS_PER_WEEK:
        laboratory.num_open -= 1
        if not laboratory.num_open and laboratory.all_ended is not None:
            laboratory.all_ended.succeed()


@dataclass(frozen=True, kw_only=True)
class _Counts:
    work_by_user: FloatArray
    paid_hours: float
    busy_hours: float
    lost_work: float
    num_interruptions: int


def _count(pool: GpuPool) -> _Counts:
    pool.advance()
    return _Counts(
        work_by_user=pool.work_by_user.copy(),
        paid_hours=pool.paid_hours,
        busy_hours=pool.busy_hours,
        lost_work=pool.lost_work,
        num_interruptions=pool.num_interruptions,
    )


def _observe(laboratory: _Laboratory, before: _Counts, after: _Counts) -> Week:
    now, jobs = laboratory.env.now, laboratory.measured
    return Week(
        work_by_user=after.work_by_user - before.work_by_user,
        users=np.array([job.user for job in jobs], dtype=np.int64),
        waits=np.array([job.measure_wait(now) for job in jobs], dtype=np.float64),
        turnarounds=np.array([job.measure_turnaround(now) for job in jobs], dtype=np.float64),
        alone=np.array([job.work for job in jobs], dtype=np.float64),
        num_unended=sum(job.ended_at is None for job in jobs),
        paid_hours=after.paid_hours - before.paid_hours,
        busy_hours=after.busy_hours - before.busy_hours,
        lost_work=after.lost_work - before.lost_work,
        num_interruptions=after.num_interruptions - before.num_interruptions,
    )


def simulate_weeks(setting: Setting, num_weeks: int) -> Sequence[Week]:
    """Return independent weeks, each simulated from its own beginning."""
    return [simulate_week(setting, number) for number in range(num_weeks)]
