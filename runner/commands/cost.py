"""The command `cost`."""

from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Annotated

import typer
from rich.console import Console

from bench.errors import UserError
from runner.commands.options import (
    DEFAULT_STORE,
    FileOption,
    JsonOption,
    MachinesOption,
    MarkdownOption,
    PricesOption,
    StoredRunsArgument,
    StoreOption,
    make_error_console,
    parse_machines,
    read_durations,
    show,
)
from runner.terminal import join_printable

if TYPE_CHECKING:  # the collector takes a second to import: only the commands that need it do
    from collector.costs.document import CostDocument
    from collector.costs.evaluation import CostQuestion

DataSetOption = Annotated[
    str | None,
    typer.Option(
        "--dataset", metavar="NAME", help="Also cost epochs of imagenet, cifar10, horse2zebra, or of so many samples."
    ),
]
MaxCostOption = Annotated[
    float | None,
    typer.Option("--max-cost", metavar="AMOUNT", help="Name the fastest machine whose job costs no more than this."),
]
MaxStepTimeOption = Annotated[
    float | None,
    typer.Option(
        "--max-step-time",
        parser=read_durations("--max-step-time"),
        metavar="TIME",
        help="Only cells whose steps take no longer, such as 20ms per output token, and the cheapest of them.",
    ),
]
SpotOption = Annotated[bool, typer.Option("--spot", help="Take spot prices too; such machines may be taken away.")]
MAX_AMOUNT = 1e12
"""Of epochs and of money: above it is a slip of a digit, and products of it with prices would end as infinite."""
NOTHING_COUNTS = "No cell has a repeat that counts, so nothing is costed."


def cost(
    run_ids: StoredRunsArgument = None,
    store: StoreOption = DEFAULT_STORE,
    dataset: DataSetOption = None,
    epochs: Annotated[float | None, typer.Option(metavar="NUMBER", help="Epochs of the data set; default: 1.")] = None,
    deadline: Annotated[
        float | None,
        typer.Option(
            "--deadline",
            parser=read_durations("--deadline"),
            metavar="TIME",
            help="Name the cheapest machine whose job ends in time, such as 90m, 8h or 2d.",
        ),
    ] = None,
    max_cost: MaxCostOption = None,
    max_step_time: MaxStepTimeOption = None,
    cloud: Annotated[str | None, typer.Option(metavar="NAME", help="Only machines of this cloud.")] = None,
    region: Annotated[str | None, typer.Option(metavar="NAME", help="Only machines of this region.")] = None,
    spot: SpotOption = False,
    as_json: JsonOption = False,
    as_markdown: MarkdownOption = False,
    output: FileOption = None,
    prices: PricesOption = None,
    machine: MachinesOption = None,
    whole_machines: Annotated[
        bool, typer.Option("--whole-machines", help="Count all of a machine, not the share of the GPUs that work.")
    ] = False,
) -> None:
    """Say what measured cells cost in money, energy and CO2, and which machine is the cheapest or the fastest."""
    from collector.costs.document import write_markdown
    from collector.costs.evaluation import evaluate_costs
    from collector.results.load import load_runs
    from runner.price_tables import check_machines, check_place, load_prices
    from runner.stored_runs import find_newest_run, open_existing_store, print_skipped

    if as_json and as_markdown:
        raise UserError("--json and --markdown: give one of them")
    question = replace(
        _ask_for_job(dataset, epochs, deadline, max_cost),
        max_step_seconds=max_step_time,
        purchases=("on-demand", "spot") if spot else ("on-demand",),
        cloud=cloud,
        region=region,
        machines=parse_machines(machine or []),
        counts_whole_machines=whole_machines,
    )
    table = load_prices(prices)
    check_machines(table, question.machines, prices)
    check_place(table, cloud, region, prices)
    opened = open_existing_store(store)
    collections = load_runs(opened, run_ids or [find_newest_run(opened).run_id])
    for collection in collections:
        print_skipped(collection, make_error_console())
    document = evaluate_costs(collections, table, question)
    page = document.to_json().decode() + "\n" if as_json else write_markdown(document) if as_markdown else None
    show(page, partial(_print_document, document), output)


def _ask_for_job(
    dataset: str | None, epochs: float | None, deadline: float | None, max_cost: float | None
) -> "CostQuestion":
    from collector.costs.evaluation import CostQuestion, find_job

    for name, value in (("--epochs", epochs), ("--deadline", deadline), ("--max-cost", max_cost)):
        if value is not None and dataset is None:
            raise UserError(f"{name}: is for a whole job; say which with --dataset (and --epochs)")
    for name, value in (("--epochs", epochs), ("--max-cost", max_cost)):
        if value is not None and not 0 < value <= MAX_AMOUNT:
            raise UserError(f"{name} {value:g}: expected a number above 0, at most {MAX_AMOUNT:g}")
    job = None if dataset is None else find_job(dataset, 1.0 if epochs is None else epochs)
    return CostQuestion(job=job, deadline_seconds=deadline, budget=max_cost)


def _print_document(document: "CostDocument", console: Console) -> None:
    from collector.costs.document import list_tables, list_texts
    from collector.tables.table import print_table

    if not document.cells and not document.choices:
        console.print(NOTHING_COUNTS, soft_wrap=True)
    for table in list_tables(document) if document.cells else ():
        console.print(table.caption, soft_wrap=True)
        print_table(console, table)
        console.print()
    for lines in list_texts(document).values():
        for line in lines:
            console.print(join_printable(line), soft_wrap=True)
        console.print()
