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
from typing import TYPE_CHECKING

import typer
from rich.console import Console

from bench.errors import TransientError, UserError
from bench.registry import FRAMEWORKS, Device
from bench.schema import Run
from bench.store import Store
from runner.commands.options import CONSOLE, EXIT_NOT_OK, LOCAL, make_error_console, parse_machines
from runner.commands.run import OF_CLUSTERS, RunOptions
from runner.estimates import PoolPrice, find_pool_prices, print_dry_run
from runner.local.run import LocalCaps, LocalRun, parse_interpreters
from runner.progress import ClusterProgress, RunEvents
from runner.reporting import RunEnd, finish_run, say_how_to_retry
from runner.runs import NO_RETRIES, Retries, read_run

if TYPE_CHECKING:  # the collector takes a second to import, the package `kubernetes` half a second
    from runner.kubernetes.connection import Connection
    from runner.kubernetes.run import ClusterRun
    from runner.kubernetes.tracked_jobs import ClusterObserver
    from runner.nights import NightReport, Webhook
    from runner.profiles.model import Profile

UNSCHEDULABLE_SECONDS = 900.0
"""How long a pod waits for a node while no pod of its pool runs, where no option says it: as long as the cluster
autoscaler waits for a node that it has asked for (--max-node-provision-time, 15 minutes)."""
MeasureAgain = Callable[[str, str], None]
"""Measures a matrix file as the run of an id, or what that run still lacks, where the night was measured."""


def execute_run(options: RunOptions) -> None:
    """Measure what the run lacks and end it, or say what it will take. Exit with 1 unless every repeat is ok."""
    if options.publish and not options.report:
        raise UserError("--publish: there is nothing to publish without a report; leave --no-report out")
    if options.webhook and not options.watch:
        raise UserError("--webhook: is for runs that are watched; add --watch, or leave it out")
    _find_prices(options, None)  # before anything is looked up: these may be wrong
    webhooks = None
    if options.watch:
        from runner.nights import parse_webhooks

        webhooks = parse_webhooks(options.webhook or [])
    store = Store.open(options.store)
    planned = _plan_local_run(options, store) if options.on == LOCAL else _plan_cluster_run(options, store)
    messages = make_error_console() if options.as_json else CONSOLE
    events = RunEvents(CONSOLE) if options.as_json else None
    if options.dry_run:
        _print_dry_run(options, planned, messages, events)
        return
    execution = Execution(options=options, planned=planned, webhooks=webhooks, messages=messages, events=events)
    if not execution.execute().is_ok:
        raise typer.Exit(EXIT_NOT_OK)


@dataclass(kw_only=True)
class Execution:
    """A run from its plan to its report; `messages` go to stderr where stdout gets events."""

    options: RunOptions
    planned: "LocalRun | ClusterRun"
    webhooks: "Sequence[Webhook] | None"
    """Who is told what the nights confirm; None: they are not looked at."""
    messages: Console
    events: RunEvents | None
    chosen: Run | None = None

    def execute(self) -> RunEnd:
        planned, options = self.planned, self.options
        try:
            run = self._measure_here(planned) if isinstance(planned, LocalRun) else self._measure_there(planned)
            end = finish_run(
                planned.store,
                run,
                self.messages,
                output=options.output,
                with_report=options.report,
                is_published=options.publish,
            )
        except KeyboardInterrupt:
            how = "" if self.chosen is None else self._explain_what_goes_on(self.chosen)
            self._end_early("interrupted", f"interrupted{how}")
            raise
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
        # A pod's command is of no use elsewhere.
        say_how_to_retry(end, self.messages, format_retry_command(run) if options.owner is None else None)
        return end

    def _begin(self, run: Run) -> Run:
        self.chosen = run
        if self.events:
            self.events.begin(run, self.planned.store.url)
        return run

    def _end_early(self, reason: str, message: str) -> None:
        if self.events and self.chosen:
            self.events.report("ended", run_id=self.chosen.run_id, is_ok=False, reason=reason, report=None)
        self.messages.print(message, soft_wrap=True)

    def _explain_what_goes_on(self, run: Run) -> str:
        if isinstance(self.planned, LocalRun):
            return f"; what is finished is kept. To resume:\n  {format_resume_command(run)}"
        target = self.planned.target
        return (
            f"; Jobs that were submitted go on. To follow them:\n  {format_resume_command(run)}\n"
            f"To end them:\n  benchmatrix cancel {run.run_id} --on {target.context} "
            f"--namespace {target.profile.namespace} --store {self.planned.store.url}"
        )

    def _measure_here(self, local: LocalRun) -> Run:
        run = self._begin(local.choose_run())
        resume, retry = format_resume_command(run), format_retry_command(run)

        def measure(run: Run, retries: Retries) -> None:
            here = replace(local, retries=retries)
            here.measure(run, self.messages, resume_command=resume, retry_command=retry, events=self.events)

        run = self._measure_in_stages(run, measure)
        self._follow(run, confirm_here(local, self.messages, self.events))
        return run

    def _measure_there(self, there: "ClusterRun") -> Run:
        from runner.kubernetes.cleanup import RunCancelled
        from runner.kubernetes.connection import Connection

        connection, port = Connection(context=there.target.context), self.options.metrics_port
        # The run then knows its cluster from others of this name.
        there = replace(there, target=replace(there.target, authorities=connection.login.authorities))
        run = self._begin(there.choose_run())
        if there.owner is None:
            resume = format_resume_command(run)
            self.messages.print(f"to resume after an interruption: {resume}", style="dim", soft_wrap=True)

        def measure(run: Run, retries: Retries) -> None:
            replace(there, retries=retries).measure(run, connection, progress, self.messages)

        try:
            with ClusterProgress(self.messages, self.events) as progress:
                if port is not None:
                    progress.serve_metrics(connection, port)
                is_watched = self.webhooks is not None
                again = confirm_there(there, run, connection, progress, self.messages) if is_watched else None
                run = self._measure_in_stages(run, measure)
                if again is not None:
                    self._follow(run, again)
        except RunCancelled:
            self._end_early("cancelled", "the run was cancelled; what is finished is kept")
            raise typer.Exit(EXIT_NOT_OK) from None
        return run

    def _measure_in_stages(self, run: Run, measure: Callable[[Run, Retries], None]) -> Run:
        """Measure the run, and what the spread of its first repeats asks for; return it with all repeats."""
        measure(run, self.planned.retries)
        if not any(planned.may_grow for planned in run.cells):
            return run
        from runner.stopping import lengthen

        longer = lengthen(self.planned.store, run, partial(self.messages.print, soft_wrap=True))
        if longer is None:
            return run
        measure(longer, NO_RETRIES)
        return longer

    def _follow(self, run: Run, again: MeasureAgain) -> None:
        """Look at the night, have measured again what is suspected, decide it, and send what is confirmed.

        What goes wrong here is said, and the night still gets its report. TransientError if the store is away.
        """
        if self.webhooks is None:
            return
        from runner.nights import list_lines, look, send_alarms

        store, say = self.planned.store, partial(self.messages.print, soft_wrap=True)
        try:
            report = look(store, run.matrix)
            if report.night != run.run_id:
                say(
                    f"run {run.run_id} is not the newest night of {run.matrix}: {report.night} began later, at "
                    f"{report.run.created_at:%Y-%m-%d %H:%M} UTC by its clock. What follows is about that one",
                    style="yellow",
                )
            elif report.pending:
                self._measure_again(report, again)
                report = look(store, run.matrix, is_final=True)
            for line in list_lines(report):
                say(line)
            for line in send_alarms(store, report, self.webhooks):
                say(line)
        except TransientError:
            raise
        except UserError as error:
            say(f"the night is not watched: {error}", style="yellow")

    def _measure_again(self, report: "NightReport", again: MeasureAgain) -> None:
        from runner.nights import write_matrix

        run_id = report.pending[0].confirmation_run_id
        assert run_id is not None  # only a change for the better has none, and it never waits
        count = len(report.pending)
        what = "1 slowdown is suspected: it is" if count == 1 else f"{count} slowdowns are suspected: they are"
        self.messages.print(f"{what} measured again", soft_wrap=True)
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "confirmation.yaml"
            write_matrix(path, report.run, report.pending)
            try:
                again(str(path), run_id)
            except TransientError:
                raise
            except UserError as error:
                self.messages.print(f"they cannot be measured again: {error}", style="yellow", soft_wrap=True)


def _find_prices(options: RunOptions, profile: "Profile | None") -> dict[Device, PoolPrice]:
    return find_pool_prices(profile, parse_machines(options.machine or []), options.prices)


def _list_retries(options: RunOptions) -> Retries:
    return Retries(failed=options.retry_failed, contaminated=options.retry_contaminated)


def _plan_local_run(options: RunOptions, store: Store) -> LocalRun:
    for name in OF_CLUSTERS:
        if getattr(options, name) != getattr(RunOptions, name):
            raise UserError(f"--{name.replace('_', '-')}: is for runs on a cluster; add --on CONTEXT, or leave it out")
    prices = _find_prices(options, None)
    return LocalRun(
        matrix=options.matrix,
        store=store,
        run_id=options.run_id,
        start_new=options.new,
        retries=_list_retries(options),
        interpreters=parse_interpreters(options.python or [], tuple(FRAMEWORKS)),
        assumes_gpu=options.dry_run and "gpu" in prices,
        caps=LocalCaps(
            deadline_seconds=options.deadline,
            max_cost=options.max_cost,
            prices={device: price.per_hour for device, price in prices.items()},
            currency=next((price.currency for price in prices.values()), LocalCaps.currency),
        ),
    )


def _plan_cluster_run(options: RunOptions, store: Store) -> "ClusterRun":
    from runner.estimates import price_profile
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
        max_cost=options.max_cost,
        deadline_seconds=options.deadline,
        owner=options.owner,
    )


def _print_dry_run(
    options: RunOptions, planned: "LocalRun | ClusterRun", messages: Console, events: RunEvents | None
) -> None:
    run = planned.choose_run()
    prices = _find_prices(options, None if isinstance(planned, LocalRun) else planned.target.profile)
    retries = _list_retries(options)
    print_dry_run(run, planned.store, prices, events, CONSOLE, retries=retries, max_cost=options.max_cost)
    if isinstance(planned, LocalRun) and (first := planned.describe_installation(run)) is not None:
        messages.print(first, soft_wrap=True)


RETRY_CONTAMINATED = "--retry-contaminated"


def format_resume_command(run: Run) -> str:
    """Return the command line of this process with the run's id in it."""
    return shlex.join(_list_words(run))


def format_retry_command(run: Run) -> str:
    """Return the command that measures the contaminated repeats of the run again."""
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
    """Return the seconds that the confirmation has from its beginning; None: no deadline. UserError if it is near.

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
