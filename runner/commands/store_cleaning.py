"""Remove raw results from a store, for the command `clean`: show them, ask, and delete."""

import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path

import typer

from bench.errors import UserError
from bench.store import Store
from runner.commands.exit_codes import EXIT_NOT_OK
from runner.commands.options import CONSOLE
from runner.reporting.stored_runs import open_existing_store
from runner.retention.dataset_results import DatasetResults
from runner.retention.plan import RemovalPlan, RunPlan, describe_kept, plan_removal
from runner.retention.policy import parse_policy
from runner.retention.removal import remove_raw_results
from runner.signing import sign_store

CLOCK_TOLERANCE = timedelta(minutes=15)
"""By how much this machine's clock may be ahead of the store's without a word: S3 refuses requests beyond it
(RequestTimeTooSkewed, https://docs.aws.amazon.com/AmazonS3/latest/API/ErrorResponses.html)."""


@dataclass(frozen=True, kw_only=True)
class CleaningRequest:
    """What was asked of `clean --store`."""

    url: str
    older_than: str
    include_unfinished: bool
    is_deleted: bool
    """False: nothing is deleted, only shown."""
    is_confirmed: bool
    sign: Path | None = None
    """The file of the key that signs what says which results were removed; None: it is not signed."""
    verify: tuple[Path, ...] = ()
    """Files of public keys that are trusted besides that of `sign`."""


def clean_store(request: CleaningRequest) -> None:
    """Show which raw results a policy removes, and delete them if that is asked for and confirmed."""
    if request.is_confirmed and not request.is_deleted:
        raise UserError("--yes: there is nothing to confirm without --delete")
    policy = parse_policy(request.older_than, include_unfinished=request.include_unfinished)
    store = open_existing_store(request.url)
    held = DatasetResults(store)  # of tables, which are not signed
    store = sign_store(store, request.sign, request.verify)
    now = _find_now(store) if request.is_deleted else read_now()
    plan = plan_removal(store, held, policy, now)
    _show_plan(plan, request)
    if unsigned := () if store.checks_signatures else plan.signed_run_ids:
        CONSOLE.print(describe_unsigned(unsigned), style="yellow", soft_wrap=True)
    if plan.runs and request.is_deleted:
        _confirm(plan, request)
        remove_raw_results(store, held, policy, plan, now, _show_deleted)


def read_now() -> datetime:
    """Return the time by this machine's clock."""
    return datetime.now(UTC)


def describe_unsigned(run_ids: Sequence[str]) -> str:
    """Return what follows where raw results of these signed runs are removed by a record that is not signed."""
    return (
        f"signed runs among these: {len(run_ids)}, such as {run_ids[0]}: where signatures are checked, the record of "
        "the removal does not count, and the repeats are missing; add --sign FILE"
    )


def describe_plan(plan: RemovalPlan, older_than: str) -> Iterator[str]:
    """Yield lines that say what is removed, run by run, what is not, and why."""
    for run in plan.runs:
        yield f"to delete: {_describe_run(run)}" + (f"; kept: {describe_kept(run.kept)}" if run.kept else "")
    for run_id, reason in plan.kept_runs.items():
        yield f"kept: {run_id}: {reason}"
    if plan.num_younger:
        yield f"younger than {older_than}: {plan.num_younger} runs"
    if plan.num_removed_before:
        yield f"without raw results: {plan.num_removed_before} runs"
    yield f"in all: {plan.num_results} raw results of {len(plan.runs)} runs, {_format_bytes(plan.num_bytes)}"
    if plan.runs:
        yield "their rows in the data set stay, and so do plans, placements and reports"


def _show_plan(plan: RemovalPlan, request: CleaningRequest) -> None:
    for line in describe_plan(plan, request.older_than):
        CONSOLE.print(line, soft_wrap=True)
    if plan.runs and not request.is_deleted:
        CONSOLE.print("nothing was deleted; --delete deletes what is shown")


def _show_deleted(run: RunPlan) -> None:
    CONSOLE.print(f"deleted: {_describe_run(run)}", soft_wrap=True)


def _describe_run(run: RunPlan) -> str:
    size = f"{len(run.removable)} raw results, {_format_bytes(run.num_bytes)}"
    return f"{run.run_id}: {size}, last written {run.last_write:%Y-%m-%d}"


def _format_bytes(num_bytes: int) -> str:
    return f"{num_bytes / 1e6:,.1f} MB" if num_bytes >= 1e5 else f"{num_bytes:,} bytes"


def _find_now(store: Store) -> datetime:
    """Return the time by the store's clock where this machine's is ahead of it: nothing seems older than it is."""
    here, there = read_now(), store.read_clock()
    if here - there > CLOCK_TOLERANCE:
        clocks = f"{here:%F %T} here, {there:%F %T} there"
        CONSOLE.print(f"this machine's clock is ahead of the store's ({clocks}): the store's counts", soft_wrap=True)
    return min(here, there)


def _confirm(plan: RemovalPlan, request: CleaningRequest) -> None:
    """Ask whether the raw results are deleted; end the program where the answer is no, or nobody can be asked."""
    if request.is_confirmed:
        return
    if not sys.stdin.isatty():
        raise UserError("--delete: nobody can be asked here; add --yes to delete what is shown")
    question = f"Delete {plan.num_results} raw results of {len(plan.runs)} runs? They cannot be brought back."
    if not typer.confirm(question):
        CONSOLE.print("nothing was deleted")
        raise typer.Exit(EXIT_NOT_OK)
