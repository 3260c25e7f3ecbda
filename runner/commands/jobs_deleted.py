"""Say which Jobs of a run a command deletes, or has deleted."""

from dataclasses import replace
from typing import TYPE_CHECKING, Annotated

import typer

from runner.terminal_text import echo

if TYPE_CHECKING:  # the package `kubernetes` takes half a second to import: only the commands that need it do
    from runner.commands.change_documents import JobsDocument
    from runner.kubernetes.cleanup import Counts

DryRunOption = Annotated[bool, typer.Option("--dry-run", help="Say which Jobs would be deleted; delete none.")]


def print_jobs(run_id: str, namespace: str, counts: "Counts", *, is_dry_run: bool) -> None:
    """Print what a command did to the Jobs of a run, or would do, as one JSON document."""
    echo(_describe(run_id, namespace, counts, is_dry_run=is_dry_run).model_dump_json())


def print_cleaning_preview(run_id: str, namespace: str, counts: "Counts", *, force: bool) -> None:
    """Print what `clean` would do as one JSON document; `counts`: of `JobCleaner.preview`."""
    num_unfinished = counts.num_deleted + counts.num_running_pods
    num_jobs = counts.num_deleted + counts.num_left
    is_stopped = bool(num_unfinished) and not force
    deleted, left = (0, num_jobs) if is_stopped else (num_jobs, 0)
    found = replace(counts, num_deleted=deleted, num_left=left, num_pods=0 if is_stopped else counts.num_pods)
    echo(_describe(run_id, namespace, found, is_dry_run=True, num_unfinished=num_unfinished).model_dump_json())


def _describe(
    run_id: str, namespace: str, counts: "Counts", *, is_dry_run: bool, num_unfinished: int | None = None
) -> "JobsDocument":
    from runner.commands.change_documents import JobsDocument

    again = None
    if counts.confirmation is not None:
        confirming, found = counts.confirmation
        again = _describe(confirming, namespace, found, is_dry_run=is_dry_run)
    return JobsDocument(
        run_id=run_id,
        namespace=namespace,
        num_deleted=counts.num_deleted,
        num_left=counts.num_left,
        is_dry_run=is_dry_run,
        num_unfinished=num_unfinished,
        num_pods=counts.num_pods,
        pods_left=counts.pods_left or None,
        unmarked_reason=counts.unmarked_reason or None,
        confirmation=again,
    )
