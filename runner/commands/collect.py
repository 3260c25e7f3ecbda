"""The command `collect`."""

from typing import Annotated, Literal

import typer

from runner.commands.next_steps import say, say_next
from runner.commands.options import (
    CONSOLE,
    DEFAULT_STORE,
    OutputOption,
    StoredRunArgument,
    StoreOption,
)

RebuildOption = Annotated[
    bool, typer.Option("--rebuild", help="Make the store's tables/ of the run anew from its JSON documents.")
]
FormatOption = Annotated[
    Literal["latex", "markdown"] | None,
    typer.Option(
        "--format",
        metavar="FORMAT",
        help="Also write the report's tables: latex (tables.tex) or markdown (tables.md).",
    ),
]


def collect(
    run_id: StoredRunArgument = None,
    store: StoreOption = DEFAULT_STORE,
    output: OutputOption = None,
    rebuild: RebuildOption = False,
    table_format: FormatOption = None,
) -> None:
    """Merge a run's results into Parquet and CSV tables.

    The results that are new since the last time are read, and kept in the store's tables/ for every later command.
    """
    from bench.store.raw_removals import read_raw_removals
    from collector.export import write_collection
    from collector.facts import describe_raw_removals
    from runner.reporting.report_files import choose_output, write_tables
    from runner.reporting.stored_runs import load_collection, open_existing_store, print_skipped

    opened = open_existing_store(store)
    say(f"reading {run_id or 'the newest run'} from {store}")
    collection = load_collection(opened, run_id, writes_tables=True, rebuilds_tables=rebuild)
    directory = choose_output(output, collection.run)
    paths = write_collection(collection, directory)
    if table_format is not None:
        paths = [*paths, write_tables(collection, directory, table_format)]
    for path in paths:
        CONSOLE.print(str(path), soft_wrap=True)
    print_skipped(collection, CONSOLE)
    for line in describe_raw_removals(read_raw_removals(opened, collection.run.run_id)):
        CONSOLE.print(line, soft_wrap=True)
    say_next(f"benchmatrix report {collection.run.run_id} --store {store}", "pandas, DuckDB: docs/tables.md")
