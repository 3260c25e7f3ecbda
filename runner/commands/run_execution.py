"""Do what the options of `run` ask for: measure here or on a cluster, watch the night, collect and report."""

import shlex
import shutil
import sys
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer
from rich.console import Console

from bench.errors import TransientError, UserError
from bench.registry import FRAMEWORKS, Device
from bench.schema import Run
from bench.store import Store
from runner.commands.options import CONSOLE, EXIT_NOT_OK, LOCAL, make_error_console, parse_machines
from runner.commands.run import RunOptions
from runner.estimates import PoolPrice, find_pool_prices, print_dry_run
from runner.local.run import LocalCaps, LocalRun, parse_interpreters
from runner.processes import end_like_interrupt, find_end_code
from runner.progress import ClusterProgress, RunEvents
from runner.reporting import RunEnd, finish_run, say_how_to_retry
from runner.runs import NO_RETRIES, Retries, read_run

if TYPE_CHECKING:  # the collector takes a second to import, the package `kubernetes` half a second
    from runner.kubernetes.connection import Connection
    from runner.kubernetes.run import ClusterRun
    from runner.kubernetes.tracked_jobs import ClusterObserver
    from runner.nights import NightReport, Watch, Webhook
    from runner.profiles.model import Profile

CLUSTER_ALONE = ("profile", "namespace", "queue", "max_nodes", "give_up_after", "metrics_port", "owner")
UNSCHEDULABLE_SECONDS = 900.0
"""How long a pod waits for a node while no pod of its pool runs, where no option says it: as long as the cluster
autoscaler waits for a node that it has asked for (--max-node-provision-time, 15 minutes)."""


@dataclass(kw_only=True)
class Execution:
    """A run that is measured, and ended with its report; `messages` is stderr where stdout gets events."""

    options: RunOptions
    night: "NightWatch | None"
    finish: Callable[..., RunEnd]
    messages: Console
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
    _find_prices(options, None)  # before anything is looked up: these may be wrong
    store = Store.open(options.store)
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


def _find_prices(options: RunOptions, profile: "Profile | None") -> dict[Device, PoolPrice]:
    return find_pool_prices(profile, parse_machines(options.machine or []), options.prices)


def _list_retries(options: RunOptions) -> Retries:
    return Retries(failed=options.retry_failed, contaminated=options.retry_contaminated)


def _plan_local_run(options: RunOptions, store: Store) -> LocalRun:
    for name in CLUSTER_ALONE:
        if getattr(options, name) is not None:
            raise UserError(f"--{name.replace('_', '-')}: is for runs on a cluster; add --on CONTEXT, or leave it out")
    prices = _find_prices(options, None)
    return LocalRun(
        matrix=options.matrix,
        store=store,
        run_id=options.run_id,
        start_new=options.new,
        retries=_list_retries(options),
        interpreters=parse_interpreters(options.python or [], tuple(FRAMEWORKS)),
        caps=LocalCaps(
            deadline_seconds=options.deadline,
            max_cost=options.max_cost,
            prices={device: price.per_hour for device, price in prices.items()},
            currency=next((price.currency for price in prices.values()), LocalCaps.currency),
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
        prices = _find_prices(options, target.profile)
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
    prices = _find_prices(options, profile)
    events = RunEvents(CONSOLE) if options.as_json else None
    print_dry_run(
        run, planned.store, prices, events, CONSOLE, retries=_list_retries(options), max_cost=options.max_cost
    )
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
            with ClusterProgress(messages, execution.events) as progress:
                if port is not None:
                    progress.serve_metrics(connection, port)
                again = confirm_there(there, chosen, connection, progress, messages) if night else None
                there.measure(chosen, connection, progress, messages)
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
    return end


def _explain_what_goes_on(there: "ClusterRun", run: Run) -> str:
    return (
        f"; Jobs that were submitted go on. To follow them:\n  {format_resume_command(run)}\n"
        f"To end them:\n  benchmatrix cancel {run.run_id} --on {there.target.context} "
        f"--namespace {there.target.profile.namespace} --store {there.store.url}"
    )


RETRY_CONTAMINATED = "--retry-contaminated"


def format_resume_command(run: Run) -> str:
    """Return the command line of this process with the run's id in it, quoted for a shell."""
    return shlex.join(_list_words(run))


def format_retry_command(run: Run) -> str:
    """Return the command that measures the contaminated repeats of the run again, quoted for a shell."""
    words = _list_words(run)
    return shlex.join(words if RETRY_CONTAMINATED in words else [*words, RETRY_CONTAMINATED])


def _list_words(run: Run) -> list[str]:
    words = [word for word in [*_name_program(), *sys.argv[1:]] if word != "--new"]
    return words if run.run_id in words else [*words, "--run-id", run.run_id]


def _name_program() -> list[str]:
    program = sys.argv[0]
    if Path(program).suffix == ".py":  # `python -m runner.cli`
        return sys.orig_argv[: len(sys.orig_argv) - len(sys.argv) + 1]
    return [Path(program).name if shutil.which(Path(program).name) == program else program]


MIN_CONFIRMATION_SECONDS = 60.0
"""A night with less time left does not begin a confirmation: it takes about so long until the first pod measures."""


MeasureAgain = Callable[[str, str], None]
"""Measures a matrix file as the run of an id, or what that run still lacks, where the night was measured."""


@dataclass(kw_only=True)
class NightWatch:
    """Follows the runs of a matrix over nights, after one of them was measured."""

    store: Store
    webhooks: "Sequence[Webhook]"

    @classmethod
    def plan(cls, store: Store, *, is_watched: bool, webhooks: Sequence[str]) -> "NightWatch | None":
        """Return what the options ask for, None for nothing. UserError if a webhook is wrong, before anything runs."""
        if not is_watched:
            if webhooks:
                raise UserError("--webhook: is for runs that are watched; add --watch, or leave it out")
            return None
        from runner.nights import parse_webhooks

        return cls(store=store, webhooks=parse_webhooks(webhooks))

    def follow(self, run: Run, console: Console, again: MeasureAgain) -> None:
        """Look at the night, have measured again what is suspected, decide it, and send what is confirmed.

        What goes wrong here is said, and the night still gets its report. TransientError if the store is away.
        """
        from runner.nights import send_alarms

        try:
            report = self._look(run, console, again)
            for line in send_alarms(self.store, report, self.webhooks):
                console.print(line, soft_wrap=True)
        except TransientError:
            raise
        except UserError as error:
            console.print(f"the night is not watched: {error}", style="yellow", soft_wrap=True)

    def _look(self, run: Run, console: Console, again: MeasureAgain) -> "NightReport":
        from runner.nights import Watch, list_lines

        watch = Watch(store=self.store, matrix=run.matrix)
        report = watch.look()
        if report.pending and report.night.run_id == run.run_id:
            report = self._measure_again(watch, report, console, again)
        elif report.night.run_id != run.run_id:
            console.print(
                f"run {run.run_id} is not the newest night of {run.matrix}: {report.night.run_id} began later, at "
                f"{report.night.created_at:%Y-%m-%d %H:%M} UTC by its clock. What follows is about that one",
                style="yellow",
                soft_wrap=True,
            )
        for line in list_lines(report):
            console.print(line, soft_wrap=True)
        return report

    def _measure_again(
        self, watch: "Watch", report: "NightReport", console: Console, again: MeasureAgain
    ) -> "NightReport":
        from runner.nights import write_matrix

        run_id = report.pending[0].confirmation_run_id
        assert run_id is not None  # only a change for the better has none, and it never waits
        count = len(report.pending)
        what = "1 slowdown is suspected: it is" if count == 1 else f"{count} slowdowns are suspected: they are"
        console.print(f"{what} measured again", soft_wrap=True)
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "confirmation.yaml"
            write_matrix(path, report.night, report.pending)
            try:
                again(str(path), run_id)
            except TransientError:
                raise
            except UserError as error:
                console.print(f"they cannot be measured again: {error}", style="yellow", soft_wrap=True)
        return watch.look(is_final=True)


def confirm_here(local: LocalRun, console: Console, events: RunEvents | None) -> MeasureAgain:
    def measure(matrix: str, run_id: str) -> None:
        again = replace(local, matrix=matrix, run_id=run_id, start_new=False, retries=NO_RETRIES)
        run = again.choose_run()
        again.measure(run, console, resume_command=format_resume_command(run), events=events)

    return measure


def confirm_there(
    there: "ClusterRun", night: Run, connection: "Connection", observer: "ClusterObserver", console: Console
) -> MeasureAgain:
    """Return what measures again on the night's cluster, with its profile, until its deadline.

    Call it before the night is measured: it reads the marks of its cancellations; a later one ends the confirmation.
    """
    from runner.kubernetes.cleanup import RunCancelled, list_marks

    marks = list_marks(there.store, night.run_id)

    def measure(matrix: str, run_id: str) -> None:
        again = replace(
            there,
            matrix=matrix,
            run_id=run_id,
            start_new=False,
            retries=NO_RETRIES,
            deadline_seconds=_count_seconds(there, night, run_id),
            cancelled_with={night.run_id: marks},
        )
        try:
            again.measure(again.choose_run(), connection, observer, console)
        except RunCancelled:  # the night itself is over, and gets its report
            raise UserError(f"{run_id}, or its night, was cancelled") from None

    return measure


def _count_seconds(there: "ClusterRun", night: Run, run_id: str) -> float | None:
    """Return the deadline of the confirmation, from its beginning; None for no deadline. UserError if it is near.

    A confirmation that an earlier runner began keeps what was left of the night then.
    """
    deadline = there.find_deadline(night)
    if deadline is None:
        return None
    now = datetime.now(UTC)
    if (deadline - now).total_seconds() < MIN_CONFIRMATION_SECONDS:
        raise UserError("the deadline of the night leaves no time; a longer --deadline would")
    begun = read_run(there.store, run_id)
    return (deadline - (now if begun is None else begun.created_at)).total_seconds()
