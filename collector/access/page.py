"""Answer a scenario's question in sentences, with tables and all that the answer rests on."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from math import isclose, isnan
from typing import Any, Literal

import pandas as pd

from collector.access.jobs import HOURS_PER_WEEK
from collector.access.outcomes import (
    Choice,
    Figure,
    HourlyPrice,
    KindFigures,
    Outcome,
    Ratio,
    compare_ratios,
    compute_break_even_hours,
    compute_fixed_cost,
    compute_load,
    count_tenants,
    estimate_ratio,
    find_rates,
)
from collector.access.scenario import DAYS, Alternative, Group, Rent, Scenario
from collector.tables.columns import text_column
from collector.tables.table import ESSENTIAL, Column, Table, make_table
from collector.units import PERCENT, RATIO, Unit, format_number, format_significant
from collector.visible_text import escape_markdown

HOUR = Unit(label="h", size=1.0)
MILLION = Unit(label="millions", size=1e6)
MAX_TIED = 5
"""Choices that a headline names where none is told apart: more is no sentence, and the tables have all."""
NOT_MODELLED = (
    "GPUs that fail or cannot be had when they are wanted; copying of data; memory that does not suffice; prices that "
    "change; jobs on several GPUs; what one tenant does to another beyond the mean slowdown."
)
Standing = Literal["stated", "measured", "assumed", "not modelled"]
Assumption = tuple[Standing, str]


@dataclass(frozen=True, kw_only=True)
class Report:
    """All that is said about a scenario."""

    scenario: Scenario
    figures: Mapping[str, KindFigures]
    prices: Mapping[str, HourlyPrice]
    outcomes: Sequence[Outcome]
    left_out: Mapping[str, str]


def answer_question(scenario: Scenario, outcomes: Sequence[Outcome]) -> tuple[str, list[str]]:
    """Return which choice within the budget gives most samples for the money and the shortest turnaround, and why."""
    costs = [*_describe_costs(scenario, outcomes), *_describe_break_even(outcomes)]
    within = [outcome for outcome in outcomes if not is_over_budget(scenario, outcome)]
    known = [one for one in within if one.samples_for_money.center > 0 and one.turnarounds.center > 0]
    if not known:
        reason = "within the budget" if scenario.budget_per_week is not None else "for which the weeks give figures"
        return f"There is no alternative {reason}.", costs
    thrifty = _find_best(known, lambda outcome: -outcome.samples_for_money.center)
    fast = _find_best(known, lambda outcome: outcome.turnarounds.center)
    both = [outcome for outcome in thrifty if any(outcome is other for other in fast)]
    thrifty, fast = both or thrifty, both or fast
    money = scenario.currency
    headline = _write_headline([one.choice for one in thrifty], [one.choice for one in fast], money)
    more = _compare(f"Samples per {money}", thrifty[0], known, lambda outcome: outcome.samples_for_money, sign=-1)
    sooner = _compare("Hours from submission to end", fast[0], known, lambda outcome: outcome.turnarounds, sign=1)
    return headline, [more, sooner, *costs]


def _find_best(known: Sequence[Outcome], measure: Callable[[Outcome], float]) -> list[Outcome]:
    """Return the outcomes with the least figure: several where nothing but their order in the file tells them apart."""
    least = min(map(measure, known))
    return [outcome for outcome in known if isclose(measure(outcome), least)]


def _write_headline(thrifty: Sequence[Choice], fast: Sequence[Choice], money: str) -> str:
    most, shortest = f"most samples per {money}", "the shortest time from submission to end"
    if thrifty == fast and len(fast) > 1:
        return f"None of them is told apart: {_join_names(fast)} give equally {most} and equally {shortest}."
    if len(thrifty) > 1 or len(fast) > 1 or thrifty[0].alternative.name != fast[0].alternative.name:
        gives = "give equally" if len(thrifty) > 1 else "gives"
        equally = "equally " if len(fast) > 1 else ""
        what = f"{_join_names(thrifty)}, {gives} {most}; {_join_names(fast)}, {equally}{shortest}"
        return f"It depends on what counts: {what}."
    if thrifty[0].policy == fast[0].policy:
        return f"{thrifty[0].name}: it gives {most} and {shortest}."
    return f"{thrifty[0].alternative.name}: it gives {most} ({thrifty[0].policy}) and {shortest} ({fast[0].policy})."


def _join_names(choices: Sequence[Choice]) -> str:
    names = sorted(choice.name for choice in choices)
    more = [f"{len(names) - MAX_TIED} more"] if len(names) > MAX_TIED else []
    return " and ".join([*names[:MAX_TIED], *more])


def is_over_budget(scenario: Scenario, outcome: Outcome) -> bool:
    """Return whether a choice costs more than the budget; where the budget stops jobs, it does not."""
    if scenario.budget_per_week is None or outcome.choice.setting.budget_per_week is not None:
        return False
    return outcome.figures["cost"].center > scenario.budget_per_week


def _compare(
    subject: str, best: Outcome, known: Sequence[Outcome], find_ratio: Callable[[Outcome], Ratio], *, sign: int
) -> str:
    """Return the figure of the best choice, and how the best policy of each other alternative relates to it.

    Of one alternative alone, how its other policies do. `sign` is 1 where less is better, -1 where more is.
    """
    one = len({outcome.choice.alternative.name for outcome in known}) == 1
    others: dict[str, Outcome] = {}
    for outcome in sorted(known, key=lambda outcome: sign * find_ratio(outcome).center):
        others.setdefault(outcome.choice.policy if one else outcome.choice.alternative.name, outcome)
    text = f"{subject}: {best.choice.name} {format_figure(estimate_ratio(find_ratio(best)))}"
    for outcome in others.values():
        if outcome is not best:
            ratio = compare_ratios(find_ratio(outcome), find_ratio(best))
            same = ", which is no difference shown" if ratio.low <= 1 <= ratio.high else ""
            text += f"; {outcome.choice.name}: {format_figure(ratio)} times that{same}"
    return f"{text}."


def _describe_costs(scenario: Scenario, outcomes: Sequence[Outcome]) -> Iterator[str]:
    """Return what each alternative costs a week, from its cheapest policy to its dearest, against the budget."""
    for alternative in scenario.alternatives:
        own = [outcome for outcome in outcomes if outcome.choice.alternative.name == alternative.name]
        if own:
            amounts = [format_significant(cost) for cost in sorted(one.figures["cost"].center for one in own)]
            over = [outcome.choice.policy for outcome in own if is_over_budget(scenario, outcome)]
            verdict = f", over the budget with {', '.join(over)}" if over else ""
            span = " to ".join(dict.fromkeys((amounts[0], amounts[-1])))
            yield f"Cost of {alternative.name}: {span} {scenario.currency} a week{verdict}."


def _describe_break_even(outcomes: Sequence[Outcome]) -> Iterator[str]:
    """Return from how much work on it a bought machine is cheaper than the same work on each rented kind."""
    choices = {outcome.choice.alternative.name: outcome.choice for outcome in outcomes}.values()
    for bought in (choice for choice in choices if choice.alternative.buy is not None):
        for rented in (choice for choice in choices if choice.price_per_hour is not None):
            hours = compute_break_even_hours(bought, rented)
            if hours is None:
                continue
            most = HOURS_PER_WEEK * bought.alternative.gpus
            words = (
                f"more than the {format_significant(most)} h that there are: rent is cheaper per sample at any use"
                if hours > most
                else f"of {format_significant(most)} h; below that, rent is cheaper per sample"
            )
            yield (
                f"Break-even of {bought.alternative.name} with {rented.alternative.name}: "
                f"{format_significant(hours)} h of one job alone on a GPU a week, {words}."
            )


def format_figure(figure: Figure, unit: Unit = RATIO) -> str:
    """Return a figure with its interval: `2.86 (2.43 to 3.29)`; a dash where there is none."""
    center, low, high = (value / unit.size for value in figure)
    if isnan(center):
        return "–"
    if isnan(low) or isnan(high):
        return format_significant(center)
    text, *ends = map(format_significant, (center, low, high))
    return text if ends == [text, text] else f"{text} ({ends[0]} to {ends[1]})"


def list_assumptions(report: Report) -> list[Assumption]:
    """Return what the answer rests on, in the order of the scenario."""
    scenario = report.scenario
    found = [one for group in scenario.users for one in _list_of_group(group, scenario)]
    found += _list_of_kinds(report)
    found += [one for alternative in scenario.alternatives for one in _list_of_alternative(alternative, report)]
    found.append(
        (
            "assumed",
            "Every job uses one GPU, of which it has all (exclusive, fair-share) or which it shares (time-slicing, "
            "mps); it stays on its GPU until it ends or is interrupted.",
        )
    )
    if "fair-share" in scenario.policies:
        found.append(
            (
                "assumed",
                "fair-share: as Kueue 0.19.2 with fair sharing, a queue per user in one cohort, reclaimWithinCohort "
                "Any; a preempted job goes on from its last checkpoint.",
            )
        )
    if scenario.budget_per_week is not None:
        budget = f"{_show(scenario.budget_per_week)} {scenario.currency}"
        found.append(
            (
                "stated",
                f"Budget of {budget} a week: once the rent of a week is so much, no job is started until the next; "
                "those that run go on.",
            )
        )
    return [*found, ("not modelled", NOT_MODELLED)]


def _show(stated: float) -> str:
    """Return a number as somebody would state it: `0.35`, `30,000`, `4`."""
    return f"{stated:,.10g}"


def _of_key(given: Group | Rent, key: str, text: str) -> Assumption:
    return "stated" if key in given.model_fields_set else "assumed", text


def _list_of_group(group: Group, scenario: Scenario) -> Iterator[Assumption]:
    users = f"{group.name}: {group.number} {'user' if group.number == 1 else 'users'}"
    rhythm = (
        f"each submits a job {_show(group.think_hours)} working hours on average after the last one's end, "
        "exponentially spread"
        if group.think_hours is not None
        else f"each submits {_show(group.jobs_per_day or 0)} jobs a working day at random times"
    )
    lengths = ", ".join(map(_show, group.job_hours[:10])) + (", ..." if len(group.job_hours) > 10 else "")
    yield "stated", f"{users}; {rhythm}; a job takes {lengths} h alone on a {scenario.job_hours_on}."
    spread = {
        "none": "exactly those lengths",
        "exponential": "exponentially distributed around the lengths",
        "lognormal": f"lognormal around the lengths, coefficient of variation {_show(group.cv or 0)}",
    }[group.spread]
    yield _of_key(group, "spread", f"{group.name}: {spread}.")
    first, last = map(_show, group.working_hours)
    days = "all days" if len(group.working_days) == len(DAYS) else ", ".join(group.working_days)
    yield _of_key(group, "working_hours", f"{group.name}: jobs are submitted from {first} to {last} h on {days}.")
    saved = (
        "nothing of an interrupted job is saved: it begins anew"
        if group.checkpoint_hours is None
        else f"an interrupted job goes on from a checkpoint, one every {_show(group.checkpoint_hours)} h"
    )
    yield _of_key(group, "checkpoint_hours", f"{group.name}: {saved}.")


def _list_of_kinds(report: Report) -> Iterator[Assumption]:
    for name, found in report.figures.items():
        source = f" ({found.source})" if found.source else ", no source given"
        speed = format_significant(found.samples_per_second)
        yield found.origin, f"{name}: a job alone gets {speed} samples/s{source}; all jobs are in that proportion."
    used = {alternative.kind for alternative in report.scenario.alternatives}
    for name in (name for name in report.figures if name in used):
        for policy in report.scenario.policies:
            if policy in ("time-slicing", "mps"):
                yield from _list_of_sharing(name, policy, report)


def _list_of_sharing(name: str, policy: Literal["time-slicing", "mps"], report: Report) -> Iterator[Assumption]:
    kind, found = report.scenario.kinds[name], report.figures[name]
    known = found.slowdowns.get(policy)
    if known is None and policy == "mps":
        return
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
    yield "assumed" if known is None else known.origin, f"{name}, {policy}: slowdown of {slowdowns}{source}."
    if kind.max_tenants is None:
        most = count_tenants(kind, known)
        yield "assumed", f"{name}, {policy}: {most} tenants fit into its memory, no more."


def _list_of_alternative(alternative: Alternative, report: Report) -> Iterator[Assumption]:
    name, money = alternative.name, report.scenario.currency
    number = f"{alternative.gpus} {'GPU' if alternative.gpus == 1 else 'GPUs'} of kind {alternative.kind}"
    buy, rent = alternative.buy, alternative.rent
    if buy is not None:
        yield (
            "stated",
            f"{name}: {number} for {_show(buy.price)} {money} over {_show(buy.lifetime_years)} years and "
            f"{_show(buy.upkeep_per_year)} a year for upkeep, of which {_show(buy.share * 100)} % are paid: "
            f"{format_significant(compute_fixed_cost(buy))} {money} a week.",
        )
        power = (
            f"{_show(buy.idle_watts)} W idle to {_show(buy.watts)} W at work, "
            f"{_show(buy.electricity_per_kwh or 0)} {money} per kWh"
            if buy.watts
            else "its electricity costs nothing, because no watts are given"
        )
        yield "stated" if buy.watts else "assumed", f"{name}: {power}."
    if rent is None:
        return
    price = report.prices[name]
    source = f" ({price.source})" if price.source else ", no source given"
    most = "" if rent.always_on else "at most "
    yield "stated", f"{name}: {most}{number}, each {_show(price.amount)} {money} an hour with its host{source}."
    if rent.always_on:
        yield "stated", f"{name}: paid for all hours of the week."
    else:
        start, idle = _show(rent.start_minutes), _show(rent.idle_minutes)
        yield _of_key(rent, "start_minutes", f"{name}: a GPU takes {start} min to start, which are paid.")
        yield _of_key(rent, "idle_minutes", f"{name}: a GPU without a job is kept and paid for {idle} min.")
    if rent.interruptions_per_hour is not None:
        yield (
            "stated",
            f"{name}: each GPU is interrupted {_show(rent.interruptions_per_hour)} times an hour, at random.",
        )


def make_tables(report: Report) -> list[Table]:
    """Return the tables of times, of samples and money, and by group where there are several."""
    money = report.scenario.currency
    names = [text_column("alternative", "alternative"), text_column("policy", "policy")]
    rows = pd.DataFrame([_name(outcome) | dict(outcome.figures) for outcome in report.outcomes])
    times = [
        _figure_column("wait", "wait_hours", HOUR),
        _figure_column("p95 wait", "wait_p95_hours", HOUR, priority=2),
        _figure_column("submission to end", "turnaround_hours", HOUR),
        _figure_column("slowdown", "slowdown", RATIO, priority=1),
    ]
    amounts = [
        _figure_column("a week", "cost", Unit(label=money, size=1.0)),
        _figure_column("samples per user and week", "samples_per_user", MILLION),
        _figure_column(f"samples per {money}", "samples_per_money", MILLION),
        _figure_column("Jain's index of samples", "jain_samples", RATIO, priority=2),
        _figure_column("GPUs with a job", "utilisation", PERCENT, priority=1),
    ]
    speed = _figure_column("Jain's index of speed", "jain_speed", RATIO, priority=3)
    tables = [
        make_table("How long users wait", [*names, *times, speed], rows),
        make_table("What they get, and for what", [*names, *amounts], rows),
    ]
    if len(report.scenario.users) > 1:
        of_groups = [
            _name(outcome) | {"group": name} | dict(figures)
            for outcome in report.outcomes
            for name, figures in outcome.by_group.items()
        ]
        columns = [*names, text_column("users", "group"), times[0], *times[2:], amounts[1]]
        tables.append(make_table("By group of users", columns, pd.DataFrame(of_groups)))
    return tables


def _name(outcome: Outcome) -> dict[str, Any]:
    return {"alternative": outcome.choice.alternative.name, "policy": outcome.choice.policy}


def _figure_column(title: str, source: str, unit: Unit, *, priority: int = ESSENTIAL) -> Column:
    def format_cell(figure: Figure) -> str:
        return format_figure(figure, unit)

    return Column(title=title, sources=(source,), format=format_cell, unit=unit, align="right", priority=priority)


def list_warnings(report: Report) -> list[str]:
    """Return what a reader of the tables has to know: jobs that did not end, choices over the budget or left out."""
    named = [(outcome.choice.name, outcome) for outcome in report.outcomes]
    lines = [
        f"{name}: users ask for {format_number(load, PERCENT)} % of what the GPUs can do; queues grow week by week,"
        " and waits are those of the weeks that were simulated, not of the long run"
        for name, outcome in named
        if (load := compute_load(outcome.choice.setting)) >= 1
    ]
    lines += [
        f"{name}: {outcome.num_unended} of {outcome.num_jobs} jobs had not ended two weeks after their "
        "week; their hours are counted until then, so the waits are at least what is shown"
        for name, outcome in named
        if outcome.num_unended
    ]
    lines += [f"{name}: costs more than the budget" for name, one in named if is_over_budget(report.scenario, one)]
    return lines + [f"{name}: left out, because {reason}" for name, reason in report.left_out.items()]


def describe_weeks(scenario: Scenario) -> str:
    """Return in a sentence what the intervals are of."""
    return (
        f"Means of {scenario.weeks} simulated weeks (seed {scenario.seed}), each after {scenario.warm_up_weeks} that "
        "are not counted; in brackets 95 % intervals over weeks. They say how well the simulation knows its mean, not "
        "how well the scenario describes the lab."
    )


def write_page(report: Report) -> str:
    """Return the answer as a page in Markdown."""
    headline, lines = answer_question(report.scenario, report.outcomes)
    page = [f"# {escape_markdown(report.scenario.question)}\n", f"**{escape_markdown(headline)}**\n"]
    page += [f"- {escape_markdown(line)}" for line in lines]
    page.append(f"\n{describe_weeks(report.scenario)}")
    for table in make_tables(report):
        page.append(f"\n## {escape_markdown(table.caption)}\n")
        page.append(f"| {' | '.join(map(escape_markdown, table.headings))} |\n|{'---|' * len(table.columns)}")
        page += [f"| {' | '.join(map(escape_markdown, texts))} |" for texts in table.format_rows()]
    if warnings := list_warnings(report):
        page += ["\n## Mind\n", *(f"- {escape_markdown(line)}" for line in warnings)]
    page.append("\n## What this rests on\n")
    page += [f"- {standing}: {escape_markdown(text)}" for standing, text in list_assumptions(report)]
    return "\n".join([*page, ""])
