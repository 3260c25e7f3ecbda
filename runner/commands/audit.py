"""The command `audit`."""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from bench.errors import UserError
from runner.commands.options import (
    CONSOLE,
    DEFAULT_STORE,
    JsonOption,
    StoreOption,
    VerifyOption,
    make_error_console,
)
from runner.terminal_text import echo

if TYPE_CHECKING:  # the collector takes a second to import: only the commands that need it do
    from collector.audit.evaluation import AuditedRow
    from collector.audit.table import AuditTable


def audit(
    table: Annotated[
        str | None,
        typer.Argument(metavar="TABLE", help="A YAML or CSV file (see docs/audit.md), or a table of --list."),
    ] = None,
    run_ids: Annotated[
        list[str] | None,
        typer.Option("--run", metavar="RUN_ID", help="A run whose cells the table is held against; repeatable."),
    ] = None,
    store: StoreOption = DEFAULT_STORE,
    verify: VerifyOption = None,
    output: Annotated[
        Path | None, typer.Option("--output", metavar="FILE", help="Write the audit as a page in Markdown.")
    ] = None,
    as_json: JsonOption = False,
    list_tables: Annotated[bool, typer.Option("--list", help="List the tables that come with the tool.")] = False,
) -> None:
    """Hold somebody's table of times or rates against the roofline, and against runs.

    Every row gets its verdict with the arithmetic: possible, implausible without Winograd, impossible, reproduced, not
    reproduced.
    """
    if list_tables:
        _print_shipped_tables()
        return
    if table is None:
        raise UserError("TABLE is missing; give a YAML or CSV file, or a name that `benchmatrix audit --list` prints")
    _audit(table, run_ids or [], store, verify, output=output, as_json=as_json)


def _audit(
    name: str,
    run_ids: list[str],
    store: str,
    verify: list[Path] | None,
    *,
    output: Path | None,
    as_json: bool,
) -> None:
    from collector.audit.evaluation import audit_table
    from collector.audit.page import write_audit_json, write_audit_page
    from collector.results.load import load_distinct_runs
    from collector.results.summary import summarize_collections
    from runner.audit_tables.loading import load_table
    from runner.reporting.stored_runs import open_existing_store, print_skipped

    table = load_table(name)
    collections = load_distinct_runs(open_existing_store(store, verify=verify), run_ids) if run_ids else []
    summary = summarize_collections(collections) if collections else None
    rows = audit_table(table, summary)
    if output is not None:
        write_audit_page(table, rows, output)
    if as_json:
        echo(write_audit_json(table, rows))
    elif output is not None:
        CONSOLE.print(str(output), soft_wrap=True)
    else:
        _print_audit(table, rows)
    for collection in collections:
        print_skipped(collection, make_error_console() if as_json else CONSOLE)


def _print_audit(table: "AuditTable", rows: "Sequence[AuditedRow]") -> None:
    from collector.audit.page import count_verdicts, introduce_table, list_explanations, make_audit_table
    from collector.report.terminal import print_table

    CONSOLE.print(f"{introduce_table(table)}\n", soft_wrap=True)
    print_table(CONSOLE, make_audit_table(table, rows))
    CONSOLE.print("\nThe arithmetic")
    for name, lines in list_explanations(rows):
        CONSOLE.print(name, soft_wrap=True)
        for line in lines:
            CONSOLE.print(f"  {line}", soft_wrap=True)
    if table.remark:
        CONSOLE.print(f"\n{table.remark}", soft_wrap=True)
    CONSOLE.print(f"\n{count_verdicts(rows)}", soft_wrap=True)


def _print_shipped_tables() -> None:
    from collector.audit.shipped import list_shipped_tables
    from runner.audit_tables.loading import describe_shipped_table
    from runner.commands.shipped import print_shipped

    print_shipped({name: describe_shipped_table(name) for name in list_shipped_tables()})
