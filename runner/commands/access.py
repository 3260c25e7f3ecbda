"""The command `access`."""

from typing import TYPE_CHECKING, Annotated

import typer

from bench.errors import UserError
from runner.commands.options import CONSOLE, FileOption, MarkdownOption, print_shipped
from runner.terminal import echo

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
    from collector.access.outcomes import evaluate_choice, list_choices
    from collector.access.page import Report, answer_question, write_page
    from collector.files import replace_text
    from runner.access_scenarios import list_shipped_scenarios, load_scenario, look_up_figures, look_up_prices

    if list_scenarios:
        shipped = {name: load_scenario(name)[0].question for name in list_shipped_scenarios()}
        print_shipped(shipped)
        return
    if scenario is None:
        raise UserError("SCENARIO is missing; give a YAML file, or a name that `benchmatrix access --list` prints")
    loaded, tree = load_scenario(scenario, weeks=weeks)
    figures, prices = look_up_figures(loaded, tree), look_up_prices(loaded, tree)
    choices, left_out = list_choices(loaded, figures, prices)
    outcomes = [evaluate_choice(choice, loaded.weeks) for choice in choices]
    report = Report(scenario=loaded, figures=figures, prices=prices, outcomes=outcomes, left_out=left_out)
    text = write_page(report) if as_markdown or output is not None else ""
    if output is not None:
        replace_text(output, text)
        CONSOLE.print("\n".join(answer_question(loaded, outcomes)), soft_wrap=True)
        CONSOLE.print(str(output), soft_wrap=True)
    elif text:
        echo(text)
    else:
        _print_report(report)


def _print_report(report: "Report") -> None:
    from collector.access.page import ASSUMPTIONS, answer_question, describe_weeks, list_warnings, make_tables
    from collector.tables.table import print_table

    CONSOLE.print(f"{report.scenario.question}\n", soft_wrap=True)
    for line in answer_question(report.scenario, report.outcomes):
        CONSOLE.print(f"  {line}", soft_wrap=True)
    CONSOLE.print(f"\n{describe_weeks(report.scenario)}", soft_wrap=True)
    for line in list_warnings(report):
        CONSOLE.print(line, style="yellow", soft_wrap=True)
    for table in make_tables(report):
        CONSOLE.print(f"\n{table.caption}", soft_wrap=True)
        print_table(CONSOLE, table)
    for text in ASSUMPTIONS:
        CONSOLE.print(text, soft_wrap=True)
