"""List what is compared: every alternative under every policy, with rates, rent and the origin of each figure."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from collector.access.gpus import Renting
from collector.access.scenario import DEFAULT_MAX_TENANTS, Alternative, Kind, Policy, Scenario, Sharing
from collector.access.simulation import Setting

Origin = Literal["stated", "measured", "assumed"]
MINUTES_PER_HOUR = 60.0


@dataclass(frozen=True, kw_only=True)
class Slowdowns:
    """Of one way of sharing: step time with so many tenants over that of one alone."""

    by_tenants: Mapping[int, float]
    origin: Origin
    source: str = ""


@dataclass(frozen=True, kw_only=True)
class KindFigures:
    """The speed of one kind of GPU and its slowdowns, wherever they are from."""

    samples_per_second: float
    """Of a job alone."""
    origin: Origin
    source: str = ""
    slowdowns: Mapping[Sharing, Slowdowns]


@dataclass(frozen=True, kw_only=True)
class HourlyPrice:
    """What an hour of a rented GPU with its host costs, in the scenario's currency."""

    amount: float
    source: str = ""


@dataclass(frozen=True, kw_only=True)
class Choice:
    """One alternative under one policy."""

    alternative: Alternative
    policy: Policy
    setting: Setting
    samples_per_hour: float
    """Of one GPU with one job."""
    price_per_hour: float | None
    """Of a rented GPU; None for a bought one."""

    @property
    def name(self) -> str:
        """The alternative with the policy: `rent T4s, exclusive`."""
        return f"{self.alternative.name}, {self.policy}"


@dataclass(frozen=True, kw_only=True)
class LeftOut:
    """An alternative that cannot be had under a policy, with the reason."""

    name: str
    reason: str


def list_choices(
    scenario: Scenario, figures: Mapping[str, KindFigures], prices: Mapping[str, HourlyPrice]
) -> tuple[list[Choice], list[LeftOut]]:
    """Return every alternative under every policy, and what is left out.

    `figures` by the name of a kind, `prices` by the name of an alternative, of the rented ones.
    """
    choices, left_out = [], []
    for alternative in scenario.alternatives:
        kind = figures[alternative.kind]
        for policy in scenario.policies:
            if policy == "mps" and "mps" not in kind.slowdowns:
                reason = f"the slowdowns of {alternative.kind} with MPS are not known, and nothing stands for them"
                left_out.append(LeftOut(name=f"{alternative.name}, {policy}", reason=reason))
                continue
            rates = find_rates(scenario.kinds[alternative.kind], kind, policy)
            price = prices.get(alternative.name)
            choices.append(
                Choice(
                    alternative=alternative,
                    policy=policy,
                    setting=_make_setting(scenario, figures, alternative, policy, rates, price),
                    samples_per_hour=kind.samples_per_second * 3600,
                    price_per_hour=None if price is None else price.amount,
                )
            )
    return choices, left_out


def _make_setting(
    scenario: Scenario,
    figures: Mapping[str, KindFigures],
    alternative: Alternative,
    policy: Policy,
    rates: tuple[float, ...],
    price: HourlyPrice | None,
) -> Setting:
    rent = alternative.rent
    of_lengths = figures[scenario.job_hours_on].samples_per_second
    return Setting(
        groups=scenario.users,
        policy=policy,
        num_gpus=alternative.gpus,
        rates=rates,
        speed=figures[alternative.kind].samples_per_second / of_lengths,
        renting=None
        if rent is None
        else Renting(
            start_hours=rent.start_minutes / MINUTES_PER_HOUR,
            idle_hours=rent.idle_minutes / MINUTES_PER_HOUR,
            interruptions_per_hour=rent.interruptions_per_hour or 0.0,
            is_always_on=rent.always_on,
        ),
        price_per_hour=0.0 if price is None else price.amount,
        # What is paid for anyway is not saved by leaving it idle.
        budget_per_week=None if rent is None or rent.always_on else scenario.budget_per_week,
        warm_up_weeks=scenario.warm_up_weeks,
        seed=scenario.seed,
    )


def find_rates(kind: Kind, figures: KindFigures, policy: Policy) -> tuple[float, ...]:
    """Return the work that each of 1, 2, ... tenants gets done in an hour, up to the most that a policy allows."""
    if policy in ("exclusive", "fair-share"):
        return (1.0,)
    sharing: Sharing = "mps" if policy == "mps" else "time-slicing"
    known = figures.slowdowns.get(sharing)
    most = count_tenants(kind, known)
    if known is None:
        return tuple(1 / number for number in range(1, most + 1))
    return tuple(1 / interpolate_slowdown(known.by_tenants, number) for number in range(1, most + 1))


def count_tenants(kind: Kind, known: Slowdowns | None) -> int:
    """Return how many tenants a GPU may have: as stated, else the most of which a slowdown is known."""
    if kind.max_tenants is not None:
        return kind.max_tenants
    return max(known.by_tenants) if known is not None else DEFAULT_MAX_TENANTS


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
