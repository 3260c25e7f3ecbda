"""Say what the outcomes of a scenario are, in two sentences and in tables, and what they rest on."""

import json
from collections.abc import Iterator
from math import isnan
from typing import Any

import pandas as pd

from collector.access.outcomes import BEST, EVERYBODY, list_choices, tabulate_break_even
from collector.access.scenario import Scenario
from collector.tables.table import ESSENTIAL, Column, Table, count_column, make_table, number_column, text_column
from collector.units import NOT_THERE, PERCENT, RATIO, Unit, format_significant, join_some

HOUR = Unit(label="h", size=1.0)
MILLION = Unit(label="millions", size=1e6)
MAX_NAMED = 5


def answer_question(scenario: Scenario, outcomes: pd.DataFrame) -> Iterator[str]:
    """Yield which choices within the budget give most samples for the money, and the shortest turnaround."""
    subjects = (f"Most samples per {scenario.currency}", "Fewest hours from submission to end")
    for subject, figure in zip(subjects, BEST, strict=True):
        name = f"{figure}_to_best"
        alike = outcomes[(outcomes[f"{name}_low"] <= 1) & (outcomes[f"{name}_high"] >= 1)]
        alike = alike.sort_values(name, ascending=figure == "turnaround_hours", kind="stable")
        best, *others = list(alike["alternative"] + ", " + alike["policy"]) or ["nothing, within the budget"]
        yield (
            f"{subject}: {best}" + (f"; not told apart from it: {join_some(others, MAX_NAMED)}" if others else "") + "."
        )


def describe_method(scenario: Scenario) -> str:
    """Return what the figures are of, and what they leave out."""
    return (
        f"Means of {scenario.weeks} simulated weeks (seed {scenario.seed}), each after {scenario.warm_up_weeks} that "
        "are not counted; in brackets 95 % intervals over weeks. They say how well the simulation knows its mean, not "
        "how well the scenario describes the lab. Jobs that have not ended two weeks after their week count with the "
        "hours so far: where there are many, queues grow week by week. docs/access.md says what is not modelled."
    )


def make_tables(scenario: Scenario, outcomes: pd.DataFrame) -> list[Table]:
    """Return the tables of times, of samples and money, by group of users, and of what they rest on."""
    everybody, money = outcomes[outcomes["users"] == EVERYBODY], scenario.currency
    names = [text_column("alternative", "alternative"), text_column("policy", "policy")]
    wait = _figure_column("wait", "wait_hours", HOUR)
    turnaround = _figure_column("submission to end", "turnaround_hours", HOUR)
    slowdown = _figure_column("slowdown", "slowdown", priority=1)
    samples = _figure_column("samples per user and week", "samples_per_user", MILLION)
    times = [
        wait,
        _figure_column("p95 wait", "wait_p95_hours", HOUR, priority=2),
        turnaround,
        _figure_column("times the best", "turnaround_hours_to_best", priority=3),
        slowdown,
        count_column("jobs", "num_jobs"),
        count_column("not ended", "num_unended"),
    ]
    amounts = [
        _figure_column("a week", "cost", Unit(label=money, size=1.0)),
        text_column("over the budget", "over_budget", is_optional=True),
        samples,
        _figure_column(f"samples per {money}", "samples_per_money", MILLION),
        _figure_column("times the best", "samples_per_money_to_best", priority=3),
        _figure_column("GPUs with a job", "utilisation", PERCENT, priority=1),
    ]
    groups = [text_column("users", "users"), wait, turnaround, slowdown, samples]
    pairs = [
        text_column("bought", "bought"),
        text_column("rented", "rented"),
        number_column("break-even", "hours", HOUR),
        number_column("all there are", "most_hours", HOUR),
    ]
    grounds = pd.DataFrame(list_grounds(scenario), columns=["key", "value", "origin"]).drop_duplicates()
    of_grounds = [text_column("key", "key"), text_column("value", "value"), text_column("from", "origin")]
    tables = [
        make_table("How long users wait", names + times, everybody),
        make_table("What they get, and for what", names + amounts, everybody),
        make_table("By group of users", names + groups, outcomes[outcomes["users"] != EVERYBODY]),
        make_table(
            "From so many hours of jobs a week a bought machine is cheaper than the same samples rented",
            pairs,
            tabulate_break_even(scenario),
        ),
        make_table("What this rests on beside the file", of_grounds, grounds),
    ]
    return [table for table in tables if len(table.rows)]


def _figure_column(title: str, name: str, unit: Unit = RATIO, *, priority: int = ESSENTIAL) -> Column:
    """Return a column of a figure with its interval: `2.86 (2.43 to 3.29)`; a dash where there is none."""

    def format_cell(*figure: float) -> str:
        if isnan(figure[0]):
            return NOT_THERE
        text, *ends = (format_significant(value / unit.size) for value in figure)
        return text if ends == [text, text] else f"{text} ({ends[0]} to {ends[1]})"

    sources = (name, f"{name}_low", f"{name}_high")
    return Column(title=title, sources=sources, format=format_cell, unit=unit, align="right", priority=priority)


def list_grounds(scenario: Scenario) -> Iterator[tuple[str, str, str]]:
    """Yield key, value and origin of speeds, slowdowns and prices, and of what the file leaves open."""
    for name, kind in scenario.kinds.items():
        yield f"kinds.{name}.samples_per_second", format_significant(kind.samples_per_second), kind.source
    for choice in list_choices(scenario):
        if len(choice.rates) > 1:
            slowdowns = (f"{number}: {format_significant(1 / rate)}" for number, rate in enumerate(choice.rates, 1))
            is_known = choice.kind.slowdowns.get(choice.policy)
            origin = (
                "straight lines between those of the file" if is_known else "assumed: n tenants take n times as long"
            )
            yield f"kinds.{choice.alternative.kind}.slowdowns.{choice.policy}", ", ".join(slowdowns), origin
    for name, one in scenario.alternatives.items():
        if one.rent is not None:
            yield f"alternatives.{name}.rent.price_per_hour", json.dumps(one.rent.price_per_hour), one.rent.source
    stated = _flatten(scenario.model_dump(mode="json", exclude_unset=True))
    for key, value in _flatten(scenario.model_dump(mode="json")).items():
        if key not in stated and (value is not None or key.endswith("checkpoint_hours")):
            yield key, json.dumps(value), "assumed"


def _flatten(value: Any, path: str = "") -> dict[str, Any]:
    """Return the values of a document as JSON has it, each by its path."""
    if not isinstance(value, dict):
        return {path: value}
    places = {f"{path}.{name}".removeprefix("."): part for name, part in value.items()}
    return {key: found for place, part in places.items() for key, found in _flatten(part, place).items()}
