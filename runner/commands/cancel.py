"""The command `cancel`."""

from typing import Annotated

import typer

from runner.commands.options import (
    CONSOLE,
    CancellationStoreOption,
    ContextOption,
    NamespaceOption,
    ProfileOption,
    RunArgument,
)

DryRunOption = Annotated[bool, typer.Option("--dry-run", help="Say which Jobs would be deleted; delete none.")]


def cancel(
    run_id: RunArgument,
    on: ContextOption,
    profile: ProfileOption = None,
    namespace: NamespaceOption = None,
    store: CancellationStoreOption = None,
    dry_run: DryRunOption = False,
) -> None:
    """Stop a run on a cluster: end its runner, delete its unfinished Jobs, keep what is finished.

    Of a night that is being watched, the run that measures its suspicions again is stopped too.
    """
    from runner.commands.cluster_runs import open_job_cleaner

    cleaner = open_job_cleaner(run_id, on, profile, namespace, store)
    words = ("would be deleted", "; nothing was changed") if dry_run else ("deleted", "")
    for found in cleaner.cancel(is_dry_run=dry_run):
        CONSOLE.print(
            f"run {found.run_id} in namespace {cleaner.namespace}: {found.num_deleted} unfinished Jobs {words[0]}, "
            f"{found.num_left} finished ones left{words[1]}",
            soft_wrap=True,
        )
        if found.warning:
            CONSOLE.print(f"warning: {found.warning}", soft_wrap=True)
