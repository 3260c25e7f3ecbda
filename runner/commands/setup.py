"""The command `setup`."""

import shlex
from typing import Annotated

import typer

from bench.errors import UserError
from runner.commands.options import CONSOLE, ContextOption, NamespaceOption, ProfileOption
from runner.terminal import echo

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
    dry_run: DryRunOption = False,
    exports: ExportsOption = False,
) -> None:
    """Apply what a run needs: namespace, accounts, permissions, and on kind an S3 server.

    May be repeated.
    """
    from runner.commands.cluster_runs import connect
    from runner.kubernetes.run import ClusterTarget
    from runner.kubernetes.setup import STORE_BUCKET, Installer, SetupTemplate, dump_yaml

    target = ClusterTarget.find(on, profile, namespace, queue)
    has_store = target.profile.name == KIND if s3 is None else s3
    if exports and not has_store:
        raise UserError("--exports: is for the S3 server in the cluster; add --s3, or leave it out")
    template = SetupTemplate(profile=target.profile, users=user or (), has_store=has_store, has_queue=queue is not None)
    if dry_run:
        for manifests in template.render().values():
            echo(f"{dump_yaml(manifests)}---")
        if has_store:
            secret = target.profile.store_secret
            echo(f"# The Secret {secret} is not shown: its keys are made when it is set up.")
        return
    installer = Installer(connection=connect(target.context), template=template)
    for line in installer.install():
        echo(line, err=exports)
    if exports:
        installer.await_store()
        for name, value in installer.read_store_environment().items():
            echo(f"export {name}={shlex.quote(value)}")
    elif has_store:
        command = shlex.join(["benchmatrix", "setup", "--on", on, "--profile", target.profile.name, "--exports"])
        CONSOLE.print(
            "the S3 server in the cluster is for trying only: it loses its objects with its pod. To use it from here:\n"
            f'  eval "$({command})"\n  benchmatrix run ... --store s3://{STORE_BUCKET}/runs',
            soft_wrap=True,
        )
