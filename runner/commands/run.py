"""`benchmatrix run`: measure a matrix on this machine or on a cluster, then collect and report."""

import shlex
import shutil
import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.console import Console

from bench.errors import UserError
from bench.registry import FRAMEWORKS
from bench.schema import Run
from bench.store import Store
from runner.commands.options import (
    CONSOLE,
    EXIT_INTERRUPTED,
    JsonOption,
    MatrixArgument,
    NamespaceOption,
    OnOption,
    OutputOption,
    ProfileOption,
    PythonOption,
    QueueOption,
    StoreOption,
)
from runner.commands.reporting import finish_run
from runner.local.run import LocalRun, end_like_interrupt, parse_interpreters

if TYPE_CHECKING:
    from runner.kubernetes.run import ClusterRun

LOCAL = "local"
EXIT_CANCELLED = 1


def run(
    matrix: MatrixArgument,
    on: OnOption = LOCAL,
    store: StoreOption = "file://results",
    run_id: Annotated[str | None, typer.Option(help="Name a new run, or go on with the run of this name.")] = None,
    new: Annotated[
        bool, typer.Option("--new", help="Start a new run even if one of this matrix is unfinished.")
    ] = False,
    retry_failed: Annotated[bool, typer.Option("--retry-failed", help="Measure again what did not end well.")] = False,
    python: PythonOption = None,
    profile: ProfileOption = None,
    namespace: NamespaceOption = None,
    queue: QueueOption = None,
    max_in_flight: Annotated[
        int, typer.Option(min=1, max=100_000, help="On a cluster: Jobs that exist at once and are not finished.")
    ] = 200,
    give_up_after: Annotated[
        float,
        typer.Option(min=1, help="On a cluster: seconds that a pod may wait for a node while none of its pool runs."),
    ] = 900.0,
    metrics_port: Annotated[
        int | None, typer.Option(min=1, max=65_535, help="On a cluster: serve the runner's Prometheus metrics here.")
    ] = None,
    deadline: Annotated[
        float | None,
        typer.Option(min=1, help="On a cluster: seconds after the run's beginning when unfinished Jobs are deleted."),
    ] = None,
    owner: Annotated[
        str | None, typer.Option(help="NAME/UID of a Job in the cells' namespace, the runner's own: they go with it.")
    ] = None,
    as_json: JsonOption = False,
    output: OutputOption = None,
    report: Annotated[bool, typer.Option(help="Collect and report at the end.")] = True,
    publish: Annotated[
        bool, typer.Option("--publish", help="Put the report into the store too: runs/RUN_ID/report.html and latest/.")
    ] = False,
) -> None:
    """Measure MATRIX, or what is missing of its unfinished run, then collect and report."""
    if publish and not report:
        raise UserError("--publish: there is nothing to publish without a report; leave --no-report out")
    finish = partial(finish_run, output=output, with_report=report, is_published=publish)
    opened = Store.open(store)
    if on == LOCAL:
        refuse_cluster_options(
            profile=profile,
            namespace=namespace,
            queue=queue,
            metrics_port=metrics_port,
            deadline=deadline,
            owner=owner,
        )
        local = LocalRun(
            matrix=matrix,
            store=opened,
            run_id=run_id,
            start_new=new,
            retry_failed=retry_failed,
            interpreters=parse_interpreters(python or [], tuple(FRAMEWORKS)),
        )
        _measure_here(local, finish)
        return
    from runner.kubernetes.rendering.job_template import JobOwner
    from runner.kubernetes.run import ClusterRun, ClusterTarget

    if python:
        raise UserError("--python: is for runs on this machine; on a cluster the profile's images are used")
    there = ClusterRun(
        matrix=matrix,
        target=ClusterTarget.find(on, profile, namespace, queue),
        store=opened,
        run_id=run_id,
        start_new=new,
        retry_failed=retry_failed,
        max_in_flight=max_in_flight,
        unschedulable_seconds=give_up_after,
        deadline_seconds=deadline,
        owner=None if owner is None else JobOwner.parse(owner),
    )
    _measure_there(there, finish, as_json=as_json, metrics_port=metrics_port)


def refuse_cluster_options(**options: object) -> None:
    """Raise UserError where an option was given that means nothing on this machine."""
    for name, value in options.items():
        if value is not None:
            raise UserError(f"--{name.replace('_', '-')}: is for runs on a cluster; add --on CONTEXT, or leave it out")


def _measure_here(local: LocalRun, finish: Callable[..., None]) -> None:
    chosen: Run | None = None
    try:
        with end_like_interrupt():
            chosen = local.choose_run()
            local.measure(chosen, CONSOLE, resume_command=format_resume_command(chosen))
            finish(local.store, chosen)
    except KeyboardInterrupt:
        how = f"; what is finished is kept. To go on:\n  {format_resume_command(chosen)}" if chosen else ""
        CONSOLE.print(f"interrupted{how}", soft_wrap=True)
        raise typer.Exit(EXIT_INTERRUPTED) from None


def _measure_there(
    there: "ClusterRun", finish: Callable[..., None], *, as_json: bool, metrics_port: int | None
) -> None:
    from runner.kubernetes.cancellation import RunCancelled
    from runner.kubernetes.connection import Connection
    from runner.kubernetes.metrics import observe_with_metrics
    from runner.kubernetes.progress import ClusterProgress

    words = Console(stderr=True, markup=False, emoji=False, highlight=False) if as_json else CONSOLE
    chosen: Run | None = None
    try:
        with end_like_interrupt():
            connection = Connection(context=there.target.context)
            chosen = there.choose_run()
            if there.owner is None:  # a pod's command is of no use elsewhere
                resume = format_resume_command(chosen)
                words.print(f"to go on after an interruption: {resume}", style="dim", soft_wrap=True)
            with ClusterProgress(CONSOLE, as_json=as_json) as progress:
                observer = observe_with_metrics(progress, connection, metrics_port)
                there.measure(chosen, connection, observer, words)
            finish(there.store, chosen, console=words)
    except RunCancelled:
        words.print("the run was cancelled; what is finished is kept")
        raise typer.Exit(EXIT_CANCELLED) from None
    except KeyboardInterrupt:
        how = (
            f"; Jobs that were submitted go on. To follow them:\n  {format_resume_command(chosen)}\n"
            f"To end them:\n  benchmatrix cancel {chosen.run_id} --on {there.target.context} "
            f"--namespace {there.target.profile.namespace} --store {there.store.url}"
            if chosen
            else ""
        )
        words.print(f"interrupted{how}", soft_wrap=True)
        raise typer.Exit(EXIT_INTERRUPTED) from None


def format_resume_command(run: Run) -> str:
    """Return this process's command with the run's id in it."""
    words = [word for word in [*_name_program(), *sys.argv[1:]] if word != "--new"]
    return shlex.join(words if run.run_id in words else [*words, "--run-id", run.run_id])


def _name_program() -> list[str]:
    """Return the words that started this program, as short as they work here."""
    program = sys.argv[0]
    if Path(program).suffix == ".py":  # `python -m runner.cli`
        return sys.orig_argv[: len(sys.orig_argv) - len(sys.argv) + 1]
    return [Path(program).name if shutil.which(Path(program).name) == program else program]
