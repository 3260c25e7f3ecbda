"""Compare every alternative under every policy: figures with intervals over simulated weeks.

A week is the unit: jobs of one week wait for each other, so they are no independent observations.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from math import exp, log, nan, sqrt
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
from scipy import special

from collector.access.scenario import DEFAULT_MAX_TENANTS, Buy, Group, Kind, Policy, Scenario, Sharing
from collector.access.simulation import HOURS_PER_WEEK, Choice, FloatArray, Week, simulate_weeks

BOUND_HOURS = 5 / 60
"""Jobs that take less alone count as if they took so long, or slowdowns of jobs of seconds would outweigh all others:
bounded slowdown (D. G. Feitelson, Metrics for Parallel Job Scheduling and Their Convergence, JSSPP 2001, with 10 s).
Our bound is about what it takes to start a rented GPU: who waits for that does not mind two minutes, or one."""
WEEKS_PER_YEAR = 365.25 / 7
TAIL = 0.95
CONFIDENCE = 0.95
NUM_RESAMPLES = 999
"""Of the bootstrap: with 999, the 2.5 % and 97.5 % quantiles are the 25th and 975th value
(A. C. Davison, D. V. Hinkley, Bootstrap Methods and their Application, 1997, section 5.2.3)."""
BOOTSTRAP_SEED = 20_011


class KindFigures(NamedTuple):
    """The speed of one kind of GPU and its slowdowns, wherever they are from."""

    samples_per_second: float
    """Of a job alone."""
    slowdowns: Mapping[Sharing, Mapping[int, float]]
    """By way of sharing and number of tenants: step time of each over that of one alone."""
    measured: str = ""
    """The cell and the run that the speed is of; empty: the scenario states it."""


class HourlyPrice(NamedTuple):
    """What an hour of a rented GPU with its host costs, in the scenario's currency."""

    amount: float
    source: str = ""
    """Where the price table has it from; empty: the scenario states it."""


def list_choices(
    scenario: Scenario, figures: Mapping[str, KindFigures], prices: Mapping[str, HourlyPrice]
) -> tuple[list[Choice], dict[str, str]]:
    """Return every alternative under every policy, and what is left out with the reason.

    `figures` by the name of a kind, `prices` by the name of an alternative, of the rented ones.
    """
    choices, left_out = [], {}
    of_lengths = figures[scenario.job_hours_on].samples_per_second
    for alternative in scenario.alternatives:
        kind, rent = figures[alternative.kind], alternative.rent
        for policy in scenario.policies:
            if policy == "mps" and "mps" not in kind.slowdowns:
                left_out[f"{alternative.name}, {policy}"] = (
                    f"the slowdowns of {alternative.kind} with MPS are not known, and nothing stands for them"
                )
                continue
            choice = Choice(
                alternative=alternative,
                policy=policy,
                groups=scenario.users,
                rates=find_rates(scenario.kinds[alternative.kind], kind, policy),
                speed=kind.samples_per_second / of_lengths,
                samples_per_hour=kind.samples_per_second * 3600,
                price_per_hour=prices[alternative.name].amount if rent is not None else 0.0,
                # What is paid for anyway is not saved by leaving it idle.
                budget_per_week=None if rent is None or rent.always_on else scenario.budget_per_week,
                warm_up_weeks=scenario.warm_up_weeks,
                seed=scenario.seed,
            )
            choices.append(choice)
    return choices, left_out


def find_rates(kind: Kind, figures: KindFigures, policy: Policy) -> tuple[float, ...]:
    """Return the work that each of 1, 2, ... tenants gets done in an hour, up to the most that a policy allows.

    That many are stated, else the most of which a slowdown is known. Where none is known, n tenants take n times as
    long.
    """
    if policy in ("exclusive", "fair-share"):
        return (1.0,)
    known = figures.slowdowns.get("mps" if policy == "mps" else "time-slicing", {})
    most = kind.max_tenants or max(known, default=DEFAULT_MAX_TENANTS)
    return tuple(1 / interpolate_slowdown(known, number) for number in range(1, most + 1))


def interpolate_slowdown(by_tenants: Mapping[int, float], number: int) -> float:
    """Return the slowdown of so many tenants: on the straight line between the known ones, one alone having 1.

    Beyond the most of which it is known, all together get as much done as those.
    """
    known: Sequence[tuple[int, float]] = sorted({1: 1.0, **by_tenants}.items())
    for (fewer, low), (more, high) in zip(known, known[1:], strict=False):
        if number <= more:
            return low + (high - low) * (number - fewer) / (more - fewer)
    most, slowdown = known[-1]
    return slowdown * number / most


class Figure(NamedTuple):
    """A figure with its 95 % interval over simulated weeks; NaN where the weeks do not give one."""

    center: float
    low: float = nan
    high: float = nan


class Ratio(NamedTuple):
    """A ratio of sums over weeks, such as samples over money: one numerator and denominator a week."""

    numerators: FloatArray
    denominators: FloatArray

    @property
    def center(self) -> float:
        """The sum of the numerators over that of the denominators; NaN where that is 0."""
        total = float(self.denominators.sum())
        return float(self.numerators.sum()) / total if total else nan

    @property
    def influences(self) -> FloatArray:
        """By how much each week moves the ratio: the residuals of the delta method, whose mean is 0."""
        residuals = self.numerators - self.center * self.denominators
        return np.asarray(residuals / self.denominators.mean())


def estimate_mean(values: FloatArray) -> Figure:
    """Return the mean of a value per week."""
    return estimate_ratio(Ratio(values, np.ones(len(values))))


def estimate_ratio(ratio: Ratio) -> Figure:
    """Return the ratio with the interval of the delta method: Student's t over the weeks, not below 0.

    W. G. Cochran, Sampling Techniques, 3rd edition, 1977, section 6.4; A. M. Law, Simulation Modeling and Analysis,
    independent replications.
    """
    center = ratio.center
    if np.isnan(center) or len(ratio.numerators) < 2:
        return Figure(center)
    half = _find_half_width(ratio.influences)
    return Figure(center, max(0.0, center - half), center + half)


def compare_ratios(ratio: Ratio, other: Ratio) -> Figure:
    """Return how many times `other` the ratio is, both of the same weeks, both above 0.

    Weeks are paired: what a week does to both cancels. Student's t on the log scale.
    """
    center = ratio.center / other.center
    half = _find_half_width(ratio.influences / ratio.center - other.influences / other.center)
    return Figure(center, exp(log(center) - half), exp(log(center) + half))


def _find_half_width(influences: FloatArray) -> float:
    quantile = float(special.stdtrit(len(influences) - 1, (1 + CONFIDENCE) / 2))
    return quantile * float(influences.std(ddof=1)) / sqrt(len(influences))


def estimate_percentile(weeks: Sequence[FloatArray], share: float) -> Figure:
    """Return a percentile of the values of all weeks together, with the percentile interval of a bootstrap over weeks.

    `share`: 0.95 for p95. NaN where no week has a value.
    """
    values = np.concatenate(weeks)
    if not len(values):
        return Figure(nan)
    of_week = np.repeat(np.arange(len(weeks)), [len(week) for week in weeks])
    order = np.argsort(values, kind="stable")
    values, of_week = values[order], of_week[order]

    def find_percentile(counts: FloatArray) -> float:
        passed = np.cumsum(counts[of_week])
        return float(values[np.searchsorted(passed, share * passed[-1])]) if passed[-1] else nan

    return _bootstrap(find_percentile, len(weeks))


def estimate_jain(amounts: FloatArray, over: FloatArray | None = None) -> Figure:
    """Return Jain's index over users of what each got in all weeks together, with its interval by the bootstrap.

    Both arrays are weeks times users. `over`: what the amounts are divided by, once both are summed over the weeks;
    users without any of it are left out.
    """

    def compute(counts: FloatArray) -> float:
        totals: FloatArray = counts @ amounts
        if over is None:
            return compute_jain(totals)
        divisors: FloatArray = counts @ over
        return compute_jain(totals[divisors > 0] / divisors[divisors > 0])

    return _bootstrap(compute, len(amounts))


def compute_jain(amounts: FloatArray) -> float:
    """Return (sum x)^2 / (n sum x^2): 1 where all have the same, 1/n where one has all; NaN where nobody has any.

    R. Jain, D. Chiu, W. Hawe, A Quantitative Measure of Fairness and Discrimination, DEC-TR-301, 1984.
    """
    squares = float((amounts**2).sum())
    return float(amounts.sum()) ** 2 / (len(amounts) * squares) if squares else nan


def _bootstrap(compute: Callable[[FloatArray], float], num_weeks: int) -> Figure:
    """Return a statistic of how often each week counts, with its percentile interval; NaN where it has no value."""
    center = compute(np.ones(num_weeks))
    if np.isnan(center):
        return Figure(center)
    generator = np.random.default_rng(BOOTSTRAP_SEED)
    counts = generator.multinomial(num_weeks, [1 / num_weeks] * num_weeks, NUM_RESAMPLES).astype(np.float64)
    low, high = np.nanquantile([compute(drawn) for drawn in counts], [(1 - CONFIDENCE) / 2, (1 + CONFIDENCE) / 2])
    return Figure(center, float(low), float(high))


@dataclass(frozen=True, kw_only=True)
class Outcome:
    """A choice with the figures of its simulated weeks.

    figures, by name: cost (of a week); samples_per_money; jain_samples (Jain's index over users of the samples that
    each got, over the weight of the user's queue); jain_speed (over users of the hours that their jobs take alone over
    those from submission to end); utilisation (part of the hours of all GPUs in which one had a job); and those of
    by_group for everybody.
    by_group, by name of a group and of a figure: wait_hours (mean time in which a job was there and did not run);
    wait_p95_hours; turnaround_hours (mean time from the submission of a job to its end); slowdown (mean over jobs of
    the turnaround over the time that the job takes alone on this kind of GPU); samples_per_user (in a week).
    """

    choice: Choice
    figures: dict[str, Figure]
    by_group: dict[str, dict[str, Figure]]
    num_jobs: int
    num_unended: int
    """Of them did not end within the time that they were followed; their waits are at least what is shown."""
    samples_for_money: Ratio
    """Of each week, for comparisons with other choices."""
    turnarounds: Ratio


def evaluate_choice(choice: Choice, num_weeks: int) -> Outcome:
    """Simulate the weeks of a choice and return its figures."""
    return summarize_weeks(choice, simulate_weeks(choice, num_weeks))


def summarize_weeks(choice: Choice, weeks: Sequence[Week]) -> Outcome:
    users = choice.users
    costs = np.array([compute_cost(choice, week) for week in weeks])
    done = np.array([week.work_by_user for week in weeks])
    samples_for_money = Ratio(done.sum(axis=1) * choice.samples_per_hour, costs)
    group_of_user = np.array([place for place, _, _ in users])
    alone, turnarounds = (
        np.array([np.bincount(week.jobs["user"], week.jobs[name], len(users)) for week in weeks])
        for name in ("alone", "turnaround")
    )
    return Outcome(
        choice=choice,
        figures={
            "cost": estimate_mean(costs),
            **_measure(choice, weeks, np.ones(len(users), dtype=bool)),
            "samples_per_money": estimate_ratio(samples_for_money),
            "jain_samples": estimate_jain(done / np.array([group.weight for _, _, group in users])),
            "jain_speed": estimate_jain(alone, turnarounds),
            "utilisation": estimate_mean(
                np.array([week.busy_hours for week in weeks]) / (HOURS_PER_WEEK * choice.alternative.gpus)
            ),
        },
        by_group={
            group.name: _measure(choice, weeks, group_of_user == place) for place, group in enumerate(choice.groups)
        },
        num_jobs=sum(len(week.jobs) for week in weeks),
        num_unended=sum(int((~week.jobs["has_ended"]).sum()) for week in weeks),
        samples_for_money=samples_for_money,
        turnarounds=_sum_over_jobs([week.jobs["turnaround"].to_numpy() for week in weeks]),
    )


def _measure(choice: Choice, weeks: Sequence[Week], is_chosen: npt.NDArray[np.bool_]) -> dict[str, Figure]:
    jobs = [week.jobs[is_chosen[week.jobs["user"]]] for week in weeks]
    waits = [week["wait"].to_numpy() for week in jobs]
    turnarounds = [week["turnaround"].to_numpy() for week in jobs]
    slowdowns = [
        np.maximum(1.0, week["turnaround"] / np.maximum(week["alone"], BOUND_HOURS)).to_numpy() for week in jobs
    ]
    samples = np.array([week.work_by_user[is_chosen].mean() for week in weeks]) * choice.samples_per_hour
    return {
        "wait_hours": estimate_ratio(_sum_over_jobs(waits)),
        "wait_p95_hours": estimate_percentile(waits, TAIL),
        "turnaround_hours": estimate_ratio(_sum_over_jobs(turnarounds)),
        "slowdown": estimate_ratio(_sum_over_jobs(slowdowns)),
        "samples_per_user": estimate_mean(samples),
    }


def _sum_over_jobs(values: Sequence[FloatArray]) -> Ratio:
    """Return the mean over jobs as a ratio: in each week the sum of a value, and the number of jobs."""
    return Ratio(np.array([week.sum() for week in values]), np.array([len(week) for week in values], dtype=np.float64))


def compute_offered_hours(group: Group) -> float | None:
    """Return the hours of work, alone on the GPU of the lengths, that a group submits in a week.

    None where its users wait for their jobs: they submit as much as the GPUs do.
    """
    if group.jobs_per_day is None:
        return None
    mean_hours = sum(group.job_hours) / len(group.job_hours)
    return group.number * group.jobs_per_day * len(group.working_days) * mean_hours


def compute_load(choice: Choice) -> float:
    """Return what users with `jobs_per_day` ask for, over the most that the GPUs can do in a week.

    From 1 on, queues grow from week to week. Users who wait for their jobs ask for no more than they get, and count 0.
    """
    offered = sum(compute_offered_hours(group) or 0.0 for group in choice.groups) / choice.speed
    most = max(number * rate for number, rate in enumerate(choice.rates, start=1))
    return offered / (HOURS_PER_WEEK * choice.alternative.gpus * most)


def compute_cost(choice: Choice, week: Week) -> float:
    """Return what a week cost: rent, or the week's part of a bought machine with its electricity."""
    buy = choice.alternative.buy
    if buy is None:
        return week.paid_hours * choice.price_per_hour
    busy_share = week.busy_hours / (HOURS_PER_WEEK * choice.alternative.gpus)
    return compute_fixed_cost(buy) + compute_energy_cost(buy, busy_share)


def compute_fixed_cost(buy: Buy) -> float:
    """Return what a bought machine costs in a week, used or not, without electricity: the group's share."""
    per_year = buy.price / buy.lifetime_years + buy.upkeep_per_year
    return buy.share * per_year / WEEKS_PER_YEAR


def compute_energy_cost(buy: Buy, busy_share: float) -> float:
    """Return what its electricity costs in a week in which `busy_share` of the hours of its GPUs had a job."""
    watts = buy.idle_watts + (buy.watts - buy.idle_watts) * busy_share
    return buy.share * watts / 1000 * HOURS_PER_WEEK * (buy.electricity_per_kwh or 0.0)


def compute_break_even_hours(bought: Choice, rented: Choice) -> float | None:
    """Return at how many hours of work a week a bought machine costs what the same samples cost on rented GPUs.

    Without the hours in which rented GPUs start or are idle, or what interruptions lose. None where the electricity of
    an hour alone costs more than the rent: then there is no such point.
    """
    buy = bought.alternative.buy
    assert buy is not None
    fixed = compute_fixed_cost(buy) + compute_energy_cost(buy, 0.0)
    num_hours = HOURS_PER_WEEK * bought.alternative.gpus
    energy_per_hour = (compute_energy_cost(buy, 1.0) - compute_energy_cost(buy, 0.0)) / num_hours
    rent_per_hour = rented.price_per_hour * bought.samples_per_hour / rented.samples_per_hour
    return fixed / (rent_per_hour - energy_per_hour) if rent_per_hour > energy_per_hour else None
