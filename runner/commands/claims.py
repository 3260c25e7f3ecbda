"""The command `claims`."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated

import typer

from runner.commands.completion import complete_run_id
from runner.commands.options import (
    CONSOLE,
    DEFAULT_STORE,
    FileOption,
    IncludeInvalidOption,
    JsonOption,
    ModeratedOption,
    StoreOption,
    VerifyOption,
    make_error_console,
)
from runner.terminal_text import echo

if TYPE_CHECKING:  # the collector takes a second to import: only the commands that need it do
    from collector.claims.verdicts import ClaimResult


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
    include_invalid: IncludeInvalidOption = False,
    moderated: ModeratedOption = False,
    as_json: JsonOption = False,
) -> None:
    """Say what runs show about each of the study's claims: a page in Markdown."""
    from collector.claims.page import describe_verdicts, make_claims_page
    from collector.files import replace_text
    from collector.results.load import load_distinct_runs
    from runner.reporting.stored_runs import open_existing_store, print_skipped

    collections = load_distinct_runs(open_existing_store(store, verify=verify), run_ids)
    page, results = make_claims_page(collections, include_invalid=include_invalid, moderated=moderated)
    if output is not None:
        replace_text(output, page)
    if as_json:
        _print_document(run_ids, results)
    elif output is None:
        echo(page)
    else:
        CONSOLE.print(str(output), soft_wrap=True)
        CONSOLE.print(describe_verdicts(results), soft_wrap=True)
    for collection in collections:
        print_skipped(collection, make_error_console() if as_json or output is None else CONSOLE)


def _print_document(run_ids: list[str], results: "Sequence[ClaimResult]") -> None:
    from runner.commands.json_documents import ClaimDocument, ClaimsDocument, FindingDocument

    documents = [
        ClaimDocument(
            statement=result.statement,
            provenance=result.provenance,
            verdict=result.verdict,
            reason=result.full_reason,
            findings=tuple(FindingDocument(name=one.title, reason=one.reason) for one in result.findings),
            arithmetic=result.arithmetic,
            measured=result.measured,
        )
        for result in results
    ]
    echo(ClaimsDocument(run_ids=tuple(run_ids), claims=tuple(documents)).to_json())
