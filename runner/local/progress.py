"""Show the progress of a run: one live line in a terminal, plain lines in a pipe."""

import time
from collections import Counter, defaultdict
from collections.abc import Sequence
from contextlib import AbstractContextManager
from statistics import fmean
from types import TracebackType
from typing import Self

from rich.console import Console, Group
from rich.live import Live
from rich.progress_bar import ProgressBar
from rich.table import Table
from rich.text import Text

from bench.schema import Result
from runner.local.executor import Observer
from runner.local.machine_load import DisturbanceWatch
from runner.matrix.plan import Repeat
from runner.run_events import PROGRESS_SECONDS, RunEvents, describe_end
from runner.terminal import can_redraw, format_wait


class Progress(Observer, AbstractContextManager["Progress"]):
    """Counts and times the repeats of one run and shows them. Changes once a second; has no thread.

    `events`: where they are shown as JSON lines instead. `retry_command`: measures contaminated repeats again.
    """

    def __init__(
        self,
        console: Console,
        repeats: Sequence[Repeat],
        *,
        num_ok: int,
        num_failed: int,
        num_contaminated: int = 0,
        events: RunEvents | None = None,
        retry_command: str | None = None,
    ) -> None:
        self._console = console
        self._left = list(repeats)
        self._num_ok = num_ok
        self._num_failed = num_failed
        self._num_contaminated = num_contaminated
        self._watch = None if retry_command is None else DisturbanceWatch(retry_command, self._warn)
        self._seconds: defaultdict[str, list[float]] = defaultdict(list)
        self._now: Repeat | None = None
        self._started = time.monotonic()
        self._events = events
        self._by_status: Counter[str] = Counter()
        self._next_event = self._started
        redraws = can_redraw(console) and events is None
        self._live = Live(console=console, auto_refresh=False, transient=True) if redraws else None

    def __enter__(self) -> Self:
        if self._live:
            self._live.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._live:
            self._live.stop()

    def start_repeat(self, repeat: Repeat) -> None:
        self._now = repeat
        self._started = time.monotonic()
        if not self._live and not self._events:
            self._console.print(f"measuring {_describe_repeat(repeat)}", highlight=False, style="dim", soft_wrap=True)
        if self._watch:
            self._watch.start_repeat()
        self.tick()

    def tick(self) -> None:
        if self._watch and self._now:
            self._watch.tick(self._now)
        if self._live:
            self._live.update(self._render(), refresh=True)
        elif self._events and time.monotonic() >= self._next_event:
            self._next_event = time.monotonic() + PROGRESS_SECONDS
            self._report_progress(self._events)

    def finish_repeat(self, repeat: Repeat, result: Result) -> None:
        seconds = time.monotonic() - self._started
        self._seconds[repeat.planned.cell.cell_id].append(seconds)
        self._left.remove(repeat)
        self._now = None
        self._by_status[result.status] += 1
        if result.status == "ok":
            self._num_ok += 1
            self._num_contaminated += result.validity is not None and result.validity.is_contaminated
        else:
            self._num_failed += 1
        if self._events:
            self._events.finish(result)
        else:
            line = describe_end(result, repeat.planned.cell.slug, repeat.planned.repeats, f"{seconds:.1f} s")
            if not self._live:
                line.append(f"  [{self._count()}]")
            self._console.print(line, highlight=False, soft_wrap=True)
        if self._watch:
            self._watch.finish_repeat(result)
        self.tick()

    def estimate_seconds_left(self) -> float | None:
        """Return the seconds that the remaining repeats will take, by their cell's mean so far or that of all cells.

        The time that the current repeat has taken already is subtracted. None before the first repeat has ended.
        """
        if not self._seconds:
            return None
        overall = fmean(second for seconds in self._seconds.values() for second in seconds)
        by_cell = {cell_id: fmean(seconds) for cell_id, seconds in self._seconds.items()}
        left = sum(by_cell.get(repeat.planned.cell.cell_id, overall) for repeat in self._left)
        if self._now is None:
            return left
        expected = by_cell.get(self._now.planned.cell.cell_id, overall)
        return left - min(expected, time.monotonic() - self._started)

    def _report_progress(self, events: RunEvents) -> None:
        running = int(self._now is not None)
        events.report(
            "progress",
            done=self._by_status.total(),
            running=running,
            waiting=0,
            suspended=0,
            to_submit=len(self._left) - running,
            seconds_left=self.estimate_seconds_left(),
            **self._by_status,
        )

    def _warn(self, message: str) -> None:
        if self._events:
            self._events.report("warning", message=message)
        else:
            self._console.print(f"warning: {message}", style="yellow", highlight=False, soft_wrap=True)

    def _count(self) -> str:
        left = self.estimate_seconds_left()
        wait = "" if left is None or not self._left else f", about {format_wait(left)} left"
        disturbed = f" ({self._num_contaminated} contaminated)" if self._num_contaminated else ""
        return f"{self._num_ok} done{disturbed}, {self._num_failed} failed, {len(self._left)} to go{wait}"

    def _render(self) -> Group:
        total = self._num_ok + self._num_failed + len(self._left)
        bar = Table.grid(padding=(0, 1))
        bar.add_row(ProgressBar(total=total, completed=total - len(self._left), width=30), self._count())
        if self._now is None:
            return Group(bar)
        now = f"measuring {_describe_repeat(self._now)}, {time.monotonic() - self._started:.0f} s"
        return Group(Text(now, overflow="ellipsis", no_wrap=True), bar)


def _describe_repeat(repeat: Repeat) -> str:
    return f"{repeat.planned.cell.slug}, repeat {repeat.number}/{repeat.planned.repeats}"
