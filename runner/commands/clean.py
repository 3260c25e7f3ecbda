"""The command `clean`: the Jobs of a run on a cluster, or raw results in a store."""

from collections.abc import Mapping
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from bench.errors import UserError
from runner.commands.options import (
    CONSOLE,
    NamespaceOption,
    ProfileOption,
    SignWrittenOption,
    VerifyOption,
)

if TYPE_CHECKING:  # the package `kubernetes` takes half a second to import: only the commands that need it do
    from runner.kubernetes.cleanup import Counts, JobCleaner

Keys = tuple[Path | None, tuple[Path, ...]]
"""The files of the key that signs, and of public keys that are trusted besides."""
USE = (
    "give RUN_ID and --on to delete the Jobs of a run, or --store with --raw-older-than to remove raw results from a "
    "store"
)


JobsRunArgument = Annotated[str, typer.Argument(metavar="RUN_ID", help="Id of the run whose Jobs are deleted.")]
JobsContextOption = Annotated[
    str | None,
    typer.Option(
        "--on", metavar="CONTEXT", help="The Jobs' cluster: a context of your kubeconfig, `current`, or `in-cluster`."
    ),
]
CleanedStoreOption = Annotated[
    str | None, typer.Option("--store", metavar="URL", help="The run's store, or the store that is cleaned.")
]
ForceOption = Annotated[bool, typer.Option("--force", help="Cancel the run first if it is unfinished.")]
OlderThanOption = Annotated[
    str | None,
    typer.Option(
        "--raw-older-than",
        metavar="AGE",
        help="Show the raw results of runs in which nothing was written for so long: 90d, 12w. Rows stay.",
    ),
]
UnfinishedOption = Annotated[
    bool, typer.Option("--include-unfinished", help="Take runs that lack repeats and have no report as over.")
]
DeleteOption = Annotated[bool, typer.Option("--delete", help="Delete what was shown, after a question.")]
DryRunOption = Annotated[bool, typer.Option("--dry-run", help="Say what would be deleted; delete nothing.")]
YesOption = Annotated[bool, typer.Option("--yes", help="With --delete: ask nothing.")]


def clean(
    run_id: JobsRunArgument = "",
    on: JobsContextOption = None,
    profile: ProfileOption = None,
    namespace: NamespaceOption = None,
    store: CleanedStoreOption = None,
    force: ForceOption = False,
    raw_older_than: OlderThanOption = None,
    include_unfinished: UnfinishedOption = False,
    delete: DeleteOption = False,
    yes: YesOption = False,
    dry_run: DryRunOption = False,
    sign: SignWrittenOption = None,
    verify: VerifyOption = None,
) -> None:
    """Delete the Jobs of a finished run (RUN_ID --on), or raw results whose rows the data set has (--store)."""
    of_store = {
        "--raw-older-than": raw_older_than,
        "--include-unfinished": include_unfinished,
        "--delete": delete,
        "--yes": yes,
    }
    keys = sign, tuple(verify or ())
    if run_id or on:
        _check_absent(of_store, "is for stores; leave RUN_ID and --on out")
        _clean_jobs(run_id, on, profile, namespace, store, keys, force=force, is_dry_run=dry_run)
        return
    if dry_run and delete:
        raise UserError("--dry-run: deletes nothing; leave it or --delete out")
    _check_absent(
        {"--profile": profile, "--namespace": namespace, "--force": force}, "is for Jobs; add RUN_ID and --on"
    )
    wishes = {"include_unfinished": include_unfinished, "is_deleted": delete, "is_confirmed": yes}
    _clean_store(store, raw_older_than, keys, **wishes)


def _clean_store(url: str | None, older_than: str | None, keys: Keys, **wishes: bool) -> None:
    from runner.commands.store_cleaning import CleaningRequest, clean_store

    if url is None:
        raise UserError(f"clean: {USE}")
    if older_than is None:
        raise UserError("--store: say which raw results are meant with --raw-older-than AGE, such as 90d")
    clean_store(CleaningRequest(url=url, older_than=older_than, sign=keys[0], verify=keys[1], **wishes))


def _check_absent(options: Mapping[str, object], reason: str) -> None:
    for name, value in options.items():
        if value:
            raise UserError(f"{name}: {reason}")


def _clean_jobs(
    run_id: str,
    on: str | None,
    profile: str | None,
    namespace: str | None,
    store: str | None,
    keys: Keys,
    *,
    force: bool,
    is_dry_run: bool,
) -> None:
    from runner.commands.cluster_runs import open_job_cleaner
    from runner.signing import open_signed_store

    if not run_id or on is None:
        raise UserError(f"clean: {'--on' if run_id else 'RUN_ID'} is missing; {USE}")
    open_store = partial(open_signed_store, sign=keys[0], verify=keys[1])
    cleaner = open_job_cleaner(run_id, on, profile, namespace, store, open_store)
    if is_dry_run:
        _preview_jobs(cleaner)
        return
    counts = cleaner.clean(force=force)
    CONSOLE.print(
        f"run {run_id} in namespace {cleaner.namespace}: {counts.num_deleted} Jobs{_describe_pods(counts)} deleted; "
        "results stay in the store",
        soft_wrap=True,
    )
    _say_what_is_left(counts)


def _preview_jobs(cleaner: "JobCleaner") -> None:
    found = cleaner.preview_cleaning()
    CONSOLE.print(
        f"run {cleaner.run_id} in namespace {cleaner.namespace}: {found.num_left} finished and {found.num_deleted} "
        f"unfinished Jobs{_describe_pods(found)} would be deleted (unfinished ones with --force alone); nothing was "
        "changed",
        soft_wrap=True,
    )
    _say_what_is_left(found)


def _describe_pods(counts: "Counts") -> str:
    """Return what follows the number of Jobs: nothing where every pod had its Job."""
    if not counts.num_pods:
        return ""
    return f" and {counts.num_pods} {'pod' if counts.num_pods == 1 else 'pods'} whose Job was gone"


def _say_what_is_left(counts: "Counts") -> None:
    if counts.pods_left:
        CONSOLE.print(f"warning: {counts.pods_left}", soft_wrap=True)
