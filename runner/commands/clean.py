"""The command `clean`: the Jobs of a run on a cluster, or raw results in a store."""

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Annotated

import typer
from rich import filesize

from bench.errors import UserError
from runner.commands.options import CONSOLE, NamespaceOption, parse_duration, refuse_given

if TYPE_CHECKING:
    from runner.retention import RunPlan

USE = (
    "give RUN_ID, --on and --store to delete the Jobs of a run, or --store with --raw-older-than to remove raw results "
    "from a store"
)
JobsContextOption = Annotated[
    str | None,
    typer.Option(
        "--on", metavar="CONTEXT", help="The Jobs' cluster: a context of your kubeconfig, `current`, or `in-cluster`."
    ),
]


def clean(
    context: typer.Context,
    run_id: Annotated[str, typer.Argument(metavar="RUN_ID", help="Id of the run whose Jobs are deleted.")] = "",
    on: JobsContextOption = None,
    namespace: NamespaceOption = None,
    store: Annotated[
        str | None, typer.Option("--store", metavar="URL", help="The run's store, or the store that is cleaned.")
    ] = None,
    force: Annotated[bool, typer.Option("--force", help="Cancel the run first if it is unfinished.")] = False,
    raw_older_than: Annotated[
        str | None,
        typer.Option(
            "--raw-older-than",
            metavar="AGE",
            help="Show the raw results of runs that are over and in which nothing was written for so long: 90d, 12w. "
            "Rows stay.",
        ),
    ] = None,
    delete: Annotated[bool, typer.Option("--delete", help="Delete what is shown.")] = False,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Say what would be deleted; delete nothing.")] = False,
) -> None:
    """Delete the Jobs of a finished run (RUN_ID --on), or raw results whose rows the data set has (--store)."""
    if run_id or on:
        refuse_given(context, ("raw_older_than", "delete"), "is for stores; leave RUN_ID and --on out")
        _clean_jobs(run_id, on, namespace, store, force=force, is_dry_run=dry_run)
        return
    refuse_given(context, ("namespace", "force"), "is for Jobs; add RUN_ID and --on")
    if store is None:
        raise UserError(f"clean: {USE}")
    if raw_older_than is None:
        raise UserError("--store: say which raw results are meant with --raw-older-than AGE, such as 90d")
    _clean_store(store, raw_older_than, is_deleted=delete and not dry_run)


def _clean_jobs(
    run_id: str, on: str | None, namespace: str | None, store: str | None, *, force: bool, is_dry_run: bool
) -> None:
    from runner.commands.cluster import open_job_cleaner

    if not run_id or on is None or store is None:
        missing = "RUN_ID" if not run_id else "--on" if on is None else "--store"
        raise UserError(f"clean: {missing} is missing; {USE}")
    cleaner = open_job_cleaner(run_id, on, namespace, store)
    number = cleaner.clean(force=force, is_dry_run=is_dry_run)
    words = "would be deleted; nothing was changed" if is_dry_run else "deleted; results stay in the store"
    CONSOLE.print(f"run {run_id} in namespace {cleaner.namespace}: {number} Jobs {words}", soft_wrap=True)


def _clean_store(url: str, older_than: str, *, is_deleted: bool) -> None:
    from runner.retention import MIN_AGE, plan_removal, remove_raw_results
    from runner.stored_runs import open_existing_store

    age = timedelta(seconds=parse_duration("--raw-older-than", older_than, least=MIN_AGE))
    store, now = open_existing_store(url), datetime.now(UTC)
    runs, kept = plan_removal(store, age, now)
    _show_plan(runs, kept)
    if runs and not is_deleted:
        CONSOLE.print("nothing was deleted; --delete deletes what is shown")
    for run in runs if is_deleted else ():
        remove_raw_results(store, run, f"--raw-older-than {older_than}", now)
        CONSOLE.print(f"deleted: {_describe_run(run)}", soft_wrap=True)


def _show_plan(runs: "Sequence[RunPlan]", kept: Mapping[str, str]) -> None:
    from collector.units import count_things

    lines = [f"to delete: {_describe_run(run)}" for run in runs]
    lines += [f"kept: {run_id}: {reason}" for run_id, reason in kept.items()]
    num_bytes = filesize.decimal(sum(run.num_bytes for run in runs))
    results = count_things(sum(len(run.results) for run in runs), "raw result")
    lines.append(f"in all: {results} of {count_things(len(runs), 'run')}, {num_bytes}")
    if runs:
        lines.append("their rows in the data set stay, and so do plans, placements and reports")
    for line in lines:
        CONSOLE.print(line, soft_wrap=True)


def _describe_run(run: "RunPlan") -> str:
    size = f"{len(run.results)} raw results, {filesize.decimal(run.num_bytes)}"
    return f"{run.run_id}: {size}, last written {run.last_write:%Y-%m-%d}"
