"""The command `access`."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from bench.errors import UserError
from runner.commands.options import CONSOLE, FileOption, MarkdownOption
from runner.terminal_text import echo

if TYPE_CHECKING:  # the collector takes a second to import: only the commands that need it do
    from collector.access.page import Report


def access(
    scenario: Annotated[
        str | None,
        typer.Argument(metavar="SCENARIO", help="A YAML file (see docs/access.md), or a scenario of --list."),
    ] = None,
    weeks: Annotated[
        int | None, typer.Option("--weeks", metavar="NUMBER", help="Simulate so many weeks instead of the scenario's.")
    ] = None,
    as_markdown: MarkdownOption = False,
    output: FileOption = None,
    list_scenarios: Annotated[bool, typer.Option("--list", help="List the scenarios that come with the tool.")] = False,
) -> None:
    """Say what a lab gets of which GPUs at what price: buy or rent, alone, shared or in turns.

    Simulates the weeks of a lab's users under each alternative and policy; prints waits, slowdowns, samples per user
    and for the money with intervals, and all that the answer rests on.
    """
    if list_scenarios:
        _print_shipped_scenarios()
        return
    if scenario is None:
        raise UserError("SCENARIO is missing; give a YAML file, or a name that `benchmatrix access --list` prints")
    _show(_answer(scenario, weeks), as_markdown=as_markdown, output=output)


def _answer(name: str, weeks: int | None) -> "Report":
    from collector.access.answer import answer_question
    from collector.access.assumptions import list_assumptions
    from collector.access.choices import list_choices
    from collector.access.outcomes import evaluate_choice
    from collector.access.page import Report
    from runner.access_scenarios.figures import look_up_figures
    from runner.access_scenarios.loading import load_scenario
    from runner.access_scenarios.prices import look_up_prices

    scenario, tree = load_scenario(name, weeks=weeks)
    figures, prices = look_up_figures(scenario, tree), look_up_prices(scenario, tree)
    choices, left_out = list_choices(scenario, figures, prices)
    outcomes = [evaluate_choice(choice, scenario.weeks) for choice in choices]
    return Report(
        scenario=scenario,
        outcomes=outcomes,
        left_out=left_out,
        answer=answer_question(scenario, outcomes),
        assumptions=list_assumptions(scenario, figures, prices),
    )


def _show(report: "Report", *, as_markdown: bool, output: Path | None) -> None:
    from collector.access.page import write_page
    from collector.files import replace_text

    text = write_page(report) if as_markdown or output is not None else ""
    if output is not None:
        replace_text(output, text)
        CONSOLE.print(report.answer.headline, soft_wrap=True)
        CONSOLE.print(str(output), soft_wrap=True)
    elif text:
        echo(text)
    else:
        _print_report(report)


def _print_report(report: "Report") -> None:
    from collector.access.page import describe_weeks, list_warnings, make_tables
    from collector.report.terminal import print_table

    CONSOLE.print(f"{report.scenario.question}\n\n{report.answer.headline}", soft_wrap=True)
    for line in report.answer.lines:
        CONSOLE.print(f"  {line}", soft_wrap=True)
    for table in make_tables(report):
        CONSOLE.print(f"\n{table.caption}", soft_wrap=True)
        print_table(CONSOLE, table)
    CONSOLE.print(f"\n{describe_weeks(report.scenario)}", soft_wrap=True)
    for line in list_warnings(report):
        CONSOLE.print(line, style="yellow", soft_wrap=True)
    CONSOLE.print("\nWhat this rests on")
    for found in report.assumptions:
        CONSOLE.print(f"  {found.standing}: {found.text}", soft_wrap=True)


def _print_shipped_scenarios() -> None:
    from collector.access.shipped import list_shipped_scenarios
    from runner.access_scenarios.loading import describe_shipped_scenario
    from runner.commands.shipped import print_shipped

    print_shipped({name: describe_shipped_scenario(name) for name in list_shipped_scenarios()})
