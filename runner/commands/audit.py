"""The command `audit`."""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from runner.commands.options import CONSOLE, DEFAULT_STORE, JsonOption, StoreOption, make_error_console, print_shipped
from runner.terminal import echo

if TYPE_CHECKING:  # the collector takes a second to import: only the commands that need it do
    from collector.audit.rows import AuditedRow
    from collector.audit.table import AuditTable


def audit(
    table: Annotated[
        str | None,
        typer.Argument(
            metavar="TABLE",
            help="A YAML or CSV file (see docs/audit.md), or the name of a shipped table; default: list these.",
        ),
    ] = None,
    run_ids: Annotated[
        list[str] | None,
        typer.Option("--run", metavar="RUN_ID", help="A run whose cells the table is held against; repeatable."),
    ] = None,
    store: StoreOption = DEFAULT_STORE,
    output: Annotated[
        Path | None, typer.Option("--output", metavar="FILE", help="Write the audit as a page in Markdown.")
    ] = None,
    as_json: JsonOption = False,
) -> None:
    """Hold somebody's table of times or rates against the roofline, and against runs.

    Every row gets its verdict with the arithmetic: possible, implausible without Winograd, impossible, reproduced, not
    reproduced. With runs, `audit study` judges all of the study's claims, on a page of their own.
    """
    from collector.audit.claims import Study, list_shipped_tables
    from collector.audit.page import describe_claims, make_claims_page, write_audit_json, write_audit_page
    from collector.audit.rows import audit_table
    from collector.files import replace_text
    from collector.results.load import load_runs
    from collector.results.summary import summarize_collections
    from runner.analysis_inputs import load_table
    from runner.stored_runs import open_existing_store, print_skipped

    if table is None:
        shipped = {name: load_table(name) for name in list_shipped_tables()}
        print_shipped({name: f"{one.title}, {len(one.rows)} rows" for name, one in shipped.items()})
        return
    loaded = load_table(table)
    collections = load_runs(open_existing_store(store), run_ids) if run_ids else []
    rows = audit_table(loaded, summarize_collections(collections) if collections else None)
    claims_page, claims = make_claims_page(collections) if collections and isinstance(loaded, Study) else (None, ())
    if output is not None:
        replace_text(output, claims_page or write_audit_page(loaded, rows))
    if as_json:
        echo(write_audit_json(loaded, rows))
    elif output is not None:
        CONSOLE.print(str(output), soft_wrap=True)
    else:
        _print_audit(loaded, rows)
    if claims and not as_json:
        CONSOLE.print(describe_claims(claims), soft_wrap=True)
    for collection in collections:
        print_skipped(collection, make_error_console() if as_json else CONSOLE)


def _print_audit(table: "AuditTable", rows: "Sequence[AuditedRow]") -> None:
    from collector.audit.page import count_verdicts, introduce_table, list_explanations, make_audit_table
    from collector.tables.table import print_table

    CONSOLE.print(f"{introduce_table(table)}\n", soft_wrap=True)
    print_table(CONSOLE, make_audit_table(table, rows))
    CONSOLE.print("\nThe arithmetic")
    for name, lines in list_explanations(rows):
        CONSOLE.print(name, soft_wrap=True)
        for line in lines:
            CONSOLE.print(f"  {line}", soft_wrap=True)
    if table.remark:
        CONSOLE.print(f"\n{table.remark}", soft_wrap=True)
    CONSOLE.print(f"\n{count_verdicts('row', [row.verdict_in_words for row in rows])}", soft_wrap=True)
