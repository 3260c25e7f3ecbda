"""Carry out `--watch` after a run: look at the night, measure again what is suspected, tell the rest."""

import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

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
    from runner.kubernetes.observer import ClusterObserver
    from runner.kubernetes.run import ClusterRun
    from runner.nights.display import NightMetrics
    from runner.nights.watch import NightReport, Watch
    from runner.nights.webhooks import Webhook

MIN_CONFIRMATION_SECONDS = 60.0
"""A night with less time left does not begin a confirmation: it takes about so long until the first pod measures."""
METRICS_SECONDS = 75.0
"""How long a runner that confirmed a regression serves its metrics before it ends: two scrapes of the chart's default
interval of 30 s, and some."""


class MeasuresAgain(Protocol):
    """Measures a matrix as a run of its own, where the night was measured."""

    def measure(self, matrix: str, run_id: str) -> None:
        """Measure the matrix file `matrix` as the run `run_id`, or what that run still lacks."""


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

    def follow(self, run: Run, console: Console, again: MeasuresAgain) -> None:
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

    def _look(self, run: Run, console: Console, again: MeasuresAgain) -> "NightReport":
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
        self, watch: "Watch", report: "NightReport", console: Console, again: MeasuresAgain
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
                again.measure(str(path), run_id)
            except TransientError:
                raise
            except UserError as error:
                console.print(f"they cannot be measured again: {error}", style="yellow", soft_wrap=True)
        return watch.look(is_final=True)


@dataclass(frozen=True, kw_only=True)
class LocalConfirmation:
    """Measures again on this machine."""

    local: LocalRun
    console: Console
    events: RunEvents | None = None

    def measure(self, matrix: str, run_id: str) -> None:
        """Measure the matrix as the run `run_id`, or what that run still lacks."""
        local = replace(self.local, matrix=matrix, run_id=run_id, start_new=False, retries=NO_RETRIES)
        run = local.choose_run()
        local.measure(run, self.console, resume_command=format_resume_command(run), events=self.events)


@dataclass(frozen=True, kw_only=True)
class ClusterConfirmation:
    """Measures again on the night's cluster, with the night's profile, until the night's deadline."""

    there: "ClusterRun"
    night: Run
    connection: "Connection"
    observer: "ClusterObserver"
    console: Console
    marks: frozenset[str]
    """The marks of the night's cancellations before it was measured; a later one ends the confirmation, too."""

    @classmethod
    def prepare(
        cls, there: "ClusterRun", night: Run, connection: "Connection", observer: "ClusterObserver", console: Console
    ) -> "ClusterConfirmation":
        """Return what measures a night's suspicions again. Call it before the night is measured: it reads its marks."""
        from runner.kubernetes.cancellation import list_marks

        marks = list_marks(there.store, night.run_id)
        return cls(there=there, night=night, connection=connection, observer=observer, console=console, marks=marks)

    def measure(self, matrix: str, run_id: str) -> None:
        """Measure the matrix as the run `run_id`, if the night's deadline leaves time for it."""
        from runner.kubernetes.cancellation import RunCancelled

        there = replace(
            self.there,
            matrix=matrix,
            run_id=run_id,
            start_new=False,
            retries=NO_RETRIES,
            deadline_seconds=self._count_seconds(run_id),
            cancelled_with={self.night.run_id: self.marks},
        )
        try:
            there.measure(there.choose_run(), self.connection, self.observer, self.console)
        except RunCancelled:  # the night itself is over, and gets its report
            raise UserError(f"{run_id}, or its night, was cancelled") from None

    def _count_seconds(self, run_id: str) -> float | None:
        """Return the deadline of the confirmation, from its beginning; None for no deadline. UserError if it is near.

        A confirmation that an earlier runner began keeps what was left of the night then.
        """
        deadline = self.there.find_deadline(self.night)
        if deadline is None:
            return None
        now = datetime.now(UTC)
        if (deadline - now).total_seconds() < MIN_CONFIRMATION_SECONDS:
            raise UserError("the deadline of the night leaves no time; a longer --deadline would")
        begun = read_run(self.there.store, run_id)
        return (deadline - (now if begun is None else begun.created_at)).total_seconds()
