"""Compute what a choice gives its users and what it costs: figures with intervals over simulated weeks."""

from collections.abc import Sequence
from dataclasses import dataclass, fields

import numpy as np
import numpy.typing as npt

from collector.access.choices import Choice
from collector.access.estimates import (
    Figure,
    FloatArray,
    Ratio,
    estimate_jain,
    estimate_percentile,
    estimate_ratio,
    make_mean,
)
from collector.access.job_streams import compute_offered_hours
from collector.access.scenario import Buy
from collector.access.simulation import Setting, Week, simulate_weeks
from collector.access.working_time import HOURS_PER_WEEK

BOUND_HOURS = 5 / 60
"""Jobs that take less alone count as if they took so long, or slowdowns of jobs of seconds would outweigh all others:
bounded slowdown (D. G. Feitelson, Metrics for Parallel Job Scheduling and Their Convergence, JSSPP 2001, with 10 s).
Our bound is about what it takes to start a rented GPU: who waits for that does not mind two minutes, or one."""
WEEKS_PER_YEAR = 365.25 / 7
TAIL = 0.95


@dataclass(frozen=True, kw_only=True)
class Measures:
    """The figures of some users under a choice. Times in hours."""

    wait_hours: Figure
    """Mean time in which a job was there and did not run."""
    wait_p95_hours: Figure
    turnaround_hours: Figure
    """Mean time from the submission of a job to its end."""
    slowdown: Figure
    """Mean over jobs of the turnaround over the time that the job takes alone on this kind of GPU."""
    samples_per_user: Figure
    """In a week."""


@dataclass(frozen=True, kw_only=True)
class Outcome:
    """A choice with the weeks that were simulated and their figures."""

    choice: Choice
    weeks: Sequence[Week]
    cost: Figure
    """Of a week."""
    samples_per_money: Figure
    everybody: Measures
    by_group: dict[str, Measures]
    jain_samples: Figure
    """Jain's index over users of the samples that each got, over the weight of the user's queue."""
    jain_speed: Figure
    """Jain's index over users of the hours that their jobs take alone over those from submission to end."""
    utilisation: Figure
    """Part of the hours of all GPUs in which one had a job."""
    num_jobs: int
    num_unended: int
    """Of them did not end within the time that they were followed; their waits are at least what is shown."""
    interruptions: Figure
    """In a week."""
    lost_share: Figure
    """Part of the work done that was lost in interruptions and preemptions."""
    samples_for_money: Ratio
    """Of each week, for comparisons with other choices."""
    turnarounds: Ratio


def evaluate_choice(choice: Choice, num_weeks: int) -> Outcome:
    """Simulate the weeks of a choice and return its figures."""
    return summarize_weeks(choice, simulate_weeks(choice.setting, num_weeks))


def summarize_weeks(choice: Choice, weeks: Sequence[Week]) -> Outcome:
    """Return the figures of the weeks of a choice."""
    costs = np.array([compute_cost(choice, week) for week in weeks])
    done = np.array([week.work_by_user for week in weeks])
    samples = done.sum(axis=1) * choice.samples_per_hour
    samples_for_money = Ratio(numerators=samples, denominators=costs)
    group_of_user = np.array([place for place, _, _ in choice.setting.users])
    weights = np.array([group.weight for _, _, group in choice.setting.users])
    return Outcome(
        choice=choice,
        weeks=weeks,
        cost=estimate_ratio(make_mean(costs)),
        samples_per_money=estimate_ratio(samples_for_money),
        everybody=_measure(choice, weeks, np.ones(len(group_of_user), dtype=bool)),
        by_group={
            group.name: _measure(choice, weeks, group_of_user == place)
            for place, group in enumerate(choice.setting.groups)
        },
        jain_samples=estimate_jain(done / weights),
        jain_speed=_estimate_speed_fairness(weeks, len(group_of_user)),
        utilisation=estimate_ratio(
            make_mean(_collect(weeks, "busy_hours") / (HOURS_PER_WEEK * choice.setting.num_gpus))
        ),
        num_jobs=sum(len(week.users) for week in weeks),
        num_unended=sum(week.num_unended for week in weeks),
        interruptions=estimate_ratio(make_mean(_collect(weeks, "num_interruptions"))),
        lost_share=estimate_ratio(_make_lost_share(weeks, done.sum(axis=1))),
        samples_for_money=samples_for_money,
        turnarounds=_sum_over_jobs([week.turnarounds for week in weeks]),
    )


def compute_load(setting: Setting) -> float:
    """Return what users with `jobs_per_day` ask for, over the most that the GPUs can do in a week.

    From 1 on, queues grow from week to week. Users who wait for their jobs ask for no more than they get, and count 0.
    """
    offered = sum(compute_offered_hours(group) or 0.0 for group in setting.groups) / setting.speed
    most = max(number * rate for number, rate in enumerate(setting.rates, start=1))
    return offered / (HOURS_PER_WEEK * setting.num_gpus * most)


def compute_cost(choice: Choice, week: Week) -> float:
    """Return what a week cost: rent, or the week's part of a bought machine with its electricity."""
    alternative = choice.alternative
    if alternative.buy is not None:
        busy_share = week.busy_hours / (HOURS_PER_WEEK * choice.setting.num_gpus)
        return compute_fixed_cost(alternative.buy) + compute_energy_cost(alternative.buy, busy_share)
    assert choice.price_per_hour is not None  # every rented alternative has one
    return week.paid_hours * choice.price_per_hour


def compute_fixed_cost(buy: Buy) -> float:
    """Return what a bought machine costs in a week, used or not, without electricity: the group's share."""
    per_year = buy.price / buy.lifetime_years + buy.upkeep_per_year
    return buy.share * per_year / WEEKS_PER_YEAR


def compute_energy_cost(buy: Buy, busy_share: float) -> float:
    """Return what its electricity costs in a week in which `busy_share` of the hours of its GPUs had a job."""
    watts = buy.idle_watts + (buy.watts - buy.idle_watts) * busy_share
    return buy.share * watts / 1000 * HOURS_PER_WEEK * (buy.electricity_per_kwh or 0.0)


def _collect(weeks: Sequence[Week], name: str) -> FloatArray:
    return np.array([getattr(week, name) for week in weeks], dtype=np.float64)


def _make_lost_share(weeks: Sequence[Week], kept: FloatArray) -> Ratio:
    lost = _collect(weeks, "lost_work")
    return Ratio(numerators=lost, denominators=kept + lost)


def _sum_over_jobs(values: Sequence[FloatArray]) -> Ratio:
    """Return the mean over jobs as a ratio: in each week the sum of a value, and the number of jobs."""
    return Ratio(
        numerators=np.array([week.sum() for week in values]),
        denominators=np.array([len(week) for week in values], dtype=np.float64),
    )


def _measure(choice: Choice, weeks: Sequence[Week], is_chosen: npt.NDArray[np.bool_]) -> Measures:
    chosen = [is_chosen[week.users] for week in weeks]
    waits = [week.waits[rows] for week, rows in zip(weeks, chosen, strict=True)]
    turnarounds = [week.turnarounds[rows] for week, rows in zip(weeks, chosen, strict=True)]
    slowdowns = [
        np.maximum(1.0, week.turnarounds[rows] / np.maximum(week.alone[rows], BOUND_HOURS))
        for week, rows in zip(weeks, chosen, strict=True)
    ]
    samples = np.array([week.work_by_user[is_chosen].mean() for week in weeks]) * choice.samples_per_hour
    return Measures(
        wait_hours=estimate_ratio(_sum_over_jobs(waits)),
        wait_p95_hours=estimate_percentile(waits, TAIL),
        turnaround_hours=estimate_ratio(_sum_over_jobs(turnarounds)),
        slowdown=estimate_ratio(_sum_over_jobs(slowdowns)),
        samples_per_user=estimate_ratio(make_mean(samples)),
    )


def _estimate_speed_fairness(weeks: Sequence[Week], num_users: int) -> Figure:
    """Return Jain's index of the users' speeds: hours alone over hours from submission to end."""
    alone, turnarounds = (
        np.array([np.bincount(week.users, getattr(week, name), num_users) for week in weeks])
        for name in ("alone", "turnarounds")
    )
    return estimate_jain(alone, turnarounds)


def list_figures(measures: Measures) -> dict[str, Figure]:
    """Return the figures by their names."""
    return {field.name: getattr(measures, field.name) for field in fields(measures)}
