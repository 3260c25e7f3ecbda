"""Draw the jobs that users submit: random lengths and gaps, the same for every alternative and policy of a week."""

import math

import numpy as np

from collector.access.scenario import Group
from collector.access.working_time import WorkingTime


class JobStream:
    """One user's lengths and gaps in one week; drawn in the user's own order, so that policies face the same jobs."""

    def __init__(self, group: Group, working_time: WorkingTime, seed: tuple[int, ...]) -> None:
        lengths, gaps = np.random.SeedSequence(seed).spawn(2)
        self._lengths, self._gaps = np.random.default_rng(lengths), np.random.default_rng(gaps)
        self._group = group
        self._working_time = working_time

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
        group = self._group
        mean = group.think_hours or self._working_time.hours_per_day / (group.jobs_per_day or math.inf)
        return self._working_time.add(now, mean * float(self._gaps.standard_exponential()))


def compute_offered_hours(group: Group) -> float | None:
    """Return the hours of work, alone on the GPU of the lengths, that a group submits in a week.

    None where its users wait for their jobs: they submit as much as the GPUs do.
    """
    if group.jobs_per_day is None:
        return None
    mean_hours = sum(group.job_hours) / len(group.job_hours)
    return group.number * group.jobs_per_day * len(group.working_days) * mean_hours
