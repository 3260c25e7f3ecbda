"""The commands `doctor`, `setup` and `cancel`, and how commands reach the Jobs of a run on a cluster."""

import shlex
from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated

import typer

from bench.errors import UserError
from runner.commands.options import (
    CONSOLE,
    DEFAULT_STORE,
    EXIT_NOT_OK,
    ContextOption,
    JsonOption,
    MatrixArgument,
    NamespaceOption,
    ProfileOption,
    QueueOption,
    RunArgument,
    StoreOption,
    format_place,
    make_error_console,
    say_next,
)
from runner.profiles import BUCKET_URLS
from runner.terminal import echo

if TYPE_CHECKING:  # the package `kubernetes` takes half a second to import: only the commands that need it do
    from runner.kubernetes.cleanup import JobCleaner
    from runner.kubernetes.connection import Connection
    from runner.kubernetes.doctor import Finding

PATIENCE_SECONDS = 60.0
"""How long each request is repeated while somebody waits for the command; a run has more patience."""
LOOK_SECONDS = 5.0
"""How long to wait for an API server that does not answer where nothing but a look is lost."""
KIND = "kind"
_STYLES = {"ok": "green", "warning": "yellow", "failed": "red"}


def doctor(
    on: ContextOption,
    matrix: MatrixArgument = "smoke",
    profile: ProfileOption = None,
    namespace: NamespaceOption = None,
    store: Annotated[
        str | None,
        typer.Option("--store", metavar="URL", help=f"Where the results of the runs will go: {BUCKET_URLS}."),
    ] = None,
    queue: QueueOption = None,
    as_json: JsonOption = False,
) -> None:
    """Check every prerequisite of running MATRIX on a cluster, and say how to repair what is missing."""
    from runner.kubernetes.connection import Connection
    from runner.kubernetes.doctor import DoctorDocument, examine
    from runner.kubernetes.run import ClusterTarget
    from runner.matrix import load_matrix

    target = ClusterTarget.find(on, profile, namespace, queue)
    connection = Connection(context=target.context, patience_seconds=LOOK_SECONDS)
    loaded = load_matrix(matrix, is_data_here=False)
    findings = []
    for finding in examine(connection, target, loaded, store):
        findings.append(finding)
        if not as_json:
            _print_finding(finding)
    if as_json:
        names = {"context": target.context, "namespace": target.profile.namespace, "profile": target.profile.name}
        echo(DoctorDocument(**names, findings=tuple(findings)).model_dump_json())
    else:
        run = f"benchmatrix run {matrix} {format_place(on, profile, namespace, queue)}"
        setup = f"benchmatrix setup {format_place(on, profile, namespace)}"
        _print_end(findings, run=f"{run} --store {store or 's3://BUCKET/PREFIX'}", setup=setup)
    if _count(findings, "failed"):
        raise typer.Exit(EXIT_NOT_OK)


def _print_end(findings: Sequence["Finding"], *, run: str, setup: str) -> None:
    """Print how many checks failed, and the next command: `run` where none did, or `setup` where it would help."""
    num_failed, num_warnings = _count(findings, "failed"), _count(findings, "warning")
    CONSOLE.print(f"{len(findings)} checks: {num_failed} failed, {num_warnings} warnings")
    if not num_failed:
        say_next(run)
    elif any("`benchmatrix setup`" in finding.hint for finding in findings):
        say_next(setup)


def _count(findings: Sequence["Finding"], state: str) -> int:
    return sum(finding.state == state for finding in findings)


def _print_finding(finding: "Finding") -> None:
    CONSOLE.print(f"{finding.state:<8}", style=_STYLES[finding.state], end="")
    CONSOLE.print(f"{finding.check}: {finding.message}", soft_wrap=True)
    for detail in finding.details:
        CONSOLE.print(f"          {detail}", soft_wrap=True)
    if finding.hint:
        CONSOLE.print(f"        > {finding.hint}", soft_wrap=True)


def setup(
    on: ContextOption,
    profile: ProfileOption = None,
    namespace: NamespaceOption = None,
    user: Annotated[
        list[str] | None,
        typer.Option("--user", metavar="NAME", help="A user of the cluster who may run a matrix; name all of them."),
    ] = None,
    s3: Annotated[
        bool | None,
        typer.Option("--s3/--no-s3", help="Install an S3 server in the cluster, for trying only; default: on kind."),
    ] = None,
    queue: Annotated[
        str | None,
        typer.Option(
            "--queue", metavar="NAME", help="Kueue's LocalQueue for the Jobs: allow runners to say why Jobs wait."
        ),
    ] = None,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Print the manifests; apply nothing.")] = False,
    exports: Annotated[
        bool,
        typer.Option(
            "--exports",
            help="Print the variables that lead a shell on this machine to the S3 server, keys included: "
            'eval "$(...)".',
        ),
    ] = False,
) -> None:
    """Apply what a run needs: namespace, accounts, permissions, and on kind an S3 server.

    May be repeated.
    """
    from runner.kubernetes.run import ClusterTarget
    from runner.kubernetes.setup import STORE_BUCKET, Installer, SetupTemplate, dump_manifests

    target = ClusterTarget.find(on, profile, namespace, queue)
    has_store = target.profile.name == KIND if s3 is None else s3
    if exports and not has_store:
        raise UserError("--exports: is for the S3 server in the cluster; add --s3, or leave it out")
    template = SetupTemplate(profile=target.profile, users=user or (), has_store=has_store, has_queue=queue is not None)
    if dry_run:
        echo(dump_manifests([one for manifests in template.render().values() for one in manifests]))
        if has_store:
            secret = target.profile.store_secret
            echo(f"the Secret {secret} is not shown: its keys are made when it is set up", err=True)
        return
    installer = Installer(connection=connect(target.context), template=template)
    for line in installer.install():
        echo(line, err=exports)
    if exports:
        for name, value in installer.await_store().items():
            echo(f"export {name}={shlex.quote(value)}")
    elif has_store:
        command = shlex.join(["benchmatrix", "setup", "--on", on, "--profile", target.profile.name, "--exports"])
        CONSOLE.print(
            "the S3 server in the cluster is for trying only: it loses its objects with its pod. To use it from here:\n"
            f'  eval "$({command})"\n  benchmatrix run ... --store s3://{STORE_BUCKET}/runs',
            soft_wrap=True,
        )


def cancel(
    run_id: RunArgument,
    on: ContextOption,
    store: StoreOption = DEFAULT_STORE,
    namespace: NamespaceOption = None,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Say which Jobs would be deleted; delete none.")] = False,
) -> None:
    """Stop a run on a cluster: end its runner, delete its unfinished Jobs, keep what is finished.

    Of a night that is being watched, the run that measures its suspicions again is stopped too.
    """
    cleaner = open_job_cleaner(run_id, on, namespace, store)
    words = ("would be deleted", "; nothing was changed") if dry_run else ("deleted", "")
    for found in cleaner.cancel(is_dry_run=dry_run):
        CONSOLE.print(
            f"run {found.run_id} in namespace {cleaner.namespace}: {found.num_deleted} unfinished Jobs {words[0]}, "
            f"{found.num_left} finished ones left{words[1]}",
            soft_wrap=True,
        )


def open_job_cleaner(run_id: str, on: str, namespace: str | None, url: str) -> "JobCleaner":
    """Return what cancels a run and deletes its Jobs, in the namespace given or else that of the run."""
    from bench.store import Store
    from runner.kubernetes.cleanup import JobCleaner
    from runner.kubernetes.login import find_context
    from runner.kubernetes.names import check_dns_label, check_option
    from runner.runs import check_run_id, read_run

    context = find_context(on)
    check_run_id(run_id)
    store = Store.open(url)
    run = read_run(store, run_id)
    if run is None:
        raise UserError(f"store {store.url}: no run {run_id} here; name the right one, or the right --store")
    if run.cluster is None:
        raise UserError(f"run {run_id}: ran on the machine {run.hostname}; it has no Jobs")
    found = check_option("--namespace", namespace or run.cluster.namespace, check_dns_label)
    return JobCleaner(connection=connect(context), namespace=found, run_id=run_id, store=store)


def connect(context: str) -> "Connection":
    """Return the connection of a command that somebody waits for; it prints each cause of a warning once, to stderr."""
    from runner.kubernetes.connection import Connection
    from runner.kubernetes.tracked_jobs import warn_once

    def tell(message: str) -> None:
        make_error_console().print(f"warning: {message}", soft_wrap=True)

    return Connection(context=context, patience_seconds=PATIENCE_SECONDS, warn=warn_once(tell))
