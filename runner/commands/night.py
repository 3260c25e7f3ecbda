"""Carry out `--watch` after a run: look at the night, measure again what is suspected, tell the rest."""

import tempfile
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

from rich.console import Console

from bench.errors import TransientError, UserError
from bench.schema import Run
from bench.store import Store
from runner.commands.resume_command import format_resume_command
from runner.local.run import LocalRun, end_like_interrupt
from runner.records import NO_RETRIES
from runner.run_events import RunEvents
from runner.runs import read_run

if TYPE_CHECKING:  # the collector takes a second to import, the package `kubernetes` half a second
    from runner.kubernetes.connection import Connection
    from runner.kubernetes.run import ClusterRun
    from runner.kubernetes.tracked_jobs import ClusterObserver
    from runner.nights.display import NightMetrics
    from runner.nights.watch import NightReport, Watch
    from runner.nights.webhooks import Webhook

MIN_CONFIRMATION_SECONDS = 60.0
"""A night with less time left does not begin a confirmation: it takes about so long until the first pod measures."""
METRICS_SECONDS = 75.0
"""How long a runner that confirmed a regression serves its metrics before it ends: two scrapes of the chart's default
interval of 30 s, and some."""


MeasureAgain = Callable[[str, str], None]
"""Measures a matrix file as the run of an id, or what that run still lacks, where the night was measured."""


@dataclass(kw_only=True)
class NightWatch:
    """Follows the runs of a matrix over nights, after one of them was measured."""

    store: Store
    webhooks: "Sequence[Webhook]"
    metrics: "NightMetrics"

    @classmethod
    def plan(cls, store: Store, *, is_watched: bool, webhooks: Sequence[str]) -> "NightWatch | None":
        """Return what the options ask for, None for nothing. UserError if a webhook is wrong, before anything runs."""
        if not is_watched:
            if webhooks:
                raise UserError("--webhook: is for runs that are watched; add --watch, or leave it out")
            return None
        from runner.nights.display import NightMetrics
        from runner.nights.webhooks import parse_webhooks

        return cls(store=store, webhooks=parse_webhooks(webhooks), metrics=NightMetrics())

    def follow(self, run: Run, console: Console, again: MeasureAgain) -> None:
        """Look at the night, have measured again what is suspected, decide it, and send what is confirmed.

        What goes wrong here is said, and the night still gets its report. TransientError if the store is away.
        """
        from runner.nights.webhooks import send_alarms

        try:
            report = self._look(run, console, again)
            for line in send_alarms(self.store, report, self.webhooks):
                console.print(line, soft_wrap=True)
        except TransientError:
            raise
        except UserError as error:
            console.print(f"the night is not watched: {error}", style="yellow", soft_wrap=True)

    def hold_metrics(self) -> None:
        """Wait until a regression of this night has been scraped, or SIGTERM or Ctrl-C ends the wait.

        Raises KeyboardInterrupt then. The first process of a container does not hear SIGTERM unless it handles it.
        """
        if self.metrics.report is not None and self.metrics.report.regressions:
            with end_like_interrupt():
                time.sleep(METRICS_SECONDS)

    def _look(self, run: Run, console: Console, again: MeasureAgain) -> "NightReport":
        from runner.nights.display import list_lines
        from runner.nights.watch import Watch

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
        self.metrics.report = report
        for line in list_lines(report):
            console.print(line, soft_wrap=True)
        return report

    def _measure_again(
        self, watch: "Watch", report: "NightReport", console: Console, again: MeasureAgain
    ) -> "NightReport":
        from runner.nights.confirmation import write_matrix

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
