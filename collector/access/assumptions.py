"""List what an answer rests on, in sentences: what the scenario states, what was measured, what is assumed."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Literal

from collector.access.choices import HourlyPrice, KindFigures, count_tenants, find_rates
from collector.access.outcomes import compute_fixed_cost
from collector.access.scenario import DAYS, Alternative, Group, Rent, Scenario
from collector.units import format_significant

Standing = Literal["stated", "measured", "assumed", "not modelled"]
NOT_MODELLED = (
    "GPUs that fail or cannot be had when they are wanted; copying of data; memory that does not suffice; prices that "
    "change; jobs on several GPUs; what one tenant does to another beyond the mean slowdown."
)


def show(stated: float) -> str:
    """Return a number as somebody would state it: `0.35`, `30,000`, `4`."""
    return f"{stated:,.10g}"


@dataclass(frozen=True, kw_only=True)
class Assumption:
    """One thing that the answer rests on."""

    standing: Standing
    text: str


def list_assumptions(
    scenario: Scenario, figures: Mapping[str, KindFigures], prices: Mapping[str, HourlyPrice]
) -> list[Assumption]:
    """Return what the answer to a scenario rests on, in the order of the scenario."""
    return [
        *(found for group in scenario.users for found in _list_of_group(group, scenario)),
        *_list_of_kinds(scenario, figures),
        *(
            found
            for alternative in scenario.alternatives
            for found in _list_of_alternative(alternative, scenario, prices)
        ),
        *_list_of_method(scenario),
    ]


def _list_of_group(group: Group, scenario: Scenario) -> Iterator[Assumption]:
    users = f"{group.name}: {group.number} {'user' if group.number == 1 else 'users'}"
    if group.jobs_per_day is not None:
        rhythm = f"each submits {show(group.jobs_per_day)} jobs a working day at random times"
    else:
        rhythm = (
            f"each submits a job {show(group.think_hours or 0)} working hours on average after the last "
            "one's end, exponentially spread"
        )
    lengths = ", ".join(map(show, group.job_hours[:10])) + (", ..." if len(group.job_hours) > 10 else "")
    yield Assumption(
        standing="stated", text=f"{users}; {rhythm}; a job takes {lengths} h alone on a {scenario.job_hours_on}."
    )
    spread = {
        "none": "exactly those lengths",
        "exponential": "exponentially distributed around the lengths",
        "lognormal": f"lognormal around the lengths, coefficient of variation {show(group.cv or 0)}",
    }[group.spread]
    yield _of_key(group, "spread", f"{group.name}: {spread}.")
    first, last = (show(hour) for hour in group.working_hours)
    days = "all days" if len(group.working_days) == len(DAYS) else ", ".join(group.working_days)
    yield _of_key(group, "working_hours", f"{group.name}: jobs are submitted from {first} to {last} h on {days}.")
    saved = (
        "nothing of an interrupted job is saved: it begins anew"
        if group.checkpoint_hours is None
        else f"an interrupted job goes on from a checkpoint, one every {show(group.checkpoint_hours)} h"
    )
    yield _of_key(group, "checkpoint_hours", f"{group.name}: {saved}.")


def _of_key(given: Group | Rent, key: str, text: str) -> Assumption:
    return Assumption(standing="stated" if key in given.model_fields_set else "assumed", text=text)


def _list_of_kinds(scenario: Scenario, figures: Mapping[str, KindFigures]) -> Iterator[Assumption]:
    for name, found in figures.items():
        source = f" ({found.source})" if found.source else ", no source given"
        speed = format_significant(found.samples_per_second)
        yield Assumption(
            standing="measured" if found.origin == "measured" else "stated",
            text=f"{name}: a job alone gets {speed} samples/s{source}; all jobs are in that proportion.",
        )
    used = {alternative.kind for alternative in scenario.alternatives}
    for name in figures:
        if name in used:
            yield from _list_of_sharing(name, scenario, figures[name])


def _list_of_sharing(name: str, scenario: Scenario, found: KindFigures) -> Iterator[Assumption]:
    for policy in scenario.policies:
        if policy not in ("time-slicing", "mps"):
            continue
        known = found.slowdowns.get(policy)
        if known is None and policy == "mps":
            continue
        kind = scenario.kinds[name]
        slowdowns = ", ".join(
            f"{number} tenants {format_significant(1 / rate)}"
            for number, rate in enumerate(find_rates(kind, found, policy), start=1)
            if number > 1
        )
        source = (
            " (n tenants take n times as long: no figures given)"
            if known is None
            else f" ({known.source or 'no source given'}; straight lines between the known numbers)"
        )
        yield Assumption(
            standing="assumed" if known is None else known.origin,
            text=f"{name}, {policy}: slowdown of {slowdowns}{source}.",
        )
        if kind.max_tenants is None:
            most = count_tenants(kind, known)
            yield Assumption(standing="assumed", text=f"{name}, {policy}: {most} tenants fit into its memory, no more.")


def _list_of_alternative(
    alternative: Alternative, scenario: Scenario, prices: Mapping[str, HourlyPrice]
) -> Iterator[Assumption]:
    name, money = alternative.name, scenario.currency
    number = f"{alternative.gpus} {'GPU' if alternative.gpus == 1 else 'GPUs'} of kind {alternative.kind}"
    if alternative.buy is not None:
        buy = alternative.buy
        yield Assumption(
            standing="stated",
            text=f"{name}: {number} for {show(buy.price)} {money} over "
            f"{show(buy.lifetime_years)} years and {show(buy.upkeep_per_year)} a year for "
            f"upkeep, of which {show(buy.share * 100)} % are paid: "
            f"{format_significant(compute_fixed_cost(buy))} {money} a week.",
        )
        power = (
            f"{show(buy.idle_watts)} W idle to {show(buy.watts)} W at work, "
            f"{show(buy.electricity_per_kwh or 0)} {money} per kWh"
            if buy.watts
            else "its electricity costs nothing, because no watts are given"
        )
        yield Assumption(standing="stated" if buy.watts else "assumed", text=f"{name}: {power}.")
        return
    assert alternative.rent is not None  # the scenario checks it
    yield from _list_of_rent(alternative.rent, name, number, money, prices[name])


def _list_of_rent(rent: Rent, name: str, number: str, money: str, price: HourlyPrice) -> Iterator[Assumption]:
    source = f" ({price.source})" if price.source else ", no source given"
    most = "" if rent.always_on else "at most "
    yield Assumption(
        standing="stated",
        text=f"{name}: {most}{number}, each {show(price.amount)} {money} an hour with its host{source}.",
    )
    if rent.always_on:
        yield Assumption(standing="stated", text=f"{name}: paid for all hours of the week.")
    else:
        start, idle = show(rent.start_minutes), show(rent.idle_minutes)
        yield _of_key(rent, "start_minutes", f"{name}: a GPU takes {start} min to start, which are paid.")
        yield _of_key(rent, "idle_minutes", f"{name}: a GPU without a job is kept and paid for {idle} min.")
    if rent.interruptions_per_hour is not None:
        per_hour = show(rent.interruptions_per_hour)
        yield Assumption(
            standing="stated", text=f"{name}: each GPU is interrupted {per_hour} times an hour, at random."
        )


def _list_of_method(scenario: Scenario) -> Iterator[Assumption]:
    yield Assumption(
        standing="assumed",
        text="Every job uses one GPU, of which it has all (exclusive, fair-share) or which it shares (time-slicing, "
        "mps); it stays on its GPU until it ends or is interrupted.",
    )
    if "fair-share" in scenario.policies:
        yield Assumption(
            standing="assumed",
            text="fair-share: as Kueue 0.19.2 with fair sharing, a queue per user in one cohort, reclaimWithinCohort "
            "Any; a preempted job goes on from its last checkpoint.",
        )
    if scenario.budget_per_week is not None:
        budget = f"{show(scenario.budget_per_week)} {scenario.currency}"
        yield Assumption(
            standing="stated",
            text=f"Budget of {budget} a week: once the rent of a week is so much, no job is started until the next; "
            "those that run go on.",
        )
    yield Assumption(standing="not modelled", text=NOT_MODELLED)
