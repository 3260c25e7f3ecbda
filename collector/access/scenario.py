"""Define the scenario of a lab: its users and their jobs, kinds of GPUs, alternatives to compare, and policies.

Users write it as YAML (docs/access.md). Times are in hours, money in the scenario's currency.
"""

from collections.abc import Iterable
from pathlib import Path
from typing import Annotated, Any, Literal, Self, get_args

from pydantic import BeforeValidator, Field, model_validator

from bench.schema.document import Document, Price, Watts

# No control characters: what a shared scenario says is printed in a terminal, which would obey them.
PRINTABLE = r"^[^\x00-\x1f\x7f-\x9f]+$"
Words = Annotated[str, Field(min_length=1, max_length=2000, pattern=PRINTABLE)]
Label = Annotated[str, Field(min_length=1, max_length=60, pattern=PRINTABLE)]
Hours = Annotated[float, Field(ge=1e-6, le=8784)]
"""From some milliseconds to a year."""
Day = Literal["mon", "tue", "wed", "thu", "fri", "sat", "sun"]
Sharing = Literal["time-slicing", "mps"]
Policy = Literal["exclusive", "time-slicing", "mps", "fair-share"]
DAYS: tuple[Day, ...] = get_args(Day)
SCENARIOS = Path(__file__).parent / "scenarios"
"""The folder of those that come with the tool."""

DEFAULT_POLICIES: tuple[Policy, ...] = ("exclusive", "time-slicing", "fair-share")
DEFAULT_WEEKS = 30
DEFAULT_WARM_UP_WEEKS = 4
"""A queue forgets that it began empty at the rate (1 - sqrt(load))^2 / service time (relaxation time of M/M/1: J. W.
Cohen, The Single Server Queue, 1982): with jobs of 4 h on one GPU and a load of 0.8 by a factor of e in 15 days. In 4
weeks 85 % of the beginning are forgotten there, and all of it at lower loads."""
MIN_WEEKS = 5
"""Fewer leave Student's t with a quantile above 2.8, and the bootstrap of a percentile with too few weeks to draw."""
MAX_WEEKS = 10_000
DEFAULT_MAX_TENANTS = 4
"""Of one GPU, where nobody says how many fit into its memory: an assumption, and printed as one."""
DEFAULT_START_MINUTES = 5.0
"""From the request for a rented node with a GPU until its pod runs: an assumption, printed as one."""
DEFAULT_IDLE_MINUTES = 10.0
"""`--scale-down-unneeded-time` of the Kubernetes cluster autoscaler: how long a node is idle before it is removed.
https://github.com/kubernetes/autoscaler/blob/master/cluster-autoscaler/FAQ.md, seen 2026-11-22."""


def _make_list(value: Any) -> Any:
    """Return `job_hours: 3` as the list of one length; a wrong value too, to be named."""
    return tuple(value) if isinstance(value, list) else (value,) if isinstance(value, int | float | str) else value


class Group(Document):
    """Users who are alike."""

    name: Label
    number: Annotated[int, Field(ge=1, le=1000)] = 1
    job_hours: Annotated[tuple[Hours, ...], Field(min_length=1, max_length=10_000), BeforeValidator(_make_list)]
    """How long a job runs alone on the GPU that `job_hours_on` names; one of them is drawn for each job."""
    spread: Literal["none", "exponential"] = "exponential"
    """Whether a job's length varies around the drawn one, which stays the mean."""
    jobs_per_day: Annotated[float, Field(ge=1e-6, le=1e6)] | None = None
    """Of each user on each working day, whatever became of earlier jobs."""
    think_hours: Hours | None = None
    """Mean working time between the end of a user's job and the next: a user with one job at a time."""
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


class Measured(Document):
    """A cell of a run from which a kind's samples per second and slowdowns are read."""

    run: Label
    store: Words = "file://results"
    where: Annotated[tuple[Words, ...], Field(max_length=20)] = ()
    """KEY=VALUE as `benchmatrix compare --where` takes them; all must hold, and one cell alone on the GPU be left."""


class Kind(Document):
    """One kind of GPU: its speed, and how slow it is for several tenants."""

    samples_per_second: Annotated[float, Field(ge=1e-9, le=1e15)] | None = None
    """Of a job alone on it; ratios between kinds say how long a job takes on each."""
    measured: Measured | None = None
    source: Words | None = None
    """Where the figures are from."""
    slowdowns: dict[Sharing, dict[Annotated[int, Field(ge=2, le=64)], Annotated[float, Field(ge=0.1, le=1000)]]] = {}
    """By way of sharing and number of tenants: step time of each over that of one alone."""
    max_tenants: Annotated[int, Field(ge=2, le=64)] | None = None
    """How many jobs fit into its memory at once."""

    @model_validator(mode="after")
    def _check(self) -> Self:
        if (self.samples_per_second is None) == (self.measured is None):
            raise ValueError("samples_per_second: give either samples_per_second or measured, a run that says it")
        return self


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
    share: Annotated[float, Field(ge=1e-6, le=1)] = 1.0
    """What part of all this the group pays."""

    @model_validator(mode="after")
    def _check(self) -> Self:
        if self.idle_watts > self.watts:
            raise ValueError("idle_watts: are more than watts; watts are drawn with all GPUs at work")
        if self.watts and self.electricity_per_kwh is None:
            raise ValueError("electricity_per_kwh: is missing; watts cost what a kilowatt-hour costs")
        return self


class Rent(Document):
    """What a rented GPU costs, with its host: on demand, or spot where it is interrupted."""

    price_per_hour: Price | None = None
    """Of one GPU. None: that of the price table."""
    machine: Label | None = None
    """The machine type in the price table. None: the one that costs least for each of its GPUs of this kind."""
    region: Label | None = None
    """Of the machine; None: the one where it costs least."""
    spot: bool = False
    interruptions_per_hour: Annotated[float, Field(ge=1e-6, le=1000)] | None = None
    """Of one spot GPU that runs, at any time as likely as at any other."""
    always_on: bool = False
    """Paid for all hours of the week, used or not."""
    start_minutes: Annotated[float, Field(ge=0, le=1440)] = DEFAULT_START_MINUTES
    """From the request until a job runs; paid."""
    idle_minutes: Annotated[float, Field(ge=0, le=10_080)] = DEFAULT_IDLE_MINUTES
    """How long a GPU is kept without a job; paid."""

    @model_validator(mode="after")
    def _check(self) -> Self:
        if self.price_per_hour is not None and (self.machine or self.region):
            raise ValueError(
                "price_per_hour: stands instead of machine and region of the price table; give one of them"
            )
        if self.region and not self.machine:
            raise ValueError("region: is that of a machine; give the machine too, or leave both out")
        if self.spot != (self.interruptions_per_hour is not None):
            raise ValueError("interruptions_per_hour: belongs to spot: true, which needs it; give both or neither")
        return self


class Alternative(Document):
    """One way to get GPUs."""

    name: Label
    kind: Label
    gpus: Annotated[int, Field(ge=1, le=256)]
    """How many; of rented ones that are not always on the most at once."""
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
    currency: Annotated[str, Field(pattern=r"^[A-Z]{3}$")] = "USD"
    prices: Words | None = None
    """The price table: a file of one's own. None: the one that comes with the tool."""
    budget_per_week: Price | None = None
    """No job is started on a rented GPU once the week has cost so much; it waits for the next week."""
    job_hours_on: Label
    """The kind of GPU that `job_hours` are of."""
    kinds: Annotated[dict[Label, Kind], Field(min_length=1, max_length=100)]
    users: Annotated[tuple[Group, ...], Field(min_length=1, max_length=100)]
    alternatives: Annotated[tuple[Alternative, ...], Field(min_length=1, max_length=50)]
    policies: Annotated[tuple[Policy, ...], Field(min_length=1, max_length=4)] = DEFAULT_POLICIES
    weeks: Annotated[int, Field(ge=MIN_WEEKS, le=MAX_WEEKS)] = DEFAULT_WEEKS
    """Independent weeks that are simulated for each alternative and policy."""
    warm_up_weeks: Annotated[int, Field(ge=1, le=100)] = DEFAULT_WARM_UP_WEEKS
    """Simulated before each of them and not counted: the lab does not begin with empty queues."""
    seed: Annotated[int, Field(ge=0, le=2**31)] = 1

    @model_validator(mode="after")
    def _check(self) -> Self:
        for key, names in (
            ("users", [group.name for group in self.users]),
            ("alternatives", [alternative.name for alternative in self.alternatives]),
            ("policies", list(self.policies)),
        ):
            check_unique(key, names)
        kinds = f"kinds are {', '.join(self.kinds)}"
        if self.job_hours_on not in self.kinds:
            raise ValueError(f"job_hours_on: there is no kind {self.job_hours_on!r}; {kinds}")
        for index, alternative in enumerate(self.alternatives):
            if alternative.kind not in self.kinds:
                raise ValueError(f"alternatives[{index}].kind: there is no kind {alternative.kind!r}; {kinds}")
        guaranteed = sum(group.quota * group.number for group in self.users)
        smallest = min(alternative.gpus for alternative in self.alternatives)
        if "fair-share" in self.policies and guaranteed > smallest:
            raise ValueError(
                f"users: the quotas guarantee {guaranteed} GPUs to the users together, and an alternative has only "
                f"{smallest}; lower `quota`, which is of each user"
            )
        return self


def check_unique(key: str, names: Iterable[str]) -> None:
    """Raise ValueError, in words that begin with the key, if a name stands twice."""
    seen = set()
    for name in names:
        if name in seen:
            raise ValueError(f"{key}: {name!r} stands twice; give each another name")
        seen.add(name)
