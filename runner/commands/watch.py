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

    from runner.commands.json_documents import WatchDocument
    from runner.nights import NightReport

WatchedMatrixOption = Annotated[
    str | None, typer.Option(metavar="NAME", help="The name of the matrix to watch; default: that of the newest run.")
]
ConfirmationOption = Annotated[
    Path | None,
    typer.Option(metavar="FILE", help="Write the matrix of the cells that are suspected, or else confirmed, here."),
]
FinalOption = Annotated[
    bool, typer.Option("--final", help="Decide by what was measured again so far; no more is to come.")
]


def watch(
    store: StoreOption = DEFAULT_STORE,
    matrix: WatchedMatrixOption = None,
    as_json: JsonOption = False,
    webhook: WebhookOption = None,
    confirmation: ConfirmationOption = None,
    final: FinalOption = False,
) -> None:
    """Look at the newest night of a matrix: what got slower, and is it so when it is measured again?"""
    from runner.nights import Watch, list_lines, parse_webhooks, send_alarms
    from runner.stored_runs import open_existing_store

    webhooks = parse_webhooks(webhook or [])
    opened = open_existing_store(store)
    report = Watch(store=opened, matrix=matrix).look(is_final=final)
    messages = make_error_console() if as_json else CONSOLE
    if as_json:
        echo(_make_document(report).model_dump_json(indent=1))
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


def _make_document(report: "NightReport") -> "WatchDocument":
    from runner.commands.json_documents import WatchDocument, WatchedChange
    from runner.nights import get_state

    return WatchDocument(
        matrix=report.matrix,
        night=report.night.run_id,
        num_nights=report.num_nights,
        num_cells=report.num_cells,
        num_uncounted=report.num_uncounted,
        num_too_new=report.num_too_new,
        changes=tuple(
            WatchedChange(
                state=get_state(change),
                suspicion=change.suspicion,
                decision=change.decision,
                channels=tuple(sorted(change.channels)),
            )
            for change in report.changes
        ),
        warnings=report.warnings,
    )


def _write_confirmation(path: Path, report: "NightReport", store: str, messages: "Console") -> None:
    """Write the matrix of what waits, or else of what is confirmed, and print the command that measures it."""
    from runner.nights import write_matrix

    again = report.pending or [change.suspicion for change in report.regressions]
    if again:
        write_matrix(path, report.night, again)
        run_id = f" --run-id {again[0].confirmation_run_id}" if report.pending else ""
        command = f"benchmatrix run {path} --store {store}{run_id} --no-report"
        messages.print(f"to measure them again: {command}", soft_wrap=True)
