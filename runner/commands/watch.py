"""The command `watch`."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from runner.commands.options import (
    CONSOLE,
    DEFAULT_STORE,
    EXIT_NOT_OK,
    EXIT_PENDING,
    JsonOption,
    StoreOption,
    WebhookOption,
    make_error_console,
)
from runner.terminal import echo

if TYPE_CHECKING:  # the collector takes a second to import
    from rich.console import Console

    from runner.nights import NightReport

WatchedMatrixOption = Annotated[
    str | None, typer.Option(metavar="NAME", help="The name of the matrix to watch; default: that of the newest run.")
]


def watch(
    store: StoreOption = DEFAULT_STORE,
    matrix: WatchedMatrixOption = None,
    as_json: JsonOption = False,
    webhook: WebhookOption = None,
    confirmation: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Write the matrix of the cells that are suspected, or else confirmed, here."),
    ] = None,
) -> None:
    """Look at the newest night of a matrix: what got slower, and is it so when it is measured again?"""
    from runner.commands.json_documents import WatchDocument
    from runner.nights import list_lines, look, parse_webhooks, send_alarms
    from runner.stored_runs import open_existing_store

    webhooks = parse_webhooks(webhook or [])
    opened = open_existing_store(store)
    report = look(opened, matrix)
    messages = make_error_console() if as_json else CONSOLE
    if as_json:
        echo(WatchDocument.model_validate(report, from_attributes=True, strict=False).model_dump_json(indent=1))
    for line in () if as_json else list_lines(report):
        messages.print(line, soft_wrap=True)
    if confirmation is not None:
        _write_confirmation(confirmation, report, store, messages)
    for line in send_alarms(opened, report, webhooks):
        messages.print(line, soft_wrap=True)
    if report.regressions:
        raise typer.Exit(EXIT_NOT_OK)
    if report.pending:
        raise typer.Exit(EXIT_PENDING)


def _write_confirmation(path: Path, report: "NightReport", store: str, messages: "Console") -> None:
    """Write the matrix of what waits, or else of what is confirmed, and print the command that measures it."""
    from runner.nights import write_matrix

    again = report.pending or [change.suspicion for change in report.regressions]
    if again:
        write_matrix(path, report.run, again)
        run_id = f" --run-id {again[0].confirmation_run_id}" if report.pending else ""
        command = f"benchmatrix run {path} --store {store}{run_id} --no-report"
        messages.print(f"to measure them again: {command}", soft_wrap=True)
