"""Say what the outcomes of a scenario are, in two sentences and in tables, and what they rest on."""

from collections.abc import Iterator

import pandas as pd

from collector.access.outcomes import BEST, EVERYBODY, list_choices, tabulate_break_even
from collector.access.scenario import Scenario
from collector.tables.table import (
    ESSENTIAL,
    Column,
    Table,
    interval_column,
    make_table,
    number_column,
    text_column,
)
from collector.units import PERCENT, RATIO, Unit, format_significant, join_some

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
    """Return the tables of times, of money, of the break-even, and of what they rest on."""
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
