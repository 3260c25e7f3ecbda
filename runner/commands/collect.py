"""The command `collect`."""

from typing import Annotated, Literal

import typer

from bench.raw_removals import read_raw_removals
from runner.commands.options import (
    CONSOLE,
    DEFAULT_STORE,
    IncludeInvalidOption,
    ModeratedOption,
    OutputOption,
    StoredRunArgument,
    StoreOption,
)
from runner.reporting.report_files import choose_output, write_tables
from runner.reporting.stored_runs import load_collection, open_existing_store, print_skipped


def collect(
    run_id: StoredRunArgument = "",
    store: StoreOption = DEFAULT_STORE,
    output: OutputOption = None,
    include_invalid: IncludeInvalidOption = False,
    moderated: ModeratedOption = False,
    rebuild: Annotated[
        bool, typer.Option("--rebuild", help="Make the store's tables/ of the run anew from its JSON documents.")
    ] = False,
    table_format: Annotated[
        Literal["latex", "markdown"] | None,
        typer.Option(
            "--format",
            metavar="FORMAT",
            help="Also write the report's tables: latex (tables.tex) or markdown (tables.md).",
        ),
    ] = None,
) -> None:
    """Merge a run's results into Parquet and CSV tables.

    The results that are new since the last time are read, and kept in the store's tables/ for every later command.
    """
    from collector.export import write_collection
    from collector.facts import describe_raw_removals

    opened = open_existing_store(store)
    collection = load_collection(opened, run_id, writes_tables=True, rebuilds_tables=rebuild)
    for path in write_collection(
        collection, choose_output(output, collection.run), include_invalid=include_invalid, moderated=moderated
    ):
        CONSOLE.print(str(path), soft_wrap=True)
    if table_format is not None:
        folder = choose_output(output, collection.run)
        path = write_tables(collection, folder, table_format, include_invalid=include_invalid, moderated=moderated)
        CONSOLE.print(str(path), soft_wrap=True)
    print_skipped(collection, CONSOLE)
    for line in describe_raw_removals(read_raw_removals(opened, collection.run.run_id)):
        CONSOLE.print(line, soft_wrap=True)
