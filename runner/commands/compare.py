"""The command `compare`."""

from functools import partial
from typing import TYPE_CHECKING, Annotated

import typer
from rich.console import Console

from bench.errors import UserError
from runner.commands.options import (
    CONSOLE,
    DEFAULT_STORE,
    FileOption,
    JsonOption,
    MarkdownOption,
    StoreOption,
    complete_run_id,
    show,
)
from runner.terminal import join_printable

if TYPE_CHECKING:  # the collector takes a second to import: only the commands that need it do
    from collector.versus.question import CompareDocument, Question

RunAArgument = Annotated[
    str | None,
    typer.Argument(
        metavar="RUN_A",
        help="The run that B is held against; with --a and --b, the run of both.",
        autocompletion=complete_run_id,
    ),
]
RunsOption = Annotated[
    list[str] | None,
    typer.Option("--run", metavar="RUN_ID", help="With --a and --b: the runs to select from, or a pattern of them."),
]
MetricOption = Annotated[
    str | None,
    typer.Option(
        metavar="NAME",
        help="step-time, time-per-sample, pipelined-step-time, peak-memory, energy, cold-start, warm-start. Default: "
        "step-time, and where the batches of A and B differ, time-per-sample.",
    ),
]
RunBArgument = Annotated[
    str | None,
    typer.Argument(metavar="RUN_B", help="Default: the newest run in the store.", autocompletion=complete_run_id),
]
SideAOption = Annotated[
    list[str] | None,
    typer.Option(
        "--a", metavar="KEY=VALUE", help="Instead of runs: what side A is, in the newest run or --run; repeatable."
    ),
]
StoreBOption = Annotated[
    str | None, typer.Option("--store-b", metavar="URL", help="Where RUN_B is, if in another store.")
]
STYLES = {0: "green", 1: "red", 2: "yellow"}


def compare(
    run_a: RunAArgument = None,
    run_b: RunBArgument = None,
    a: SideAOption = None,
    b: Annotated[list[str] | None, typer.Option("--b", metavar="KEY=VALUE", help="What side B is.")] = None,
    run_ids: RunsOption = None,
    where: Annotated[
        list[str] | None,
        typer.Option("--where", metavar="KEY=VALUE", help="Restrict both sides, such as device=gpu."),
    ] = None,
    store: StoreOption = DEFAULT_STORE,
    metric: MetricOption = None,
    floor: Annotated[
        float | None, typer.Option(metavar="PERCENT", help="Take smaller differences for none, at the least.")
    ] = None,
    fail_undecided: Annotated[
        bool, typer.Option("--fail-undecided", help="End with exit code 2 if nothing is worse and a cell is undecided.")
    ] = False,
    as_json: JsonOption = False,
    as_markdown: MarkdownOption = False,
    output: FileOption = None,
    store_b: StoreBOption = None,
    include_invalid: Annotated[
        bool,
        typer.Option("--include-invalid", help="Also compare cells measured under faulty conditions in every repeat."),
    ] = False,
    same_hardware: Annotated[
        bool, typer.Option("--same-hardware", help="End with exit code 2 if the hardware of A and B differs.")
    ] = False,
) -> None:
    """Say whether B is slower than A, cell by cell: two runs, or two selections of what was measured.

    Exit codes: 0 nothing is shown to be worse, 1 something is, 2 nothing can be compared.
    """
    from collector.versus.words import write_markdown
    from runner.stored_runs import compare_runs

    if as_json and as_markdown:
        raise UserError("--json and --markdown: give one of them")
    question, document = compare_runs(
        store,
        run_a,
        run_b,
        store_b=store_b,
        a=a or (),
        b=b or (),
        run_patterns=run_ids or (),
        where=where or (),
        metric=metric,
        floor=floor,
        include_invalid=include_invalid,
        fails_undecided=fail_undecided,
    )
    if same_hardware and document.is_between_machines:
        raise UserError(_explain_hardware(question, document))
    page = document.to_json().decode() + "\n" if as_json else write_markdown(document) if as_markdown else None
    if show(page, partial(_print_document, document), output):
        CONSOLE.print(document.conclusion, style=STYLES[document.exit_code], soft_wrap=True)
    raise typer.Exit(document.exit_code)


def _explain_hardware(question: "Question", document: "CompareDocument") -> str:
    from collector.versus.words import describe_hardware

    return (
        f"--same-hardware: A ({question.a.label}) and B ({question.b.label}) ran on different hardware: "
        f"{join_printable(describe_hardware(document.differences))}; leave the option out to compare the machines"
    )


def _print_document(document: "CompareDocument", console: Console) -> None:
    from collector.tables.table import print_table, print_text
    from collector.versus import words

    def print_lines(*lines: str) -> None:
        for line in lines:
            print_text(console, join_printable(line))

    print_lines(*words.list_side_lines(document), "")
    if document.is_between_machines:
        print_text(console, words.MACHINES_DIFFER, style="yellow")
    if document.differences:
        table = words.make_difference_table(document)
        print_table(console, table)
        print_lines(*filter(None, [table.remark]))
    else:
        print_lines(words.describe_no_difference(document))
    print_lines(*document.warnings, "")
    table = words.make_cell_table(document, words.sort_cells(document))
    print_table(console, table)
    print_lines(*filter(None, [table.remark]), "", *words.list_group_lines(document))
    print_lines(*words.list_unpaired_lines(document), *words.list_method_lines(document), "")
    print_text(console, document.conclusion, style=STYLES[document.exit_code])
