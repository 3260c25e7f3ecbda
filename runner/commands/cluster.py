"""The commands `setup`, `doctor`, `cancel` and `clean`: words in, what runner.kubernetes found or did out."""

import json
import shlex
from dataclasses import asdict
from typing import TYPE_CHECKING, Annotated

import typer

from bench.errors import UserError
from bench.store import Store
from runner.commands.options import (
    CONSOLE,
    EXIT_NOT_OK,
    MatrixArgument,
    NamespaceOption,
    ProfileOption,
    QueueOption,
)
from runner.kubernetes.syntax import check_dns_label, check_option
from runner.matrix.plan import check_run_id, read_run
from runner.profiles.model import Profile, find_profile

if TYPE_CHECKING:  # the package `kubernetes` takes half a second to import: only the commands that need it do
    from runner.kubernetes.cleanup import JobCleaner
    from runner.kubernetes.doctor.findings import Finding

DOCTOR_PATIENCE_SECONDS = 5.0
KIND = "kind"
_STYLES = {"ok": "green", "warning": "yellow", "failed": "red"}

ContextOption = Annotated[
    str, typer.Option("--on", help="A context of your kubeconfig, `current`, or `in-cluster`.", show_default=False)
]
RunArgument = Annotated[str, typer.Argument(help="Id of a run.", show_default=False)]
CheckedStoreOption = Annotated[
    str | None, typer.Option("--store", help="Where the results of the runs go: s3://BUCKET/PREFIX.")
]
MarkedStoreOption = Annotated[
    str | None,
    typer.Option(
        "--store",
        help="Where the results of the run go. A mark is left there that stops the runner even if its connection to "
        "the cluster is down at present; without it, such a runner makes the deleted Jobs again.",
    ),
]


def setup(
    on: ContextOption,
    profile: ProfileOption = None,
    namespace: NamespaceOption = None,
    user: Annotated[
        list[str] | None,
        typer.Option("--user", help="A user of the cluster who may run a matrix; name all of them each time."),
    ] = None,
    s3: Annotated[
        bool | None,
        typer.Option("--s3/--no-s3", help="With an S3 server in the cluster, for trying only; default: on kind."),
    ] = None,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Print the manifests; apply nothing.")] = False,
    exports: Annotated[
        bool,
        typer.Option("--exports", help='Print what leads a shell here to the S3 server, keys included: eval "$(...)".'),
    ] = False,
) -> None:
    """Apply what a run needs: namespace, accounts, permissions; on kind an S3 server as well. May be repeated."""
    from runner.kubernetes.connection import Connection
    from runner.kubernetes.rendering.setup_template import SetupTemplate, dump_yaml
    from runner.kubernetes.setup import Installer

    context, chosen = _find_target(on, profile, namespace)
    has_store = chosen.name == KIND if s3 is None else s3
    if exports and not has_store:
        raise UserError("--exports: is for the S3 server in the cluster; add --s3, or leave it out")
    template = SetupTemplate(profile=chosen, users=user or (), has_store=has_store)
    if dry_run:
        for manifests in template.render().values():
            typer.echo(dump_yaml(manifests), nl=False)
            typer.echo("---")
        if has_store:
            typer.echo(f"# The Secret {chosen.store_secret} is not shown: its keys are made when it is set up.")
        return
    installer = Installer(connection=Connection(context=context), template=template)
    for line in installer.install():
        typer.echo(line, err=exports)
    if has_store and not exports:
        CONSOLE.print(_describe_store(on, chosen), soft_wrap=True)
    if exports:
        installer.await_store()
        for name, value in installer.read_store_environment().items():
            typer.echo(f"export {name}={shlex.quote(value)}")


def doctor(
    on: ContextOption,
    matrix: MatrixArgument = "smoke",
    profile: ProfileOption = None,
    namespace: NamespaceOption = None,
    store: CheckedStoreOption = None,
    queue: QueueOption = None,
    as_json: Annotated[bool, typer.Option("--json", help="One JSON document on stdout.")] = False,
) -> None:
    """Check every precondition of running MATRIX on a cluster, and tell how to mend what does not hold."""
    from runner.kubernetes.connection import Connection
    from runner.kubernetes.doctor.context import DoctorContext
    from runner.kubernetes.doctor.examination import examine
    from runner.kubernetes.run import ClusterTarget
    from runner.matrix.expansion import load_matrix

    target = ClusterTarget.find(on, profile, namespace, queue)
    connection = Connection(context=target.context, patience_seconds=DOCTOR_PATIENCE_SECONDS)
    site = DoctorContext.make(connection, target, load_matrix(matrix, is_data_here=False), store)
    findings = []
    for finding in examine(site, store):
        findings.append(finding)
        if not as_json:
            _print_finding(finding)
    num_failed = sum(finding.state == "failed" for finding in findings)
    if as_json:
        document = {"context": target.context, "namespace": site.namespace, "profile": site.profile.name}
        typer.echo(json.dumps(document | {"findings": [asdict(finding) for finding in findings]}))
    else:
        num_warnings = sum(finding.state == "warning" for finding in findings)
        CONSOLE.print(f"{len(findings)} checks: {num_failed} failed, {num_warnings} warnings")
    if num_failed:
        raise typer.Exit(EXIT_NOT_OK)


def cancel(
    run_id: RunArgument,
    on: ContextOption,
    profile: ProfileOption = None,
    namespace: NamespaceOption = None,
    store: MarkedStoreOption = None,
) -> None:
    """End a run on a cluster: its runner stops, its unfinished Jobs are deleted; what is finished is kept."""
    keeper = _open_run(run_id, on, profile, namespace, store)
    counts = keeper.cancel()
    CONSOLE.print(
        f"run {run_id} in namespace {keeper.namespace}: {counts.num_deleted} unfinished Jobs deleted, "
        f"{counts.num_left} finished ones left",
        soft_wrap=True,
    )


def clean(
    run_id: RunArgument,
    on: ContextOption,
    profile: ProfileOption = None,
    namespace: NamespaceOption = None,
    store: MarkedStoreOption = None,
    force: Annotated[bool, typer.Option("--force", help="Cancel the run first if it is not over.")] = False,
) -> None:
    """Delete all Jobs of a run that is over; its results stay in the store."""
    keeper = _open_run(run_id, on, profile, namespace, store)
    counts = keeper.clean(force=force)
    CONSOLE.print(
        f"run {run_id} in namespace {keeper.namespace}: {counts.num_deleted} Jobs deleted; results stay in the store",
        soft_wrap=True,
    )


def find_namespace(run_id: str, context: str, profile: str | None, namespace: str | None, store: Store | None) -> str:
    """Return where the Jobs of a run are: named by an option, by the run's record, or the profile's.

    UserError where the store has no such run, or it was none on a cluster.
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


def _open_run(run_id: str, on: str, profile: str | None, namespace: str | None, store: str | None) -> "JobCleaner":
    from runner.kubernetes.cleanup import JobCleaner
    from runner.kubernetes.connection import Connection
    from runner.kubernetes.login import find_context

    context = find_context(on)
    opened = None if store is None else Store.open(store)
    found = find_namespace(run_id, context, profile, namespace, opened)
    return JobCleaner(connection=Connection(context=context), namespace=found, run_id=run_id, store=opened)


def _find_target(on: str, profile: str | None, namespace: str | None) -> tuple[str, Profile]:
    from runner.kubernetes.run import ClusterTarget

    target = ClusterTarget.find(on, profile, namespace, None)
    return target.context, target.profile


def _describe_store(on: str, profile: Profile) -> str:
    from runner.kubernetes.rendering.setup_template import STORE_BUCKET

    command = shlex.join(["benchmatrix", "setup", "--on", on, "--profile", profile.name, "--exports"])
    return (
        f"the S3 server in the cluster is for trying only: it loses its objects with its pod. To use it from here:\n"
        f'  eval "$({command})"\n  benchmatrix run ... --store s3://{STORE_BUCKET}/runs'
    )


def _print_finding(finding: "Finding") -> None:
    CONSOLE.print(f"{finding.state:<8}", style=_STYLES[finding.state], end="")
    CONSOLE.print(f"{finding.check}: {finding.message}", soft_wrap=True)
    for detail in finding.details:
        CONSOLE.print(f"          {detail}", soft_wrap=True)
    if finding.hint:
        CONSOLE.print(f"        > {finding.hint}", soft_wrap=True)
