"""The command `claims`."""

from pathlib import Path
from typing import Annotated

import typer

from runner.commands.options import CONSOLE, DEFAULT_STORE, IncludeInvalidOption, ModeratedOption, StoreOption
from runner.reporting.stored_runs import open_existing_store, print_skipped


def claims(
    run_ids: Annotated[
        list[str], typer.Argument(metavar="RUN_ID", help="Ids of runs; GPU and CPU may be in different ones.")
    ],
    output: Annotated[Path, typer.Option("--output", metavar="FILE", help="The page: a Markdown file.")],
    store: StoreOption = DEFAULT_STORE,
    include_invalid: IncludeInvalidOption = False,
    moderated: ModeratedOption = False,
) -> None:
    """Write what runs say about each of the study's claims."""
    from collector.claims.page import describe_verdicts, write_claims_page
    from collector.results.load import load_runs

    collections = load_runs(open_existing_store(store), run_ids)
    results = write_claims_page(collections, output, include_invalid=include_invalid, moderated=moderated)
    CONSOLE.print(str(output), soft_wrap=True)
    CONSOLE.print(describe_verdicts(results), soft_wrap=True)
    for collection in collections:
        print_skipped(collection, CONSOLE)
