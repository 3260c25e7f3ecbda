"""Answer a scenario's question in sentences, with tables and all that the answer rests on."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from math import isclose, isnan
from typing import Any

import pandas as pd
from pydantic import BaseModel

from collector.access.outcomes import (
    Figure,
    HourlyPrice,
    KindFigures,
    Outcome,
    Ratio,
    compare_ratios,
    compute_break_even_hours,
    compute_load,
    estimate_ratio,
    find_rates,
)
from collector.access.scenario import Scenario
from collector.access.simulation import HOURS_PER_WEEK
from collector.files import escape_markdown
from collector.tables.table import ESSENTIAL, Column, Table, make_table, text_column
from collector.units import PERCENT, RATIO, Unit, format_number, format_significant

HOUR = Unit(label="h", size=1.0)
MILLION = Unit(label="millions", size=1e6)
MAX_TIED = 5
"""Choices that a line names where none is told apart: more is no sentence, and the tables have all."""
MAX_LISTED = 10
ASSUMPTIONS = (
    "Every job uses one GPU, of which it has all (exclusive, fair-share) or which it shares (time-slicing, mps); it "
    "stays on its GPU until it ends or is interrupted. All jobs are in the proportion of the samples per second.",
    "fair-share is as in Kueue 0.19.2 with fair sharing: a queue per user in one cohort, reclaimWithinCohort Any; a "
    "preempted job goes on from its last checkpoint.",
    "Once the rent of a week has used up a budget, no job is started until the next week; those that run go on.",
    "Not modelled: GPUs that fail or cannot be had when they are wanted; copying of data; memory that does not suffice;"
    " prices that change; jobs on several GPUs; what one tenant does to another beyond the mean slowdown.",
)


@dataclass(frozen=True, kw_only=True)
class Report:
    """All that is said about a scenario."""

    scenario: Scenario
    figures: Mapping[str, KindFigures]
    prices: Mapping[str, HourlyPrice]
    outcomes: Sequence[Outcome]
    left_out: Mapping[str, str]


def answer_question(scenario: Scenario, outcomes: Sequence[Outcome]) -> list[str]:
    """Return which choice within the budget gives most samples for the money and the shortest turnaround, and costs."""
    costs = [*_describe_costs(scenario, outcomes), *_describe_break_even(outcomes)]
    within = [outcome for outcome in outcomes if not is_over_budget(scenario, outcome)]
    known = [one for one in within if one.samples_for_money.center > 0 and one.turnarounds.center > 0]
    if not known:
        reason = "within the budget" if scenario.budget_per_week is not None else "for which the weeks give figures"
        return [f"There is no alternative {reason}.", *costs]
    most = _compare(f"Most samples per {scenario.currency}", known, lambda outcome: outcome.samples_for_money, sign=-1)
    sooner = _compare("Fewest hours from submission to end", known, lambda outcome: outcome.turnarounds, sign=1)
    return [most, sooner, *costs]


def is_over_budget(scenario: Scenario, outcome: Outcome) -> bool:
    """Return whether a choice costs more than the budget; where the budget stops jobs, it does not."""
    if scenario.budget_per_week is None or outcome.choice.budget_per_week is not None:
        return False
    return outcome.figures["cost"].center > scenario.budget_per_week


def _compare(subject: str, known: Sequence[Outcome], find_ratio: Callable[[Outcome], Ratio], *, sign: int) -> str:
    """Return the best choice with its figure, and how the best policy of each other alternative relates to it.

    Of one alternative alone, how its other policies do. `sign` is 1 where less is better, -1 where more is.
    """
    ranked = sorted(known, key=lambda outcome: (sign * find_ratio(outcome).center, outcome.choice.name))
    best = find_ratio(ranked[0])
    # Policies that admit alike give the same weeks: nothing but their order would choose one of them.
    tied = [outcome for outcome in ranked if isclose(find_ratio(outcome).center, best.center)]
    names = " and ".join(outcome.choice.name for outcome in tied[:MAX_TIED])
    more = f" and {len(tied) - MAX_TIED} more" if len(tied) > MAX_TIED else ""
    equally = " equally" if len(tied) > 1 else ""
    text = f"{subject}: {names}{more}{equally} {format_figure(estimate_ratio(best))}"
    one = len({outcome.choice.alternative.name for outcome in known}) == 1
    seen = {outcome.choice.alternative.name for outcome in tied} if not one else set()
    for outcome in ranked[len(tied) :]:
        name = outcome.choice.policy if one else outcome.choice.alternative.name
        if name not in seen:
            seen.add(name)
            ratio = compare_ratios(find_ratio(outcome), best)
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
        for rented in (choice for choice in choices if choice.alternative.rent is not None):
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


def list_grounds(report: Report) -> Iterator[tuple[str, str, str]]:
    """Yield what the answer rests on: a key of the scenario, its value, and where that is from."""
    scenario = report.scenario
    yield from _walk(scenario, "")
    for name, kind in report.figures.items():
        if kind.measured:
            yield f"kinds.{name}.samples_per_second", format_significant(kind.samples_per_second), kind.measured
        for policy in scenario.policies:
            if policy in ("exclusive", "fair-share") or (policy == "mps" and "mps" not in kind.slowdowns):
                continue
            rates = find_rates(scenario.kinds[name], kind, policy)
            slowdowns = (f"{number}: {format_significant(1 / rate)}" for number, rate in enumerate(rates, start=1))
            known = policy in kind.slowdowns
            source = kind.measured or "straight lines between the stated ones"
            origin = source if known else "assumed: n tenants take n times as long"
            yield f"kinds.{name}.slowdowns.{policy}", ", ".join(slowdowns), origin
    for name, price in report.prices.items():
        if price.source:
            yield f"alternatives.{name}.rent.price_per_hour", f"{price.amount:,.10g}", price.source


def _walk(model: BaseModel, path: str) -> Iterator[tuple[str, str, str]]:
    for key in type(model).model_fields:
        value, where = getattr(model, key), f"{path}{key}"
        if isinstance(value, BaseModel):
            yield from _walk(value, f"{where}.")
        elif isinstance(value, dict) and key == "kinds":
            for name, kind in value.items():
                yield from _walk(kind, f"{where}.{name}.")
        elif isinstance(value, tuple) and value and isinstance(value[0], BaseModel):
            for part in value:
                yield from _walk(part, f"{where}.{part.name}.")
        elif key == "checkpoint_hours" or (key not in ("name", "question") and value not in (None, {})):
            origin = "stated" if key in model.model_fields_set else "assumed"
            yield where, _show(value), origin


def _show(value: Any) -> str:
    """Return a value as somebody would state it: `0.35`, `30,000`, `mon, tue`, `none`."""
    if isinstance(value, tuple):
        more = ", ..." if len(value) > MAX_LISTED else ""
        return ", ".join(map(_show, value[:MAX_LISTED])) + more
    if isinstance(value, dict):
        return ", ".join(f"{key}: {_show(part)}" for key, part in value.items()) or "none"
    if value is None or isinstance(value, bool):
        return {None: "none", True: "yes", False: "no"}[value]
    return f"{value:,.10g}" if isinstance(value, int | float) else str(value)


def make_tables(report: Report, *, has_stated: bool = False) -> list[Table]:
    """Return the tables of times, of samples and money, by group where there are several, and of what they rest on.

    `has_stated`: whether the last one repeats what the scenario's file states.
    """
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
    grounds = pd.DataFrame(list_grounds(report), columns=["key", "value", "origin"])
    grounds = grounds if has_stated else grounds[grounds["origin"] != "stated"]
    columns = [text_column("key", "key"), text_column("value", "value"), text_column("from", "origin")]
    return [
        *tables,
        make_table("What this rests on" if has_stated else "What this rests on beside the file", columns, grounds),
    ]


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
        if (load := compute_load(outcome.choice)) >= 1
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
    page = [f"# {escape_markdown(report.scenario.question)}\n"]
    page += [f"- {escape_markdown(line)}" for line in answer_question(report.scenario, report.outcomes)]
    page.append(f"\n{describe_weeks(report.scenario)}")
    if warnings := list_warnings(report):
        page += ["\n## Mind\n", *(f"- {escape_markdown(line)}" for line in warnings)]
    for table in make_tables(report, has_stated=True):
        page.append(f"\n## {escape_markdown(table.caption)}\n")
        page.append(f"| {' | '.join(map(escape_markdown, table.headings))} |\n|{'---|' * len(table.columns)}")
        page += [f"| {' | '.join(map(escape_markdown, texts))} |" for texts in table.format_rows()]
    return "\n".join([*page, "", *(f"- {text}" for text in ASSUMPTIONS), ""])
