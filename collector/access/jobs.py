"""The jobs that users submit: drawn at random, the same for every alternative and policy of a week."""

import math
from bisect import bisect_right
from dataclasses import dataclass, field

import numpy as np

from collector.access.scenario import DAYS, Group

HOURS_PER_DAY = 24.0
HOURS_PER_WEEK = 168.0


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


class WorkingTime:
    """The working hours of every week, in which people submit jobs."""

    def __init__(self, group: Group) -> None:
        numbers = sorted(DAYS.index(day) for day in group.working_days)
        self._starts = [HOURS_PER_DAY * number + group.working_hours[0] for number in numbers]
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


def compute_offered_hours(group: Group) -> float | None:
    """Return the hours of work, alone on the GPU of the lengths, that a group submits in a week.

    None where its users wait for their jobs: they submit as much as the GPUs do.
    """
    if group.jobs_per_day is None:
        return None
    mean_hours = sum(group.job_hours) / len(group.job_hours)
    return group.number * group.jobs_per_day * len(group.working_days) * mean_hours
