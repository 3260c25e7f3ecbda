"""Find the Jobs of a run on a cluster, for the commands `cancel` and `clean`."""

from typing import TYPE_CHECKING

from bench.errors import UserError
from bench.store import Store
from runner.commands.options import make_error_console
from runner.kubernetes.names import check_dns_label, check_option
from runner.profiles.loading import find_profile
from runner.profiles.model import Profile
from runner.runs import check_run_id, read_run

if TYPE_CHECKING:  # the package `kubernetes` takes half a second to import: only the commands that need it do
    from runner.kubernetes.cleanup import JobCleaner
    from runner.kubernetes.connection import Connection

PATIENCE_SECONDS = 60.0
"""How long each request is repeated while somebody waits for the command; a run has more patience."""


def open_job_cleaner(
    run_id: str,
    on: str,
    profile: str | None,
    namespace: str | None,
    store: str | None,
) -> "JobCleaner":
    """Return what cancels the run and deletes its Jobs. Raise UserError if an option leads nowhere."""
    from runner.kubernetes.cleanup import JobCleaner
    from runner.kubernetes.login import find_context

    context = find_context(on)
    opened = None if store is None else Store.open(store)
    found = find_namespace(run_id, context, profile, namespace, opened)
    return JobCleaner(connection=connect(context), namespace=found, run_id=run_id, store=opened)


def connect(context: str) -> "Connection":
    """Return the connection of a command that somebody waits for; it prints each cause of a warning once, to stderr."""
    from runner.kubernetes.connection import Connection
    from runner.kubernetes.tracked_jobs import warn_once

    def tell(message: str) -> None:
        make_error_console().print(f"warning: {message}", soft_wrap=True)

    return Connection(context=context, patience_seconds=PATIENCE_SECONDS, warn=warn_once(tell))


def find_namespace(run_id: str, context: str, profile: str | None, namespace: str | None, store: Store | None) -> str:
    """Return the namespace of a run's Jobs: the option's, else that of the run's record, else the profile's.

    Raise UserError if the store has no such run, or the run was not on a cluster.
    """
    check_run_id(run_id)
    run = None if store is None else read_run(store, run_id)
    if store is not None and run is None:
        raise UserError(f"store {store.url}: no run {run_id} here; name the right one, or the right --store")
    if run is not None and run.cluster is None:
        raise UserError(f"run {run_id}: ran on the machine {run.hostname}; it has no Jobs")
    if namespace is not None:
        return check_option("--namespace", namespace, check_dns_label)
    if run is not None and run.cluster is not None:
        return run.cluster.namespace
    if profile is None:
        return str(Profile.model_fields["namespace"].default)
    return find_profile(profile, context).namespace
