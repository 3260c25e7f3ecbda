"""The command `setup`."""

import shlex
from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated

import typer

from bench.errors import UserError
from runner.commands.options import (
    CONSOLE,
    ContextOption,
    JsonOption,
    NamespaceOption,
    ProfileOption,
    make_error_console,
)
from runner.terminal_text import echo

if TYPE_CHECKING:  # the package `kubernetes` takes half a second to import: only the commands that need it do
    from runner.commands.change_documents import SetupObject
    from runner.kubernetes.rendering.queue_template import QueueTemplate
    from runner.kubernetes.rendering.setup_template import Manifest, SetupTemplate
    from runner.kubernetes.setup import InstalledObject, Installer
    from runner.kubernetes.target import ClusterTarget
    from runner.profiles.model import Profile

KIND = "kind"

UserOption = Annotated[
    list[str] | None,
    typer.Option("--user", metavar="NAME", help="A user of the cluster who may run a matrix; name all of them."),
]
S3Option = Annotated[
    bool | None,
    typer.Option("--s3/--no-s3", help="Install an S3 server in the cluster, for trying only; default: on kind."),
]
SetupQueueOption = Annotated[
    str | None,
    typer.Option(
        "--queue", metavar="NAME", help="Kueue's LocalQueue for the Jobs: allow runners to say why Jobs wait."
    ),
]
QuotaOption = Annotated[
    list[str] | None,
    typer.Option(
        "--quota",
        metavar="POOL=CELLS",
        help="Make the queue too, for so many cells of the pool `cpu` or `gpu` at once; name both to have both.",
    ),
]
CohortOption = Annotated[
    str | None,
    typer.Option("--cohort", metavar="NAME", help="Queues of the same cohort lend each other what they do not use."),
]
DryRunOption = Annotated[bool, typer.Option("--dry-run", help="Print the manifests; apply nothing.")]
ExportsOption = Annotated[
    bool,
    typer.Option(
        "--exports",
        help='Print the variables that lead a shell on this machine to the S3 server, keys included: eval "$(...)".',
    ),
]


def setup(
    on: ContextOption,
    profile: ProfileOption = None,
    namespace: NamespaceOption = None,
    user: UserOption = None,
    s3: S3Option = None,
    queue: SetupQueueOption = None,
    quota: QuotaOption = None,
    cohort: CohortOption = None,
    dry_run: DryRunOption = False,
    exports: ExportsOption = False,
    as_json: JsonOption = False,
) -> None:
    """Apply what a run needs: namespace, accounts, permissions; on kind an S3 server, on request a queue of Kueue.

    May be repeated.
    """
    from runner.kubernetes.rendering.setup_template import SetupTemplate
    from runner.kubernetes.target import ClusterTarget

    target = ClusterTarget.find(on, profile, namespace, queue)
    has_store = target.profile.name == KIND if s3 is None else s3
    if exports:
        _check_exports(has_store=has_store, as_json=as_json)
    template = SetupTemplate(profile=target.profile, users=user or (), has_store=has_store, has_queue=queue is not None)
    made_queue = _make_queue(target.profile, queue, quota or (), cohort)
    if dry_run:
        _show_plan(target, template, made_queue, as_json=as_json)
        return
    installer = _make_installer(target, template, made_queue)
    installed = installer.install()
    if as_json:
        _print_document(target, _list_installed(installed), is_dry_run=False)
    else:
        for found in installed:
            echo(found.describe(), err=exports)
    if exports:
        _print_exports(installer)
    elif has_store:
        (make_error_console() if as_json else CONSOLE).print(_describe_store(on, target.profile), soft_wrap=True)


def _make_installer(target: "ClusterTarget", template: "SetupTemplate", queue: "QueueTemplate | None") -> "Installer":
    from runner.commands.cluster_runs import connect
    from runner.kubernetes.setup import Installer

    return Installer(connection=connect(target.context), template=template, queue=queue)


def _check_exports(*, has_store: bool, as_json: bool) -> None:
    if as_json:
        raise UserError("--exports: prints lines for a shell, and --json a document; leave one of them out")
    if not has_store:
        raise UserError("--exports: is for the S3 server in the cluster; add --s3, or leave it out")


def _make_queue(
    profile: "Profile", queue: str | None, quotas: Sequence[str], cohort: str | None
) -> "QueueTemplate | None":
    """Return the queue to make; None: none is asked for."""
    from runner.kubernetes.rendering.queue_template import QueueTemplate

    if quotas and queue is not None:
        return QueueTemplate.parse(profile, queue, quotas, cohort)
    if quotas or cohort is not None:
        raise UserError("--quota and --cohort: are for a queue that is made; give --queue NAME and --quota POOL=CELLS")
    return None


def _show_plan(
    target: "ClusterTarget", template: "SetupTemplate", queue: "QueueTemplate | None", *, as_json: bool
) -> None:
    if as_json:
        _print_document(target, _list_planned(template, queue), is_dry_run=True)
    else:
        _print_manifests(template, queue)


def _render(template: "SetupTemplate", queue: "QueueTemplate | None") -> "list[list[Manifest]]":
    """Return the manifests that would be applied, part by part, but for the Secret."""
    from runner.kubernetes.kueue import GROUP, KNOWN_VERSIONS

    queued = [queue.render(f"{GROUP}/{KNOWN_VERSIONS[0]}")] if queue else []
    return [*template.render().values(), *queued]


def _print_manifests(template: "SetupTemplate", queue: "QueueTemplate | None") -> None:
    from runner.kubernetes.rendering.setup_template import dump_yaml

    for manifests in _render(template, queue):
        echo(dump_yaml(manifests), nl=False)
        echo("---")
    if template.has_store:
        secret = template.profile.store_secret
        echo(f"# The Secret {secret} is not shown: its keys are made when it is set up.")


def _list_planned(template: "SetupTemplate", queue: "QueueTemplate | None") -> "list[SetupObject]":
    from runner.commands.change_documents import SetupObject

    planned = [
        SetupObject(
            kind=found["kind"], name=found["metadata"]["name"], outcome="not applied", detail="", manifest=found
        )
        for manifests in _render(template, queue)
        for found in manifests
    ]
    if template.has_store:
        name, detail = str(template.profile.store_secret), "its keys are made when it is set up"
        planned.append(SetupObject(kind="Secret", name=name, outcome="not applied", detail=detail))
    return planned


def _list_installed(installed: "Sequence[InstalledObject]") -> "list[SetupObject]":
    from runner.commands.change_documents import SetupObject

    return [
        SetupObject(kind=found.kind, name=found.name, outcome=found.outcome, detail=found.detail) for found in installed
    ]


def _print_document(target: "ClusterTarget", objects: "Sequence[SetupObject]", *, is_dry_run: bool) -> None:
    from runner.commands.change_documents import SetupDocument

    document = SetupDocument(
        context=target.context,
        namespace=target.profile.namespace,
        profile=target.profile.name,
        is_dry_run=is_dry_run,
        objects=tuple(objects),
    )
    echo(document.model_dump_json())


def _print_exports(installer: "Installer") -> None:
    installer.await_store()
    variables, left_out = installer.read_store_environment()
    if left_out:
        make_error_console().print(f"warning: {left_out}", soft_wrap=True, markup=False, highlight=False)
    for name, value in variables.items():
        echo(f"export {name}={shlex.quote(value)}")


def _describe_store(on: str, profile: "Profile") -> str:
    from runner.kubernetes.rendering.setup_template import STORE_BUCKET

    command = shlex.join(["benchmatrix", "setup", "--on", on, "--profile", profile.name, "--exports"])
    return (
        f"the S3 server in the cluster is for trying only: it loses its objects with its pod. To use it from here:\n"
        f'  eval "$({command})"\n  benchmatrix run ... --store s3://{STORE_BUCKET}/runs'
    )
