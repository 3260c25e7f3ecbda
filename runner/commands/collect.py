"""The command `collect`."""

from typing import Annotated, Literal

import typer

from runner.commands.files_written import print_files
from runner.commands.next_steps import say, say_next
from runner.commands.options import (
    CONSOLE,
    DEFAULT_STORE,
    IncludeInvalidOption,
    JsonOption,
    ModeratedOption,
    OutputOption,
    StoredRunArgument,
    StoreOption,
    VerifyOption,
    make_error_console,
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
    verify: VerifyOption = None,
    output: OutputOption = None,
    include_invalid: IncludeInvalidOption = False,
    moderated: ModeratedOption = False,
    rebuild: RebuildOption = False,
    table_format: FormatOption = None,
    as_json: JsonOption = False,
) -> None:
    """Merge a run's results into Parquet and CSV tables.

    The results that are new since the last time are read, and kept in the store's tables/ for every later command.
    """
    from bench.raw_removals import read_raw_removals
    from collector.export import write_collection
    from collector.facts import describe_raw_removals
    from runner.reporting.report_files import choose_output, write_tables
    from runner.reporting.stored_runs import load_collection, open_existing_store, print_skipped

    opened = open_existing_store(store, verify=verify)
    say(f"reading {run_id or 'the newest run'} from {store}")
    collection = load_collection(opened, run_id, writes_tables=True, rebuilds_tables=rebuild)
    directory = choose_output(output, collection.run)
    paths = write_collection(collection, directory, include_invalid=include_invalid, moderated=moderated)
    if table_format is not None:
        kinds = {"include_invalid": include_invalid, "moderated": moderated}
        paths = [*paths, write_tables(collection, directory, table_format, **kinds)]
    if as_json:
        print_files(collection.run.run_id, paths)
        print_skipped(collection, make_error_console())
        return
    for path in paths:
        CONSOLE.print(str(path), soft_wrap=True)
    print_skipped(collection, CONSOLE)
    for line in describe_raw_removals(read_raw_removals(opened, collection.run.run_id)):
        CONSOLE.print(line, soft_wrap=True)
    say_next(f"benchmatrix report {collection.run.run_id} --store {store}", "pandas, DuckDB: docs/tables.md")
