"""The command `access`."""

from typing import Annotated

import typer

from runner.commands.options import CONSOLE, FileOption, MarkdownOption, print_shipped
from runner.terminal import echo


def access(
    scenario: Annotated[
        str | None,
        typer.Argument(
            metavar="SCENARIO",
            help="A YAML file (see docs/access.md), or the name of a shipped scenario; default: list these.",
        ),
    ] = None,
    as_markdown: MarkdownOption = False,
    output: FileOption = None,
) -> None:
    """Say what a lab gets of which GPUs at what price: buy or rent, alone, shared or in turns.

    Simulates the weeks of a lab's users under each alternative and policy; prints waits, slowdowns, samples per user
    and for the money with intervals, and what the answer rests on beside the file.
    """
    from collector.access.outcomes import answer_question, make_tables, tabulate_outcomes
    from collector.files import escape_markdown, replace_text
    from collector.tables.table import print_table, write_markdown
    from runner.analysis_inputs import SHIPPED_SCENARIOS, load_scenario

    if scenario is None:
        print_shipped({name: load_scenario(name).question for name in SHIPPED_SCENARIOS})
        return
    loaded = load_scenario(scenario)
    outcomes = tabulate_outcomes(loaded)
    answer, tables = list(answer_question(loaded, outcomes)), make_tables(loaded, outcomes)
    if as_markdown or output is not None:
        lines = "".join(f"- {escape_markdown(line)}\n" for line in answer)
        page = f"# {escape_markdown(loaded.question)}\n\n{lines}\n{write_markdown(tables)}"
        if output is None:
            echo(page)
            return
        replace_text(output, page)
        CONSOLE.print("\n".join([*answer, str(output)]), soft_wrap=True)
        return
    CONSOLE.print("\n".join([loaded.question, "", *answer]), soft_wrap=True)
    for table in tables:
        CONSOLE.print(f"\n{table.caption}", soft_wrap=True)
        print_table(CONSOLE, table)
