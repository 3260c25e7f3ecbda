"""Do what the options of `run` ask for: measure here or on a cluster, watch the night, collect and report."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Any

import typer

from bench.errors import UserError
from bench.registry import FRAMEWORKS
from bench.schema import Run
from bench.store import Store
from runner.commands.estimates import find_prices, print_dry_run
from runner.commands.night import NightWatch, confirm_here, confirm_there
from runner.commands.options import CONSOLE, EXIT_NOT_OK, LOCAL, find_end_code, make_error_console
from runner.commands.resume_command import format_resume_command, format_retry_command
from runner.commands.run import RunOptions
from runner.local.executor import CapOptions
from runner.local.run import LocalRun, end_like_interrupt, parse_interpreters
from runner.records import Retries
from runner.reporting.run_end import RunEnd, finish_run, say_how_to_retry
from runner.run_events import RunEvents

if TYPE_CHECKING:  # the package `kubernetes` takes half a second to import: only the commands that need it do
    from rich.console import Console

    from runner.kubernetes.run import ClusterRun

CLUSTER_ALONE = ("profile", "namespace", "queue", "max_nodes", "give_up_after", "metrics_port", "owner")
UNSCHEDULABLE_SECONDS = 900.0
"""How long a pod waits for a node while no pod of its pool runs, where no option says it: as long as the cluster
autoscaler waits for a node that it has asked for (--max-node-provision-time, 15 minutes)."""


@dataclass(kw_only=True)
class Execution:
    """A run that is measured, and ended with its report; `messages` is stderr where stdout gets events."""

    options: RunOptions
    night: NightWatch | None
    finish: Callable[..., RunEnd]
    messages: "Console"
    events: RunEvents | None
    chosen: Run | None = None

    def begin(self, run: Run, store: Store) -> None:
        """Keep the run that was chosen, and report that it begins."""
        self.chosen = run
        if self.events:
            self.events.begin(run, store.url)

    def end_early(self, reason: str) -> None:
        """Report that the run ended before its repeats were there."""
        if self.events and self.chosen:
            self.events.report("ended", run_id=self.chosen.run_id, is_ok=False, reason=reason, report=None)

    def end(self, run: Run, end: RunEnd, *, is_retry_named: bool = True) -> None:
        """Report how the run ended, and how to measure again what others disturbed."""
        if self.events:
            self.events.report(
                "ended",
                run_id=run.run_id,
                is_ok=end.is_ok,
                reason=None,
                report=None if end.report is None else str(end.report),
                **end.num_by_status,
                num_contaminated=end.num_contaminated,
            )
        say_how_to_retry(end, self.messages, format_retry_command(run) if is_retry_named else None)


def execute_run(options: RunOptions) -> None:
    """Measure what the run lacks and end it, or say what it will take. Exit with 1 unless every repeat is ok."""
    if options.publish and not options.report:
        raise UserError("--publish: there is nothing to publish without a report; leave --no-report out")
    find_prices(options.machine, options.prices, None)  # before anything is looked up: these may be wrong
    # Of a run that is only estimated, no directory is made.
    store = Store.open(options.store, makes_directory=not options.dry_run)
    night = NightWatch.plan(store, is_watched=options.watch, webhooks=options.webhook or [])
    planned = _plan_local_run(options, store) if options.on == LOCAL else _plan_cluster_run(options, store)
    if options.dry_run:
        _print_dry_run(options, planned)
        return
    execution = Execution(
        options=options,
        night=night,
        finish=partial(finish_run, output=options.output, with_report=options.report, is_published=options.publish),
        messages=make_error_console() if options.as_json else CONSOLE,
        events=RunEvents(CONSOLE) if options.as_json else None,
    )
    measure: Any = _measure_here if isinstance(planned, LocalRun) else _measure_there
    end: RunEnd = measure(planned, execution)
    if not end.is_ok:
        raise typer.Exit(EXIT_NOT_OK)


def _list_retries(options: RunOptions) -> Retries:
    return Retries(failed=options.retry_failed, contaminated=options.retry_contaminated)


def _plan_local_run(options: RunOptions, store: Store) -> LocalRun:
    for name in CLUSTER_ALONE:
        if getattr(options, name) is not None:
            raise UserError(f"--{name.replace('_', '-')}: is for runs on a cluster; add --on CONTEXT, or leave it out")
    prices = find_prices(options.machine, options.prices, None)
    return LocalRun(
        matrix=options.matrix,
        store=store,
        run_id=options.run_id,
        start_new=options.new,
        retries=_list_retries(options),
        interpreters=parse_interpreters(options.python or [], tuple(FRAMEWORKS)),
        caps=CapOptions(
            deadline_seconds=options.deadline,
            max_cost=options.max_cost,
            prices={device: price.per_hour for device, price in prices.items()},
            currency=next((price.currency for price in prices.values()), CapOptions.currency),
        ),
    )


def _plan_cluster_run(options: RunOptions, store: Store) -> "ClusterRun":
    from runner.estimates import price_profile
    from runner.kubernetes.rendering import JobOwner
    from runner.kubernetes.run import ClusterRun, ClusterTarget

    if options.python:
        raise UserError("--python: is for runs on this machine; on a cluster the profile's images are used")
    target = ClusterTarget.find(options.on, options.profile, options.namespace, options.queue)
    if options.machine:
        prices = find_prices(options.machine, options.prices, target.profile)
        target = replace(target, profile=price_profile(target.profile, prices))
    return ClusterRun(
        matrix=options.matrix,
        target=target,
        store=store,
        run_id=options.run_id,
        start_new=options.new,
        retries=_list_retries(options),
        max_in_flight=options.max_in_flight,
        unschedulable_seconds=options.give_up_after or UNSCHEDULABLE_SECONDS,
        is_requeued=options.give_up_after is None and options.deadline is not None,
        max_nodes=options.max_nodes,
        max_cost=options.max_cost,
        deadline_seconds=options.deadline,
        owner=None if options.owner is None else JobOwner.parse(options.owner),
    )


def _print_dry_run(options: RunOptions, planned: "LocalRun | ClusterRun") -> None:
    run = planned.choose_run()
    profile = None if isinstance(planned, LocalRun) else planned.target.profile
    prices = find_prices(options.machine, options.prices, profile)
    events = RunEvents(CONSOLE) if options.as_json else None
    print_dry_run(run, planned.store, prices, events, retries=_list_retries(options), max_cost=options.max_cost)
    if isinstance(planned, LocalRun) and (first := planned.describe_installation(run)) is not None:
        (make_error_console() if options.as_json else CONSOLE).print(first, soft_wrap=True)


def _measure_here(local: LocalRun, execution: Execution) -> RunEnd:
    messages, night = execution.messages, execution.night
    try:
        with end_like_interrupt():
            chosen = local.choose_run()
            execution.begin(chosen, local.store)
            resume, retry = format_resume_command(chosen), format_retry_command(chosen)
            local.measure(chosen, messages, resume_command=resume, retry_command=retry, events=execution.events)
            if night is not None:
                night.follow(chosen, messages, confirm_here(local, messages, execution.events))
            end = execution.finish(local.store, chosen, messages)
    except KeyboardInterrupt as interrupt:
        execution.end_early("interrupted")
        begun = execution.chosen
        how = f"; what is finished is kept. To resume:\n  {format_resume_command(begun)}" if begun else ""
        messages.print(f"interrupted{how}", soft_wrap=True)
        raise typer.Exit(find_end_code(interrupt)) from None
    execution.end(chosen, end)
    return end


def _measure_there(there: "ClusterRun", execution: Execution) -> RunEnd:
    from runner.kubernetes.cleanup import RunCancelled
    from runner.kubernetes.connection import Connection
    from runner.kubernetes.progress import ClusterProgress, observe_with_metrics

    messages, night, port = execution.messages, execution.night, execution.options.metrics_port
    try:
        with end_like_interrupt():
            connection = Connection(context=there.target.context)
            # The run then knows its cluster from others of this name.
            there = replace(there, target=replace(there.target, authorities=connection.login.authorities))
            chosen = there.choose_run()
            execution.begin(chosen, there.store)
            if there.owner is None:  # a pod's command is of no use elsewhere
                resume = format_resume_command(chosen)
                messages.print(f"to resume after an interruption: {resume}", style="dim", soft_wrap=True)
            with ClusterProgress(CONSOLE, as_json=execution.events is not None) as progress:
                observer = observe_with_metrics(progress, connection, port, None if night is None else night.metrics)
                again = confirm_there(there, chosen, connection, observer, messages) if night else None
                there.measure(chosen, connection, observer, messages)
                if night is not None and again is not None:
                    night.follow(chosen, messages, again)
            end = execution.finish(there.store, chosen, messages)
    except RunCancelled:
        execution.end_early("cancelled")
        messages.print("the run was cancelled; what is finished is kept")
        raise typer.Exit(EXIT_NOT_OK) from None
    except KeyboardInterrupt as interrupt:
        execution.end_early("interrupted")
        begun = execution.chosen
        messages.print(f"interrupted{_explain_what_goes_on(there, begun) if begun else ''}", soft_wrap=True)
        raise typer.Exit(find_end_code(interrupt)) from None
    execution.end(chosen, end, is_retry_named=there.owner is None)
    if night is not None and port is not None:
        night.hold_metrics()
    return end


def _explain_what_goes_on(there: "ClusterRun", run: Run) -> str:
    return (
        f"; Jobs that were submitted go on. To follow them:\n  {format_resume_command(run)}\n"
        f"To end them:\n  benchmatrix cancel {run.run_id} --on {there.target.context} "
        f"--namespace {there.target.profile.namespace} --store {there.store.url}"
    )
