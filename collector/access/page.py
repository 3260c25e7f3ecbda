"""Show the answer to a scenario: tables for the terminal, a page in Markdown, a JSON document."""

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from math import isnan
from typing import Any

import pandas as pd

from collector.access.answer import Answer, format_figure, is_over_budget
from collector.access.assumptions import Assumption
from collector.access.choices import LeftOut
from collector.access.estimates import Figure
from collector.access.outcomes import Measures, Outcome, compute_load, list_figures
from collector.access.scenario import Scenario
from collector.claims.page import escape_markdown
from collector.tables.columns import text_column
from collector.tables.table import ESSENTIAL, Column, Table, make_table
from collector.units import PERCENT, RATIO, Unit, format_number

HOUR = Unit(label="h", size=1.0)
MILLION = Unit(label="millions", size=1e6)


@dataclass(frozen=True, kw_only=True)
class Report:
    """All that is said about a scenario."""

    scenario: Scenario
    outcomes: Sequence[Outcome]
    left_out: Sequence[LeftOut]
    answer: Answer
    assumptions: Sequence[Assumption]


def make_tables(report: Report) -> list[Table]:
    """Return the tables of times, of samples and money, and by group where there are several."""
    money = report.scenario.currency
    rows = _make_frame(report.outcomes)
    times = [
        *_name_columns(),
        _figure_column("wait", "wait_hours", HOUR),
        _figure_column("p95 wait", "wait_p95_hours", HOUR, priority=2),
        _figure_column("submission to end", "turnaround_hours", HOUR),
        _figure_column("slowdown", "slowdown", RATIO, priority=1),
        _figure_column("Jain's index of speed", "jain_speed", RATIO, priority=3),
    ]
    amounts = [
        *_name_columns(),
        _figure_column("a week", "cost", Unit(label=money, size=1.0)),
        _figure_column("samples per user and week", "samples_per_user", MILLION),
        _figure_column(f"samples per {money}", "samples_per_money", MILLION),
        _figure_column("Jain's index of samples", "jain_samples", RATIO, priority=2),
        _figure_column("GPUs with a job", "utilisation", PERCENT, priority=1),
    ]
    tables = [make_table("How long users wait", times, rows), make_table("What they get, and for what", amounts, rows)]
    if len(report.scenario.users) > 1:
        tables.append(_make_group_table(report.outcomes))
    return tables


def _make_group_table(outcomes: Sequence[Outcome]) -> Table:
    rows = [
        {"alternative": outcome.choice.alternative.name, "policy": outcome.choice.policy, "group": name}
        | list_figures(measures)
        for outcome in outcomes
        for name, measures in outcome.by_group.items()
    ]
    columns = [
        *_name_columns(),
        text_column("users", "group"),
        _figure_column("wait", "wait_hours", HOUR),
        _figure_column("submission to end", "turnaround_hours", HOUR),
        _figure_column("slowdown", "slowdown", RATIO, priority=1),
        _figure_column("samples per user and week", "samples_per_user", MILLION),
    ]
    return make_table("By group of users", columns, pd.DataFrame(rows))


def _make_frame(outcomes: Sequence[Outcome]) -> pd.DataFrame:
    return pd.DataFrame(
        [
            {"alternative": outcome.choice.alternative.name, "policy": outcome.choice.policy}
            | list_outcome_figures(outcome)
            for outcome in outcomes
        ]
    )


def list_outcome_figures(outcome: Outcome) -> dict[str, Figure]:
    """Return the figures of a choice by their names."""
    return {
        "cost": outcome.cost,
        **list_figures(outcome.everybody),
        "samples_per_money": outcome.samples_per_money,
        "jain_samples": outcome.jain_samples,
        "jain_speed": outcome.jain_speed,
        "utilisation": outcome.utilisation,
        "interruptions": outcome.interruptions,
        "lost_share": outcome.lost_share,
    }


def _name_columns() -> list[Column]:
    return [text_column("alternative", "alternative"), text_column("policy", "policy")]


def _figure_column(title: str, source: str, unit: Unit, *, priority: int = ESSENTIAL) -> Column:
    def format_cell(figure: Figure) -> str:
        scaled = (value / unit.size for value in (figure.center, figure.low, figure.high))
        return format_figure(Figure(**dict(zip(("center", "low", "high"), scaled, strict=True))))

    return Column(title=title, sources=(source,), format=format_cell, unit=unit, align="right", priority=priority)


def list_warnings(report: Report) -> list[str]:
    """Return what a reader of the tables has to know: jobs that did not end, choices over the budget or left out."""
    loads = [(outcome.choice.name, compute_load(outcome.choice.setting)) for outcome in report.outcomes]
    lines = [
        f"{name}: users ask for {format_number(load, PERCENT)} % of what the GPUs can do; queues grow week by week,"
        " and waits are those of the weeks that were simulated, not of the long run"
        for name, load in loads
        if load >= 1
    ]
    lines += [
        f"{outcome.choice.name}: {outcome.num_unended} of {outcome.num_jobs} jobs had not ended two weeks after their "
        "week; their hours are counted until then, so the waits are at least what is shown"
        for outcome in report.outcomes
        if outcome.num_unended
    ]
    lines += [
        f"{outcome.choice.name}: costs more than the budget"
        for outcome in report.outcomes
        if is_over_budget(report.scenario, outcome)
    ]
    return lines + [f"{left.name}: left out, because {left.reason}" for left in report.left_out]


def describe_weeks(scenario: Scenario) -> str:
    """Return in a sentence what the intervals are of."""
    return (
        f"Means of {scenario.weeks} simulated weeks (seed {scenario.seed}), each after {scenario.warm_up_weeks} that "
        "are not counted; in brackets 95 % intervals over weeks. They say how well the simulation knows its mean, not "
        "how well the scenario describes the lab."
    )


def write_page(report: Report) -> str:
    """Return the answer as a page in Markdown."""
    return "\n".join(_write_lines(report))


def _write_lines(report: Report) -> Iterator[str]:
    yield f"# {escape_markdown(report.scenario.question)}\n"
    yield f"**{escape_markdown(report.answer.headline)}**\n"
    yield from (f"- {escape_markdown(line)}" for line in report.answer.lines)
    yield f"\n{describe_weeks(report.scenario)}"
    for table in make_tables(report):
        yield f"\n## {escape_markdown(table.caption)}\n"
        yield f"| {' | '.join(map(escape_markdown, table.headings))} |\n|{'---|' * len(table.columns)}"
        yield from (f"| {' | '.join(map(escape_markdown, texts))} |" for texts in table.format_rows())
    warnings = list_warnings(report)
    if warnings:
        yield "\n## Mind\n"
        yield from (f"- {escape_markdown(line)}" for line in warnings)
    yield "\n## What this rests on\n"
    yield from (f"- {found.standing}: {escape_markdown(found.text)}" for found in report.assumptions)
    yield ""


def write_json(report: Report) -> str:
    """Return the answer as JSON; times in hours, money in the scenario's currency, null where a figure is unknown."""
    document = {
        "question": report.scenario.question,
        "answer": report.answer.headline,
        "reasons": list(report.answer.lines),
        "currency": report.scenario.currency,
        "weeks": report.scenario.weeks,
        "seed": report.scenario.seed,
        "choices": [_describe_outcome(report.scenario, outcome) for outcome in report.outcomes],
        "left_out": [{"choice": left.name, "reason": left.reason} for left in report.left_out],
        "assumptions": [{"standing": found.standing, "text": found.text} for found in report.assumptions],
        "warnings": list_warnings(report),
        "scenario": report.scenario.model_dump(mode="json", exclude_none=True),
    }
    return json.dumps(document, indent=1, ensure_ascii=False, allow_nan=False)


def _describe_outcome(scenario: Scenario, outcome: Outcome) -> dict[str, Any]:
    return {
        "alternative": outcome.choice.alternative.name,
        "policy": outcome.choice.policy,
        "is_over_budget": is_over_budget(scenario, outcome),
        **_dump(list_outcome_figures(outcome)),
        "num_jobs": outcome.num_jobs,
        "num_unended": outcome.num_unended,
        "by_group": {name: _dump_measures(measures) for name, measures in outcome.by_group.items()},
    }


def _dump_measures(measures: Measures) -> dict[str, Any]:
    return _dump(list_figures(measures))


def _dump(figures: Mapping[str, Figure]) -> dict[str, Any]:
    return {
        name: {
            key: None if isnan(value) else value
            for key, value in (("center", figure.center), ("low", figure.low), ("high", figure.high))
        }
        for name, figure in figures.items()
    }
