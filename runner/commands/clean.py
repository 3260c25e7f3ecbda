"""The command `clean`."""

from typing import Annotated

import typer

from runner.commands.cluster_runs import open_job_cleaner
from runner.commands.options import (
    CONSOLE,
    CancellationStoreOption,
    ContextOption,
    NamespaceOption,
    ProfileOption,
    RunArgument,
)


def clean(
    run_id: RunArgument,
    on: ContextOption,
    profile: ProfileOption = None,
    namespace: NamespaceOption = None,
    store: CancellationStoreOption = None,
    force: Annotated[bool, typer.Option("--force", help="Cancel the run first if it is unfinished.")] = False,
) -> None:
    """Delete all Jobs of a finished run; its results stay in the store."""
    cleaner = open_job_cleaner(run_id, on, profile, namespace, store)
    counts = cleaner.clean(force=force)
    CONSOLE.print(
        f"run {run_id} in namespace {cleaner.namespace}: {counts.num_deleted} Jobs deleted; results stay in the store",
        soft_wrap=True,
    )
