"""Define the scenario of a lab: its users and their jobs, kinds of GPUs, alternatives to compare, and policies.

Users write it as YAML (docs/access.md). Times are in hours, money in the scenario's currency.
"""

import math
from dataclasses import dataclass
from functools import cached_property
from typing import Annotated, Literal, Self, get_args

import numpy as np
from pydantic import Field, model_validator

from bench.schema.document import Document
from collector.prices.table import Price, Watts

Words = Annotated[str, Field(min_length=1, max_length=2000)]
Label = Annotated[str, Field(min_length=1, max_length=60)]
Hours = Annotated[float, Field(ge=1e-6, le=8784)]
"""From some milliseconds to a year."""
Day = Literal["mon", "tue", "wed", "thu", "fri", "sat", "sun"]
Policy = Literal["exclusive", "time-slicing", "mps", "fair-share"]
DAYS: tuple[Day, ...] = get_args(Day)
DEFAULT_POLICIES: tuple[Policy, ...] = ("exclusive", "time-slicing", "fair-share")
HOURS_PER_WEEK = 168.0
MAX_JOBS = 2_000_000
"""In all simulated weeks: at 0.1 ms each, on a core of an AMD EPYC, three minutes; more is a slip of a digit."""


class Group(Document):
    """Users who are alike."""

    number: Annotated[int, Field(ge=1, le=1000)] = 1
    """How many they are."""
    job_hours: Annotated[tuple[Hours, ...], Field(min_length=1, max_length=10_000)]
    """How long a job runs alone on the GPU that `job_hours_on` names; one of them is drawn for each job."""
    spread: Literal["none", "exponential"] = "exponential"
    """A factor of mean 1 on the drawn length; `none`: lengths are as they stand in `job_hours`."""
    jobs_per_day: Annotated[float, Field(ge=1e-6, le=1e6)] | None = None
    """Of each user on each working day, at random times, whatever became of earlier jobs."""
    think_hours: Hours | None = None
    """Instead: mean working time from the end of a user's job to the next; one job at a time."""
    working_hours: tuple[Annotated[float, Field(ge=0, le=24)], Annotated[float, Field(ge=0, le=24)]] = (0.0, 24.0)
    """Jobs are submitted between these hours of the day only; they run at any time."""
    working_days: Annotated[tuple[Day, ...], Field(min_length=1, max_length=7)] = DAYS
    checkpoint_hours: Hours | None = None
    """How much progress lies between two checkpoints, in hours alone on the GPU. None: nothing is saved."""
    quota: Annotated[int, Field(ge=0, le=1000)] = 0
    """Of `fair-share`: GPUs that the queue of each user is guaranteed; what nobody is guaranteed, all borrow."""
    weight: Annotated[float, Field(ge=0.1, le=10)] = 1.0
    """Of `fair-share`: the weight of each user's queue among those that borrow."""

    @model_validator(mode="after")
    def _check(self) -> Self:
        if (self.jobs_per_day is None) == (self.think_hours is None):
            raise ValueError("jobs_per_day: give either jobs_per_day or think_hours, the time from a job to the next")
        if self.working_hours[0] >= self.working_hours[1]:
            raise ValueError("working_hours: begin after they end; give the earlier hour first, as in [9, 18]")
        return self

    @property
    def hours_per_day(self) -> float:
        return self.working_hours[1] - self.working_hours[0]

    @property
    def jobs_per_week(self) -> float:
        """Of all its users; of those who wait for their jobs, if these took no time: the most that can be."""
        per_day = self.jobs_per_day or self.hours_per_day / (self.think_hours or math.inf)
        return self.number * per_day * len(set(self.working_days))


class Kind(Document):
    """One kind of GPU: its speed, and how slow it is for several tenants."""

    samples_per_second: Annotated[float, Field(ge=1e-9, le=1e15)]
    """Of a job alone on it; ratios between kinds say how long a job takes on each."""
    source: Words = "not said"
    """Where the figures are from."""
    slowdowns: dict[Policy, dict[Annotated[int, Field(ge=2, le=64)], Annotated[float, Field(ge=0.1, le=1000)]]] = {}
    """By way of sharing (`time-slicing`, `mps`) and number of tenants: step time of each over that of one alone.
    Between the numbers straight lines; beyond the last, all together get no more done."""
    max_tenants: Annotated[int, Field(ge=2, le=64)] = 4
    """How many jobs fit into its memory at once."""


class Buy(Document):
    """What a machine costs that is bought, all of it together: its GPUs and their host."""

    price: Price
    lifetime_years: Annotated[float, Field(ge=0.01, le=50)]
    """The price is spread evenly over it."""
    watts: Watts = 0.0
    """Drawn from the wall with all GPUs at work, cooling included."""
    idle_watts: Watts = 0.0
    """Drawn with none at work."""
    electricity_per_kwh: Annotated[float, Field(ge=0, le=1e12)] | None = None
    upkeep_per_year: Annotated[float, Field(ge=0, le=1e12)] = 0.0
    """Rack space, maintenance, administration."""

    @model_validator(mode="after")
    def _check(self) -> Self:
        if self.idle_watts > self.watts:
            raise ValueError("idle_watts: are more than watts; watts are drawn with all GPUs at work")
        if self.watts and self.electricity_per_kwh is None:
            raise ValueError("electricity_per_kwh: is missing; watts cost what a kilowatt-hour costs")
        return self


class Rent(Document):
    """What a rented GPU costs, with its host."""

    price_per_hour: Price | None = None
    """Of one GPU. None: the lowest in the price table."""
    source: Words = "not said"
    """Where the price is from."""
    machine: Label | None = None
    """The machine type in the price table. None: any that has GPUs of this kind."""
    region: Label | None = None
    """None: any."""
    interruptions_per_hour: Annotated[float, Field(ge=1e-6, le=1000)] | None = None
    """Of a spot GPU that runs, at any time as likely as at any other. None: it is on demand, and not interrupted."""
    always_on: bool = False
    """Paid for all hours of the week, used or not."""
    start_minutes: Annotated[float, Field(ge=0, le=1440)] = 5.0
    """From the request for a node with a GPU until a job runs; paid."""
    # As `--scale-down-unneeded-time` of the Kubernetes cluster autoscaler:
    # https://github.com/kubernetes/autoscaler/blob/master/cluster-autoscaler/FAQ.md, seen 2026-11-22.
    idle_minutes: Annotated[float, Field(ge=0, le=10_080)] = 10.0
    """How long a GPU is kept without a job; paid."""


class Alternative(Document):
    """One way to get GPUs."""

    kind: Label
    gpus: Annotated[int, Field(ge=1, le=256)]
    """Rented ones are started as needed, so many at most."""
    buy: Buy | None = None
    rent: Rent | None = None

    @model_validator(mode="after")
    def _check(self) -> Self:
        if (self.buy is None) == (self.rent is None):
            raise ValueError("buy: give either buy or rent")
        return self


class Scenario(Document):
    """A question about access to GPUs, with everything that its answer depends on."""

    question: Words
    """Stands above the answer."""
    currency: Annotated[str, Field(pattern=r"^[A-Z]{3}$")] = "USD"
    budget_per_week: Price | None = None
    """Once the rent of a week is so much, no job is started until the next week; those that run go on. Bought and
    always-on GPUs are held against it."""
    job_hours_on: Label
    """The kind of GPU that `job_hours` are of."""
    kinds: Annotated[dict[Label, Kind], Field(min_length=1, max_length=100)]
    users: Annotated[dict[Label, Group], Field(min_length=1, max_length=100)]
    alternatives: Annotated[dict[Label, Alternative], Field(min_length=1, max_length=50)]
    policies: Annotated[tuple[Policy, ...], Field(min_length=1, max_length=4)] = DEFAULT_POLICIES
    weeks: Annotated[int, Field(ge=5, le=10_000)] = 30
    """Independent weeks that are simulated for each alternative and policy. Fewer than five leave Student's t with a
    quantile above 2.8, and the bootstrap of a percentile with too few weeks to draw."""
    warm_up_weeks: Annotated[int, Field(ge=1, le=100)] = 4
    """Simulated before each of them and not counted: the lab does not begin with empty queues. A queue forgets that it
    began empty at the rate (1 - sqrt(load))^2 / service time (relaxation time of M/M/1: J. W. Cohen, The Single Server
    Queue, 1982): with jobs of 4 h on one GPU and a load of 0.8 by a factor of e in 15 days. In 4 weeks 85 % of the
    beginning are forgotten there, and all of it at lower loads."""
    seed: Annotated[int, Field(ge=0, le=2**31)] = 1

    @model_validator(mode="after")
    def _check(self) -> Self:
        kinds = f"kinds are {', '.join(self.kinds)}"
        if self.job_hours_on not in self.kinds:
            raise ValueError(f"job_hours_on: there is no kind {self.job_hours_on!r}; {kinds}")
        for name, alternative in self.alternatives.items():
            if alternative.kind not in self.kinds:
                raise ValueError(f"alternatives.{name}.kind: there is no kind {alternative.kind!r}; {kinds}")
        used = [self.kinds[alternative.kind] for alternative in self.alternatives.values()]
        if "mps" in self.policies and not any(kind.slowdowns.get("mps") for kind in used):
            raise ValueError(
                "policies: mps needs the slowdowns of a kind of GPU with it; give `slowdowns`, or leave it out"
            )
        guaranteed = sum(group.quota * group.number for group in self.users.values())
        smallest = min(alternative.gpus for alternative in self.alternatives.values())
        if "fair-share" in self.policies and guaranteed > smallest:
            message = f"the quotas guarantee {guaranteed} GPUs to all users, and an alternative has only {smallest}"
            raise ValueError(f"users: {message}; lower `quota`, which is of each user")
        per_week = (
            sum(group.jobs_per_week for group in self.users.values()) * len(self.alternatives) * len(self.policies)
        )
        if (num_jobs := per_week * self.weeks * (1 + self.warm_up_weeks)) > MAX_JOBS:
            message = f"about {num_jobs:,.0f} jobs would be simulated, more than {MAX_JOBS:,}"
            raise ValueError(f"weeks: {message}; lower weeks, warm_up_weeks or the number of users, jobs or choices")
        return self


@dataclass(frozen=True, kw_only=True)
class Choice:
    """One alternative under one policy."""

    scenario: Scenario
    name: str
    """Of the alternative."""
    policy: Policy

    @property
    def alternative(self) -> Alternative:
        return self.scenario.alternatives[self.name]

    @property
    def kind(self) -> Kind:
        return self.scenario.kinds[self.alternative.kind]

    @property
    def speed(self) -> float:
        """Of this kind of GPU over that of the one that `job_hours` are of."""
        return self.kind.samples_per_second / self.scenario.kinds[self.scenario.job_hours_on].samples_per_second

    @property
    def price_per_hour(self) -> float:
        return (self.alternative.rent and self.alternative.rent.price_per_hour) or 0.0

    @property
    def most_paid_hours(self) -> float:
        """How many hours of rent the budget of a week pays: what is paid for anyway is not saved by leaving it idle."""
        rent, budget = self.alternative.rent, self.scenario.budget_per_week
        return math.inf if rent is None or rent.always_on or budget is None else budget / self.price_per_hour

    @cached_property
    def rates(self) -> tuple[float, ...]:
        """The work that each of 1, 2, ... tenants gets done in an hour, in hours alone: one over the slowdown.

        Slowdowns are on straight lines between the known ones; beyond the last, and where none is known, all tenants
        together get no more done.
        """
        if self.policy in ("exclusive", "fair-share"):
            return (1.0,)
        known = {1: 1.0} | self.kind.slowdowns.get(self.policy, {})
        numbers = sorted(known)
        tenants = np.arange(1, self.kind.max_tenants + 1)
        slowdowns = np.interp(tenants, numbers, [known[number] for number in numbers])
        return tuple((1 / slowdowns / np.maximum(1.0, tenants / numbers[-1])).tolist())
