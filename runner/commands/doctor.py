"""The command `doctor`."""

from collections.abc import Sequence
from dataclasses import asdict
from typing import TYPE_CHECKING, Annotated

import typer

from runner.commands.next_steps import format_place, say_next
from runner.commands.options import (
    CONSOLE,
    EXIT_NOT_OK,
    ContextOption,
    JsonOption,
    MatrixArgument,
    NamespaceOption,
    ProfileOption,
    QueueOption,
)
from runner.profiles import BUCKET_URLS
from runner.terminal import echo

if TYPE_CHECKING:  # the package `kubernetes` takes half a second to import: only the commands that need it do
    from runner.kubernetes.node_checks import Finding

PATIENCE_SECONDS = 5.0
"""How long to wait for an API server that does not answer."""
_STYLES = {"ok": "green", "warning": "yellow", "failed": "red"}

StoreOption = Annotated[
    str | None,
    typer.Option("--store", metavar="URL", help=f"Where the results of the runs will go: {BUCKET_URLS}."),
]


def doctor(
    on: ContextOption,
    matrix: MatrixArgument = "smoke",
    profile: ProfileOption = None,
    namespace: NamespaceOption = None,
    store: StoreOption = None,
    queue: QueueOption = None,
    as_json: JsonOption = False,
) -> None:
    """Check every prerequisite of running MATRIX on a cluster, and say how to repair what is missing."""
    from runner.commands.json_documents import DoctorDocument, DoctorFinding
    from runner.kubernetes.connection import Connection
    from runner.kubernetes.doctor import examine
    from runner.kubernetes.run import ClusterTarget
    from runner.matrix.expansion import load_matrix

    target = ClusterTarget.find(on, profile, namespace, queue)
    connection = Connection(context=target.context, patience_seconds=PATIENCE_SECONDS)
    loaded = load_matrix(matrix, is_data_here=False)
    findings = []
    for finding in examine(connection, target, loaded, store):
        findings.append(finding)
        if not as_json:
            _print_finding(finding)
    if as_json:
        found = tuple(DoctorFinding(**asdict(finding)) for finding in findings)
        names = {"context": target.context, "namespace": target.profile.namespace, "profile": target.profile.name}
        echo(DoctorDocument(**names, findings=found).model_dump_json())
    else:
        run = f"benchmatrix run {matrix} {format_place(on, profile, namespace, queue)}"
        setup = f"benchmatrix setup {format_place(on, profile, namespace)}"
        _print_end(findings, run=f"{run} --store {store or 's3://BUCKET/PREFIX'}", setup=setup)
    if _count(findings, "failed"):
        raise typer.Exit(EXIT_NOT_OK)


def _print_end(findings: Sequence["Finding"], *, run: str, setup: str) -> None:
    """Print how many checks failed, and which command is next: `run` where none did, or `setup` where it would help."""
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
