"""The command `claims`."""

from typing import Annotated

import typer

from runner.commands.completion import complete_run_id
from runner.commands.options import (
    CONSOLE,
    DEFAULT_STORE,
    FileOption,
    StoreOption,
    VerifyOption,
    make_error_console,
)
from runner.terminal_text import echo


def claims(
    run_ids: Annotated[
        list[str],
        typer.Argument(
            metavar="RUN_ID",
            help="Ids of runs; GPU and CPU may be in different ones.",
            autocompletion=complete_run_id,
        ),
    ],
    output: FileOption = None,
    store: StoreOption = DEFAULT_STORE,
    verify: VerifyOption = None,
) -> None:
    """Say what runs show about each of the study's claims: a page in Markdown."""
    from collector.claims.page import describe_verdicts, make_claims_page
    from collector.files import replace_text
    from collector.results.load import load_distinct_runs
    from runner.reporting.stored_runs import open_existing_store, print_skipped

    collections = load_distinct_runs(open_existing_store(store, verify=verify), run_ids)
    page, results = make_claims_page(collections)
    if output is not None:
        replace_text(output, page)
    if output is None:
        echo(page)
    else:
        CONSOLE.print(str(output), soft_wrap=True)
        CONSOLE.print(describe_verdicts(results), soft_wrap=True)
    for collection in collections:
        print_skipped(collection, make_error_console() if output is None else CONSOLE)
