"""The command `run`."""

from collections.abc import Callable
from dataclasses import asdict, dataclass, replace
from functools import cached_property, partial
from pathlib import Path
from typing import TYPE_CHECKING

import typer

from bench.errors import UserError
from bench.registry import FRAMEWORKS
from bench.schema import Run
from bench.store import Store
from runner.commands.estimates import DryRunOption, Pricing, print_dry_run
from runner.commands.exit_codes import EXIT_INTERRUPTED, EXIT_NOT_OK
from runner.commands.machines import MachinesOption
from runner.commands.night import ClusterConfirmation, LocalConfirmation, NightWatch
from runner.commands.options import (
    CONSOLE,
    DEFAULT_STORE,
    LOCAL,
    MatrixArgument,
    OutputOption,
    PricesOption,
    PythonOption,
    StoreOption,
    make_error_console,
)
from runner.commands.resume_command import format_resume_command
from runner.commands.run_options import (
    ClusterNamespaceOption,
    ClusterProfileOption,
    ClusterQueueOption,
    DeadlineOption,
    GiveUpOption,
    JsonOption,
    MaxCostOption,
    MaxInFlightOption,
    MaxNodesOption,
    MetricsOption,
    NewOption,
    OnOption,
    OwnerOption,
    PrepullOption,
    PublishOption,
    ReportOption,
    RetryOption,
    RunIdOption,
    WatchOption,
    WebhookOption,
)
from runner.local.caps import CapOptions
from runner.local.run import LocalRun, end_like_interrupt, parse_interpreters
from runner.reporting.run_end import finish_run

if TYPE_CHECKING:  # the package `kubernetes` takes half a second to import: only the commands that need it do
    from runner.kubernetes.run import ClusterRun
    from runner.profiles.model import Profile

Finish = Callable[..., bool]
LOCAL_CAPS = ("deadline", "max_cost")
"""Options of ClusterOptions that mean the same on this machine."""
UNSCHEDULABLE_SECONDS = 900.0
"""How long a pod waits for a node while no pod of its pool runs, where no option says it: as long as the cluster
autoscaler waits for a node that it has asked for (--max-node-provision-time, 15 minutes)."""


@dataclass(frozen=True, kw_only=True)
class RunRequest:
    """Which run is wanted, wherever it runs."""

    matrix: str
    url: str
    """Of the store."""
    run_id: str | None
    is_new: bool
    retry_failed: bool
    pricing: Pricing

    @cached_property
    def store(self) -> Store:
        """The store, opened."""
        return Store.open(self.url)


@dataclass(frozen=True, kw_only=True)
class RunCaps:
    """Options that say when a run on a cluster has had enough; None: not given."""

    deadline: float | None
    max_nodes: int | None
    max_cost: float | None
    give_up_after: float | None


@dataclass(frozen=True, kw_only=True)
class ClusterOptions(RunCaps):
    """Options that mean nothing on this machine; None: not given."""

    profile: str | None
    namespace: str | None
    queue: str | None
    owner: str | None
    prepull: float | None
    metrics_port: int | None


def run(
    matrix: MatrixArgument,
    on: OnOption = LOCAL,
    store: StoreOption = DEFAULT_STORE,
    run_id: RunIdOption = None,
    new: NewOption = False,
    retry_failed: RetryOption = False,
    dry_run: DryRunOption = False,
    machine: MachinesOption = None,
    prices: PricesOption = None,
    python: PythonOption = None,
    profile: ClusterProfileOption = None,
    namespace: ClusterNamespaceOption = None,
    queue: ClusterQueueOption = None,
    max_in_flight: MaxInFlightOption = 200,
    max_nodes: MaxNodesOption = None,
    max_cost: MaxCostOption = None,
    give_up_after: GiveUpOption = None,
    prepull: PrepullOption = None,
    metrics_port: MetricsOption = None,
    deadline: DeadlineOption = None,
    owner: OwnerOption = None,
    as_json: JsonOption = False,
    output: OutputOption = None,
    report: ReportOption = True,
    publish: PublishOption = False,
    watch: WatchOption = False,
    webhook: WebhookOption = None,
) -> None:
    """Measure MATRIX, or what is missing of its unfinished run, then collect and report."""
    finish = _plan_end(output, with_report=report, is_published=publish)
    caps = RunCaps(max_nodes=max_nodes, max_cost=max_cost, deadline=deadline, give_up_after=give_up_after)
    of_place = partial(ClusterOptions, profile=profile, namespace=namespace, queue=queue, **asdict(caps))
    options = of_place(owner=owner, prepull=prepull, metrics_port=metrics_port)
    pricing = Pricing.of(machine, prices, dry_run)
    asked = RunRequest(matrix=matrix, url=store, run_id=run_id, is_new=new, retry_failed=retry_failed, pricing=pricing)
    night = NightWatch.plan(asked.store, is_watched=watch, webhooks=webhook or [])
    make = _make_local_run if on == LOCAL else partial(_make_cluster_run, on=on, max_in_flight=max_in_flight)
    _measure(make(asked, options, python), asked, options, finish, night, as_json=as_json)


def _plan_end(output: Path | None, *, with_report: bool, is_published: bool) -> Finish:
    if is_published and not with_report:
        raise UserError("--publish: there is nothing to publish without a report; leave --no-report out")
    return partial(finish_run, output=output, with_report=with_report, is_published=is_published)


def _make_local_run(request: RunRequest, options: ClusterOptions, python: list[str] | None) -> LocalRun:
    for name, value in asdict(options).items():
        if value is not None and name not in LOCAL_CAPS:
            raise UserError(f"--{name.replace('_', '-')}: is for runs on a cluster; add --on CONTEXT, or leave it out")
    return LocalRun(
        matrix=request.matrix,
        store=request.store,
        run_id=request.run_id,
        start_new=request.is_new,
        retry_failed=request.retry_failed,
        interpreters=parse_interpreters(python or [], tuple(FRAMEWORKS)),
        caps=_make_caps(request, options),
    )


def _make_caps(request: RunRequest, options: ClusterOptions) -> CapOptions:
    found = request.pricing.find(None)
    caps = CapOptions(
        deadline_seconds=options.deadline,
        max_cost=options.max_cost,
        prices={device: price.per_hour for device, price in found.items()},
    )
    return replace(caps, currency=next((price.currency for price in found.values()), caps.currency))


def _make_cluster_run(
    request: RunRequest, options: ClusterOptions, python: list[str] | None, *, on: str, max_in_flight: int
) -> "ClusterRun":
    from runner.estimates.pool_prices import price_profile
    from runner.kubernetes.rendering.job_template import JobOwner
    from runner.kubernetes.run import ClusterRun, ClusterTarget

    if python:
        raise UserError("--python: is for runs on this machine; on a cluster the profile's images are used")
    target = ClusterTarget.find(on, options.profile, options.namespace, options.queue)
    if request.pricing.machines:
        profile = price_profile(target.profile, request.pricing.find(target.profile))
        target = replace(target, profile=profile)
    return ClusterRun(
        matrix=request.matrix,
        target=target,
        store=request.store,
        run_id=request.run_id,
        start_new=request.is_new,
        retry_failed=request.retry_failed,
        max_in_flight=max_in_flight,
        unschedulable_seconds=options.give_up_after or UNSCHEDULABLE_SECONDS,
        is_requeued=options.give_up_after is None and options.deadline is not None,
        max_nodes=options.max_nodes,
        max_cost=options.max_cost,
        deadline_seconds=options.deadline,
        owner=None if options.owner is None else JobOwner.parse(options.owner),
        prepull_seconds=options.prepull,
    )


def _measure(
    planned: "LocalRun | ClusterRun",
    request: RunRequest,
    options: ClusterOptions,
    finish: Finish,
    night: NightWatch | None,
    *,
    as_json: bool,
) -> None:
    if request.pricing.is_dry:
        profile = None if isinstance(planned, LocalRun) else planned.target.profile
        _print_dry_run(request, planned.choose_run(), profile, options.max_cost)
    elif isinstance(planned, LocalRun):
        _measure_here(planned, finish, night)
    else:
        _measure_there(planned, finish, night, as_json=as_json, metrics_port=options.metrics_port)


def _print_dry_run(request: RunRequest, run: Run, profile: "Profile | None", max_cost: float | None) -> None:
    def say(line: str) -> None:
        CONSOLE.print(line, soft_wrap=True)

    prices = request.pricing.find(profile)
    print_dry_run(run, request.store, prices, say, retry_failed=request.retry_failed, max_cost=max_cost)


def _measure_here(local: LocalRun, finish: Finish, night: NightWatch | None) -> None:
    chosen: Run | None = None
    try:
        with end_like_interrupt():
            chosen = local.choose_run()
            local.measure(chosen, CONSOLE, resume_command=format_resume_command(chosen))
            if night is not None:
                night.follow(chosen, CONSOLE, LocalConfirmation(local=local, console=CONSOLE))
            is_ok = finish(local.store, chosen, CONSOLE)
    except KeyboardInterrupt:
        how = f"; what is finished is kept. To resume:\n  {format_resume_command(chosen)}" if chosen else ""
        CONSOLE.print(f"interrupted{how}", soft_wrap=True)
        raise typer.Exit(EXIT_INTERRUPTED) from None
    if not is_ok:
        raise typer.Exit(EXIT_NOT_OK)


def _measure_there(
    there: "ClusterRun", finish: Finish, night: NightWatch | None, *, as_json: bool, metrics_port: int | None
) -> None:
    from runner.kubernetes.cancellation import RunCancelled
    from runner.kubernetes.connection import Connection
    from runner.kubernetes.metrics import observe_with_metrics
    from runner.kubernetes.progress import ClusterProgress

    messages = make_error_console() if as_json else CONSOLE
    chosen: Run | None = None
    try:
        with end_like_interrupt():
            connection = Connection(context=there.target.context)
            chosen = there.choose_run()
            if there.owner is None:  # a pod's command is of no use elsewhere
                resume = format_resume_command(chosen)
                messages.print(f"to resume after an interruption: {resume}", style="dim", soft_wrap=True)
            with ClusterProgress(CONSOLE, as_json=as_json) as progress:
                observer = observe_with_metrics(
                    progress, connection, metrics_port, None if night is None else night.metrics
                )
                again = ClusterConfirmation.prepare(there, chosen, connection, observer, messages) if night else None
                there.measure(chosen, connection, observer, messages)
                if night is not None and again is not None:
                    night.follow(chosen, messages, again)
            is_ok = finish(there.store, chosen, messages)
            if night is not None and metrics_port is not None:
                night.hold_metrics()
    except RunCancelled:
        messages.print("the run was cancelled; what is finished is kept")
        raise typer.Exit(EXIT_NOT_OK) from None
    except KeyboardInterrupt:
        messages.print(f"interrupted{_explain_what_goes_on(there, chosen) if chosen else ''}", soft_wrap=True)
        raise typer.Exit(EXIT_INTERRUPTED) from None
    if not is_ok:
        raise typer.Exit(EXIT_NOT_OK)


def _explain_what_goes_on(there: "ClusterRun", run: Run) -> str:
    return (
        f"; Jobs that were submitted go on. To follow them:\n  {format_resume_command(run)}\n"
        f"To end them:\n  benchmatrix cancel {run.run_id} --on {there.target.context} "
        f"--namespace {there.target.profile.namespace} --store {there.store.url}"
    )
