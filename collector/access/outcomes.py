"""Compare every alternative under every policy: a frame of figures with intervals over simulated weeks.

A week is the unit: jobs of one week wait for each other, so they are no independent observations.
"""

from collections.abc import Callable, Iterator
from itertools import product
from math import exp, inf, log, nan, sqrt
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import pandas as pd
from scipy import special

from collector.access.scenario import HOURS_PER_WEEK, Buy, Choice, Scenario
from collector.access.simulation import FloatArray, simulate_week
from collector.tables.table import ESSENTIAL, Column, Table, interval_column, make_table, number_column, text_column
from collector.units import PERCENT, RATIO, Unit, format_significant, join_some

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
EVERYBODY = "(all)"
BEST: dict[str, Callable[..., Any]] = {"samples_per_money": max, "turnaround_hours": min}
"""Figures of which the best choice is sought, with what is best."""


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
        return np.asarray((self.numerators - self.center * self.denominators) / self.denominators.mean())

    def estimate(self) -> Figure:
        """Return the ratio with the interval of the delta method: Student's t over the weeks, not below 0.

        W. G. Cochran, Sampling Techniques, 3rd edition, 1977, section 6.4; A. M. Law, Simulation Modeling and Analysis,
        independent replications.
        """
        if np.isnan(self.center):
            return Figure(nan)
        half = _find_half_width(self.influences)
        return Figure(self.center, max(0.0, self.center - half), self.center + half)

    def compare(self, other: "Ratio") -> Figure:
        """Return how many times `other` it is, both of the same weeks, both above 0.

        Weeks are paired: what a week does to both cancels. Student's t on the log scale.
        """
        center = self.center / other.center
        half = _find_half_width(self.influences / self.center - other.influences / other.center)
        return Figure(center, exp(log(center) - half), exp(log(center) + half))


def _find_half_width(influences: FloatArray) -> float:
    quantile = float(special.stdtrit(len(influences) - 1, (1 + CONFIDENCE) / 2))
    return quantile * float(influences.std(ddof=1)) / sqrt(len(influences))


def estimate_percentile(values: FloatArray, of_week: npt.NDArray[np.int64], num_weeks: int) -> Figure:
    """Return the 95th percentile of values of several weeks, with the percentile interval of a bootstrap over weeks."""
    if not len(values):
        return Figure(nan)
    order = np.argsort(values, kind="stable")
    values, of_week = values[order], of_week[order]

    def find_percentile(counts: FloatArray) -> float:
        passed = np.cumsum(counts[of_week])
        return float(values[np.searchsorted(passed, TAIL * passed[-1])]) if passed[-1] else nan

    generator = np.random.default_rng(BOOTSTRAP_SEED)
    counts = generator.multinomial(num_weeks, [1 / num_weeks] * num_weeks, NUM_RESAMPLES).astype(np.float64)
    ends = np.nanquantile([find_percentile(drawn) for drawn in counts], [(1 - CONFIDENCE) / 2, (1 + CONFIDENCE) / 2])
    return Figure(find_percentile(np.ones(num_weeks)), *map(float, ends))


def list_choices(scenario: Scenario) -> list[Choice]:
    """Return every alternative under every policy; without `mps` where its slowdowns are not known."""
    choices = [
        Choice(scenario=scenario, name=name, policy=policy)
        for name in scenario.alternatives
        for policy in dict.fromkeys(scenario.policies)
    ]
    return [choice for choice in choices if choice.policy != "mps" or choice.kind.slowdowns.get("mps")]


def tabulate_outcomes(scenario: Scenario) -> pd.DataFrame:
    """Simulate every choice; return a row for everybody and for each group of users (`users`).

    Figures are those of docs/access.md, each with NAME_low and NAME_high. Of everybody alone: cost (of a week),
    samples_per_money, utilisation; and of those in BEST, NAME_to_best.
    """
    rows: list[dict[str, Any]] = []
    for choice in list_choices(scenario):
        weeks = [simulate_week(choice, number) for number in range(scenario.weeks)]
        jobs = pd.concat([jobs for jobs, _ in weeks], keys=range(len(weeks)), names=["week"]).reset_index("week")
        rows += describe_weeks(choice, jobs, np.array([counts for _, counts in weeks]))
    return tabulate(rows)


def describe_weeks(choice: Choice, jobs: pd.DataFrame, counts: FloatArray) -> list[dict[str, Any]]:
    """Return the rows of a choice, with ratios still; of each week jobs and counts are as `simulate_week` has them."""
    scenario, ones = choice.scenario, np.ones(len(counts))
    samples = counts[:, 2:] * choice.kind.samples_per_second * 3600
    busy_share = counts[:, 1] / (HOURS_PER_WEEK * choice.alternative.gpus)
    costs = counts[:, 0] * choice.price_per_hour
    if choice.alternative.buy is not None:
        costs = compute_bought_cost(choice.alternative.buy, busy_share)
    budget = scenario.budget_per_week
    is_stopped = choice.most_paid_hours < inf  # by the budget: what runs then goes on, and may cost a little more
    name: dict[str, Any] = {"alternative": choice.name, "policy": choice.policy}
    everybody = {
        "users": EVERYBODY,
        "cost": Ratio(costs, ones),
        "samples_per_money": Ratio(samples.sum(axis=1), costs),
        "utilisation": Ratio(busy_share, ones),
        "over_budget": "yes" if budget is not None and not is_stopped and costs.mean() > budget else "",
    }
    owners = np.repeat(list(scenario.users), [group.number for group in scenario.users.values()])
    of_jobs = owners[jobs["user"]]
    groups = [
        {"users": users} | _measure(jobs[of_jobs == users], samples[:, owners == users]) for users in scenario.users
    ]
    return [name | row for row in (everybody | _measure(jobs, samples), *groups)]


def _measure(jobs: pd.DataFrame, samples: FloatArray) -> dict[str, Any]:
    week, num_weeks = jobs["week"].to_numpy(), len(samples)
    num_jobs = np.bincount(week, minlength=num_weeks).astype(np.float64)

    def average(values: "pd.Series[float]") -> Ratio:
        return Ratio(np.asarray(np.bincount(week, values, num_weeks), np.float64), num_jobs)

    return {
        "wait_hours": average(jobs["wait"]),
        "wait_p95_hours": estimate_percentile(jobs["wait"].to_numpy(), week, num_weeks),
        "turnaround_hours": average(jobs["turnaround"]),
        "slowdown": average((jobs["turnaround"] / jobs["alone"].clip(lower=BOUND_HOURS)).clip(lower=1.0)),
        "samples_per_user": Ratio(samples.mean(axis=1), np.ones(num_weeks)),
        "num_jobs": len(jobs),
        "num_unended": int((~jobs["has_ended"]).sum()),
    }


def tabulate(rows: list[dict[str, Any]]) -> pd.DataFrame:
    """Return the rows, each with how its choice compares with the best, with a column for each end of an interval."""
    for name, choose in BEST.items():
        known = [row for row in rows if row["users"] == EVERYBODY and not row["over_budget"] and row[name].center > 0]
        best = choose((row[name] for row in known), key=lambda ratio: ratio.center, default=None)
        for row in known:
            row[f"{name}_to_best"] = row[name].compare(best)
    for row in rows:
        for name, value in list(({f"{name}_to_best": Figure(nan) for name in BEST} | row).items()):
            figure = value.estimate() if isinstance(value, Ratio) else value
            if isinstance(figure, Figure):
                row |= zip((name, f"{name}_low", f"{name}_high"), figure, strict=True)
    return pd.DataFrame(rows)


def compute_bought_cost(buy: Buy, busy_share: FloatArray | float) -> Any:
    """Return what a bought machine costs in a week in which so large a part of its GPUs' hours had a job."""
    per_year = buy.price / buy.lifetime_years + buy.upkeep_per_year
    watts = buy.idle_watts + (buy.watts - buy.idle_watts) * busy_share
    electricity = watts / 1000 * HOURS_PER_WEEK * (buy.electricity_per_kwh or 0.0)
    return per_year / WEEKS_PER_YEAR + electricity


def tabulate_break_even(scenario: Scenario) -> pd.DataFrame:
    """Return at how many hours of work a week a bought machine costs what the same samples cost on rented GPUs.

    Of each pair of `bought` and `rented`; `most_hours` is all that there are. Without the hours in which rented GPUs
    start or are idle, or what interruptions lose. NaN where the electricity of an hour alone costs more than the rent.
    """
    rows = []
    choices = [Choice(scenario=scenario, name=name, policy="exclusive") for name in scenario.alternatives]
    for bought, rented in product(choices, choices):
        if bought.alternative.buy is not None and rented.alternative.rent is not None:
            most = HOURS_PER_WEEK * bought.alternative.gpus
            idle, busy = (compute_bought_cost(bought.alternative.buy, share) for share in (0.0, 1.0))
            saved_per_hour = rented.price_per_hour * bought.speed / rented.speed - (busy - idle) / most
            rows.append((bought.name, rented.name, idle / saved_per_hour if saved_per_hour > 0 else nan, most))
    return pd.DataFrame(rows, columns=["bought", "rented", "hours", "most_hours"])


HOUR = Unit(label="h", size=1.0)
MILLION = Unit(label="millions", size=1e6)
MAX_NAMED = 5


def answer_question(scenario: Scenario, outcomes: pd.DataFrame) -> Iterator[str]:
    """Yield the best choices within the budget, by samples for the money and by turnaround, and what figures are."""
    subjects = (f"Most samples per {scenario.currency}", "Shortest turnaround")
    for subject, name in zip(subjects, BEST, strict=True):
        ratio = f"{name}_to_best"
        alike = outcomes[(outcomes[f"{ratio}_low"] <= 1) & (outcomes[f"{ratio}_high"] >= 1)]
        alike = alike.sort_values(ratio, ascending=BEST[name] is min, kind="stable")
        best, *others = list(alike["alternative"] + ", " + alike["policy"]) or ["none within the budget"]
        yield f"{subject}: {best}" + (f"; not told apart: {join_some(others, MAX_NAMED)}." if others else ".")
    yield (
        f"Means of {scenario.weeks} simulated weeks (seed {scenario.seed}) with 95 % intervals over weeks, which say "
        "how well the simulation knows its mean, not how well the scenario describes the lab. Where many jobs have not "
        "ended, queues grow week by week. docs/access.md says what is not modelled."
    )


def make_tables(scenario: Scenario, outcomes: pd.DataFrame) -> list[Table]:
    everybody = outcomes[outcomes["users"] == EVERYBODY]
    names = [text_column("alternative", "alternative"), text_column("policy", "policy")]
    times = [
        text_column("users", "users"),
        *_list_figure("wait", "wait_hours", HOUR),
        *_list_figure("p95 wait", "wait_p95_hours", HOUR, priority=2),
        *_list_figure("turnaround", "turnaround_hours", HOUR),
        *_list_figure("times the best", "turnaround_hours_to_best", priority=3),
        *_list_figure("slowdown", "slowdown", priority=1),
        *_list_figure("samples per user and week", "samples_per_user", MILLION, priority=4),
        Column(title="not ended", sources=("num_unended", "num_jobs"), format="{:,} of {:,}".format, align="right"),
    ]
    amounts = [
        *_list_figure("a week", "cost", Unit(label=scenario.currency, size=1.0)),
        text_column("over the budget", "over_budget", is_optional=True),
        *_list_figure(f"samples per {scenario.currency}", "samples_per_money", MILLION),
        *_list_figure("times the best", "samples_per_money_to_best", priority=3),
        *_list_figure("GPUs with a job", "utilisation", PERCENT, priority=1),
    ]
    pairs = [
        text_column("bought", "bought"),
        text_column("rented", "rented"),
        number_column("break-even", "hours", HOUR),
        number_column("all there are", "most_hours", HOUR),
    ]
    break_even = "From so many hours of jobs a week a bought machine is cheaper than the same samples rented"
    keys = [text_column("key", "key"), text_column("value", "value"), text_column("from", "origin")]
    grounds = pd.DataFrame(list_grounds(scenario), columns=["key", "value", "origin"]).drop_duplicates()
    tables = [
        make_table(
            "How long users wait, and what they get", names + times, outcomes if len(scenario.users) > 1 else everybody
        ),
        make_table("What it costs", names + amounts, everybody),
        make_table(break_even, pairs, tabulate_break_even(scenario)),
        make_table("What this rests on beside the file", keys, grounds),
    ]
    return [table for table in tables if len(table.rows)]


def _list_figure(title: str, name: str, unit: Unit = RATIO, *, priority: int = ESSENTIAL) -> list[Column]:
    interval = interval_column("95 % interval", f"{name}_low", f"{name}_high", unit, priority=min(priority, 5))
    return [number_column(title, name, unit, priority=priority), interval]


def list_grounds(scenario: Scenario) -> Iterator[tuple[str, str, str]]:
    """Yield key, value and origin of speeds, slowdowns and prices, and of what the file leaves open."""
    for name, kind in scenario.kinds.items():
        yield f"kinds.{name}.samples_per_second", format_significant(kind.samples_per_second), kind.source
    for name, one in scenario.alternatives.items():
        if one.rent is not None:
            yield f"alternatives.{name}.rent.price_per_hour", str(one.rent.price_per_hour), one.rent.source
    for choice in list_choices(scenario):
        if len(choice.rates) > 1:
            origin = "assumed: n tenants take n times as long"
            if choice.kind.slowdowns.get(choice.policy):
                origin = "straight lines between those of the file"
            slowdowns = (f"{number}: {format_significant(1 / rate)}" for number, rate in enumerate(choice.rates, 1))
            yield f"kinds.{choice.alternative.kind}.slowdowns.{choice.policy}", ", ".join(slowdowns), origin
    stated, everything = (
        pd.json_normalize(scenario.model_dump(mode="json", exclude_unset=is_stated)).iloc[0]
        for is_stated in (True, False)
    )
    for key, value in everything.drop(stated.index, errors="ignore").items():
        if value not in (None, {}) or str(key).endswith("checkpoint_hours"):
            yield str(key), str(value), "assumed"
