"""Say which Jobs of a run a command deletes, or has deleted."""

from typing import TYPE_CHECKING, Annotated

import typer

from runner.commands.options import CONSOLE
from runner.terminal_text import echo

if TYPE_CHECKING:  # the package `kubernetes` takes half a second to import: only the commands that need it do
    from runner.kubernetes.cleanup import Counts, JobCleaner

DryRunOption = Annotated[bool, typer.Option("--dry-run", help="Say which Jobs would be deleted; delete none.")]


def print_jobs(cleaner: "JobCleaner", counts: "Counts", *, is_dry_run: bool, as_json: bool) -> None:
    """Print how many Jobs were deleted and left, or would be, in a line or as one JSON document."""
    from runner.commands.json_documents import JobsDocument

    if as_json:
        document = JobsDocument(
            run_id=cleaner.run_id,
            namespace=cleaner.namespace,
            num_deleted=counts.num_deleted,
            num_left=counts.num_left,
            is_dry_run=is_dry_run,
        )
        echo(document.model_dump_json())
        return
    CONSOLE.print(
        f"run {cleaner.run_id} in namespace {cleaner.namespace}: {counts.num_deleted} unfinished Jobs would be "
        f"deleted, {counts.num_left} finished ones left; nothing was changed",
        soft_wrap=True,
    )
