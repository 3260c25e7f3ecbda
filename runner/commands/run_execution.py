"""Do what the options of `run` ask for: measure here or on a cluster, watch the night, collect and report."""

from collections.abc import Callable
from dataclasses import asdict, replace
from functools import partial
from typing import TYPE_CHECKING

import typer

from bench.errors import UserError
from bench.registry import FRAMEWORKS
from bench.schema import Run
from bench.store import Store
from runner.commands.estimates import print_dry_run, report_dry_run
from runner.commands.exit_codes import EXIT_NOT_OK, find_end_code
from runner.commands.night import ClusterConfirmation, LocalConfirmation, NightWatch
from runner.commands.options import CONSOLE, LOCAL, make_error_console
from runner.commands.resume_command import format_resume_command, format_retry_command
from runner.commands.run_request import ClusterOptions, Ending, RunRequest
from runner.local.caps import CapOptions
from runner.local.run import LocalRun, end_like_interrupt, parse_interpreters
from runner.reporting.run_end import RunEnd, finish_run, say_how_to_retry
from runner.run_events import RunEvents

if TYPE_CHECKING:  # the package `kubernetes` takes half a second to import: only the commands that need it do
    from runner.kubernetes.connection import Connection
    from runner.kubernetes.run import ClusterRun
    from runner.profiles.model import Profile

Finish = Callable[..., RunEnd]
LOCAL_CAPS = ("deadline", "max_cost")
"""Options of ClusterOptions that mean the same on this machine."""
UNSCHEDULABLE_SECONDS = 900.0
"""How long a pod waits for a node while no pod of its pool runs, where no option says it: as long as the cluster
autoscaler waits for a node that it has asked for (--max-node-provision-time, 15 minutes)."""


def _plan_end(ending: Ending) -> Finish:
    """Return the function that reports and publishes at the end of a run; UserError if the options contradict."""
    if ending.is_published and not ending.with_report:
        raise UserError("--publish: there is nothing to publish without a report; leave --no-report out")
    return partial(finish_run, output=ending.output, with_report=ending.with_report, is_published=ending.is_published)


def _plan_local_run(request: RunRequest, options: ClusterOptions, python: list[str] | None) -> LocalRun:
    for name, value in asdict(options).items():
        if value is not None and name not in LOCAL_CAPS:
            raise UserError(f"--{name.replace('_', '-')}: is for runs on a cluster; add --on CONTEXT, or leave it out")
    return LocalRun(
        matrix=request.matrix,
        store=request.store,
        run_id=request.run_id,
        start_new=request.again.is_new,
        retries=request.again.retries,
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


def _plan_cluster_run(
    request: RunRequest, options: ClusterOptions, python: list[str] | None, *, on: str, max_in_flight: int
) -> "ClusterRun":
    from runner.estimates.pool_prices import price_profile
    from runner.kubernetes.rendering.job_template import JobOwner
    from runner.kubernetes.run import ClusterRun
    from runner.kubernetes.target import ClusterTarget

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
        start_new=request.again.is_new,
        retries=request.again.retries,
        max_in_flight=max_in_flight,
        unschedulable_seconds=options.give_up_after or UNSCHEDULABLE_SECONDS,
        is_requeued=options.give_up_after is None and options.deadline is not None,
        max_nodes=options.max_nodes,
        max_cost=options.max_cost,
        deadline_seconds=options.deadline,
        owner=None if options.owner is None else JobOwner.parse(options.owner),
    )


def execute_run(
    request: RunRequest,
    options: ClusterOptions,
    ending: Ending,
    *,
    on: str,
    python: list[str] | None,
    max_in_flight: int,
) -> None:
    """Measure what the run lacks and end it, or say what it will take. Exit with 1 unless every repeat is ok.

    `on`: LOCAL, or the context of a cluster.
    """
    finish, pricing = _plan_end(ending), request.pricing  # before anything is looked up: these may be wrong
    night = NightWatch.plan(request.store, is_watched=ending.is_watched, webhooks=ending.webhooks or [])
    make = _plan_local_run if on == LOCAL else partial(_plan_cluster_run, on=on, max_in_flight=max_in_flight)
    planned: LocalRun | ClusterRun = make(request, options, python)
    if pricing.is_dry:
        run = planned.choose_run()
        profile = None if isinstance(planned, LocalRun) else planned.target.profile
        _print_dry_run(request, run, profile, options.max_cost, as_json=ending.as_json)
        if isinstance(planned, LocalRun) and (first := planned.describe_installation(run)) is not None:
            (make_error_console() if ending.as_json else CONSOLE).print(first, soft_wrap=True)
        return
    events = RunEvents(CONSOLE) if ending.as_json else None
    if isinstance(planned, LocalRun):
        end = _measure_here(planned, finish, night, events)
    else:
        end = _measure_there(planned, finish, night, events, options.metrics_port)
    if not end.is_ok:
        raise typer.Exit(EXIT_NOT_OK)


def _print_dry_run(
    request: RunRequest, run: Run, profile: "Profile | None", max_cost: float | None, *, as_json: bool
) -> None:
    def say(line: str) -> None:
        CONSOLE.print(line, soft_wrap=True)

    prices = request.pricing.find(profile)
    if as_json:
        report_dry_run(run, request.store, prices, RunEvents(CONSOLE), request.again.retries)
    else:
        print_dry_run(run, request.store, prices, say, retries=request.again.retries, max_cost=max_cost)


def _measure_here(local: LocalRun, finish: Finish, night: NightWatch | None, events: RunEvents | None) -> RunEnd:
    messages = make_error_console() if events else CONSOLE
    chosen: Run | None = None
    try:
        with end_like_interrupt():
            chosen = local.choose_run()
            _report_begin(events, chosen, local.store)
            resume, retry = format_resume_command(chosen), format_retry_command(chosen)
            local.measure(chosen, messages, resume_command=resume, retry_command=retry, events=events)
            if night is not None:
                night.follow(chosen, messages, LocalConfirmation(local=local, console=messages, events=events))
            end = finish(local.store, chosen, messages)
    except KeyboardInterrupt as interrupt:
        _report_early_end(events, chosen, "interrupted")
        how = f"; what is finished is kept. To resume:\n  {format_resume_command(chosen)}" if chosen else ""
        messages.print(f"interrupted{how}", soft_wrap=True)
        raise typer.Exit(find_end_code(interrupt)) from None
    _report_end(events, chosen, end)
    say_how_to_retry(end, messages, format_retry_command(chosen))
    return end


def _log_in(there: "ClusterRun") -> tuple["ClusterRun", "Connection"]:
    """Return the run, which then knows its cluster from others of this name, and the connection to that."""
    from runner.kubernetes.connection import Connection

    connection = Connection(context=there.target.context)
    return replace(there, target=replace(there.target, authorities=connection.authorities)), connection


def _measure_there(
    there: "ClusterRun", finish: Finish, night: NightWatch | None, events: RunEvents | None, metrics_port: int | None
) -> RunEnd:
    from runner.kubernetes.cancellation import RunCancelled
    from runner.kubernetes.metrics import observe_with_metrics
    from runner.kubernetes.progress import ClusterProgress

    messages = make_error_console() if events else CONSOLE
    chosen: Run | None = None
    try:
        with end_like_interrupt():
            there, connection = _log_in(there)
            chosen = there.choose_run()
            _report_begin(events, chosen, there.store)
            if there.owner is None:  # a pod's command is of no use elsewhere
                resume = format_resume_command(chosen)
                messages.print(f"to resume after an interruption: {resume}", style="dim", soft_wrap=True)
            with ClusterProgress(CONSOLE, as_json=events is not None) as progress:
                observer = observe_with_metrics(
                    progress, connection, metrics_port, None if night is None else night.metrics
                )
                again = ClusterConfirmation.prepare(there, chosen, connection, observer, messages) if night else None
                there.measure(chosen, connection, observer, messages)
                if night is not None and again is not None:
                    night.follow(chosen, messages, again)
            end = finish(there.store, chosen, messages)
    except RunCancelled:
        _report_early_end(events, chosen, "cancelled")
        messages.print("the run was cancelled; what is finished is kept")
        raise typer.Exit(EXIT_NOT_OK) from None
    except KeyboardInterrupt as interrupt:
        _report_early_end(events, chosen, "interrupted")
        messages.print(f"interrupted{_explain_what_goes_on(there, chosen) if chosen else ''}", soft_wrap=True)
        raise typer.Exit(find_end_code(interrupt)) from None
    _report_end(events, chosen, end)
    say_how_to_retry(end, messages, format_retry_command(chosen) if there.owner is None else None)
    if night is not None and metrics_port is not None:
        night.hold_metrics()
    return end


def _report_begin(events: RunEvents | None, run: Run, store: Store) -> None:
    if events:
        events.begin(run, store.url)


def _report_end(events: RunEvents | None, run: Run, end: RunEnd) -> None:
    if events:
        report = None if end.report is None else str(end.report)
        events.report(
            "ended",
            run_id=run.run_id,
            is_ok=end.is_ok,
            reason=None,
            report=report,
            **end.num_by_status,
            num_contaminated=end.num_contaminated,
        )


def _report_early_end(events: RunEvents | None, run: Run | None, reason: str) -> None:
    if events and run:
        events.report("ended", run_id=run.run_id, is_ok=False, reason=reason, report=None)


def _explain_what_goes_on(there: "ClusterRun", run: Run) -> str:
    return (
        f"; Jobs that were submitted go on. To follow them:\n  {format_resume_command(run)}\n"
        f"To end them:\n  benchmatrix cancel {run.run_id} --on {there.target.context} "
        f"--namespace {there.target.profile.namespace} --store {there.store.url}"
    )
