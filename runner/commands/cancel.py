"""The command `cancel`."""

from functools import partial
from typing import TYPE_CHECKING, Annotated

import typer

from runner.commands.options import (
    CONSOLE,
    CancellationStoreOption,
    ContextOption,
    NamespaceOption,
    ProfileOption,
    RunArgument,
    SignWrittenOption,
    VerifyOption,
)

if TYPE_CHECKING:  # the package `kubernetes` takes half a second to import: only the commands that need it do
    from runner.kubernetes.cleanup import Counts


def cancel(
    run_id: RunArgument,
    on: ContextOption,
    profile: ProfileOption = None,
    namespace: NamespaceOption = None,
    store: CancellationStoreOption = None,
    sign: SignWrittenOption = None,
    verify: VerifyOption = None,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Say which Jobs would be deleted; delete none.")] = False,
) -> None:
    """Stop a run on a cluster: end its runner, delete its unfinished Jobs, keep what is finished.

    Of a night that is being watched, the run that measures its suspicions again is stopped too.
    """
    from runner.commands.cluster_runs import open_job_cleaner
    from runner.signing import open_signed_store

    open_store = partial(open_signed_store, sign=sign, verify=verify or ())
    cleaner = open_job_cleaner(run_id, on, profile, namespace, store, open_store)
    counts = cleaner.preview() if dry_run else cleaner.cancel()
    if dry_run:
        CONSOLE.print(
            f"run {run_id} in namespace {cleaner.namespace}: {counts.num_deleted} unfinished Jobs would be deleted, "
            f"{counts.num_left} finished ones left; nothing was changed",
            soft_wrap=True,
        )
        return
    _print_cancelled(run_id, cleaner.namespace, counts)


def _print_cancelled(run_id: str, namespace: str, counts: "Counts") -> None:
    for stopped, found in filter(None, [(run_id, counts), counts.confirmation]):
        CONSOLE.print(
            f"run {stopped} in namespace {namespace}: {found.num_deleted} unfinished Jobs deleted, "
            f"{found.num_left} finished ones left",
            soft_wrap=True,
        )
    if counts.unmarked_reason:
        CONSOLE.print(
            f"warning: no mark was left in the store of the run: {counts.unmarked_reason}. A runner that does not see "
            f"its Jobs at present creates them again; to stop it too, give this command again with {counts.remedy}",
            soft_wrap=True,
        )
