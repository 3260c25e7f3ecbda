"""Show the progress of a run, one live line in a terminal and plain lines in a pipe, and who disturbs it."""

import os
import time
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, suppress
from dataclasses import dataclass
from pathlib import Path
from statistics import fmean
from types import TracebackType
from typing import Self

from rich.console import Console, Group
from rich.live import Live
from rich.progress_bar import ProgressBar
from rich.table import Table
from rich.text import Text

from bench.probes.cpu import TICKS_PER_SECOND, list_own_pids, read_busy_seconds, read_own_seconds
from bench.schema import Result
from runner.local.executor import Observer
from runner.matrix.plan import Repeat
from runner.run_events import PROGRESS_SECONDS, RunEvents, describe_end
from runner.terminal import can_redraw, format_wait, join_printable


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


PROC = Path("/proc")
NUM_NAMES = 3
"""Processes that are named: who has more to close looks for them anyway."""
MIN_NAMED_CORES = 0.05
"""A process that takes less of a core disturbs nobody (a desktop's clock, an idle browser)."""

MAX_OTHER_SHARE = 0.10
"""Of the cores. As bench.verdicts.neighbours: a CPU cell that lacks a tenth of its cores is contaminated."""
MIN_EXPLAINED = 0.5
"""The share of the load of others that the named processes have, all together."""

MIN_LOOK_SECONDS = 0.5
"""The kernel counts CPU time in hundredths of a second: over half a second each core is exact to 2 %."""
NUM_IN_A_ROW = 2
"""One contaminated repeat may be a passing backup; after two, the next will most likely be so too."""

ProcessKey = tuple[int, int]
"""Id of a process, and when it started: ids are given again."""


@dataclass(frozen=True, kw_only=True)
class LoadReading:
    """Holds the CPU time that the machine and each of the processes of others have taken until one moment."""

    at: float
    """In seconds, of a clock that never goes back."""
    busy_seconds: float
    """Of the cores that this process may use, together."""
    own_seconds: float
    """Of this process and its descendants."""
    num_cores: int
    others: Mapping[ProcessKey, tuple[str, float]]
    """The name of each process of others, and its CPU seconds since it began."""

    @classmethod
    def take(cls) -> "LoadReading | None":
        """Return what the kernel says now; None where it does not show its CPUs."""
        affinity = frozenset(os.sched_getaffinity(0))
        busy = read_busy_seconds()
        if not affinity <= busy.keys():
            return None
        own = list_own_pids()
        others = {key: process for key, process in list_processes() if key[0] not in own}
        return cls(
            at=time.monotonic(),
            busy_seconds=sum(busy[cpu] for cpu in affinity),
            own_seconds=read_own_seconds(),
            num_cores=len(affinity),
            others=others,
        )


def list_processes(proc: Path = PROC) -> Iterator[tuple[ProcessKey, tuple[str, float]]]:
    """Yield every process with its name and its CPU seconds."""
    for stat in proc.glob("[0-9]*/stat"):
        with suppress(OSError):  # ended meanwhile
            head, _, tail = stat.read_text(errors="replace").rpartition(")")
            fields = tail.split()  # proc(5): behind the name the 12th and 13th are utime and stime, the 20th starttime
            seconds = (int(fields[11]) + int(fields[12])) / TICKS_PER_SECOND
            yield (int(stat.parent.name), int(fields[19])), (head.partition("(")[2], seconds)


@dataclass(frozen=True, kw_only=True)
class OtherLoad:
    """What others did on the machine between two readings."""

    busy_cores: float
    """Cores that others kept busy, on average."""
    num_cores: int
    busiest: tuple[str, ...]
    """Their busiest processes in words, the busiest first: `python3 (1.3 cores, process 4711)`.

    Empty where these are not most of the load: who is named is taken for the culprit.
    """

    @property
    def is_disturbing(self) -> bool:
        """Whether a CPU cell that lacks so many cores is contaminated."""
        return self.busy_cores > MAX_OTHER_SHARE * self.num_cores


def compare_readings(before: LoadReading, after: LoadReading) -> OtherLoad:
    """Return what others did between two readings."""
    seconds = max(after.at - before.at, 1 / TICKS_PER_SECOND)
    cores_by_name: defaultdict[str, float] = defaultdict(float)
    pids_by_name: defaultdict[str, list[int]] = defaultdict(list)
    for key, (name, taken) in after.others.items():
        cores = (taken - before.others.get(key, (name, 0.0))[1]) / seconds
        if cores >= MIN_NAMED_CORES:
            cores_by_name[name] += cores
            pids_by_name[name].append(key[0])
    names = sorted(cores_by_name, key=lambda name: (-cores_by_name[name], name))[:NUM_NAMES]
    own_seconds = after.own_seconds - before.own_seconds
    busy_cores = max(0.0, after.busy_seconds - before.busy_seconds - own_seconds) / seconds
    busiest: tuple[str, ...] = ()
    if sum(cores_by_name[name] for name in names) >= MIN_EXPLAINED * busy_cores:
        busiest = tuple(_describe(name, cores_by_name[name], pids_by_name[name]) for name in names)
    return OtherLoad(busy_cores=busy_cores, num_cores=after.num_cores, busiest=busiest)


def _describe(name: str, cores: float, pids: list[int]) -> str:
    which = f"process {pids[0]}" if len(pids) == 1 else f"{len(pids)} processes"
    return f"{join_printable(name)} ({cores:.1f} cores, {which})"


class DisturbanceWatch:
    """Watches what others do while repeats are measured, and says so once at each of two occasions. Never blocks.

    `retry_command`: measures the contaminated repeats of the run again. `say`: is given each sentence.
    """

    def __init__(
        self,
        retry_command: str,
        say: Callable[[str], None],
        take: Callable[[], LoadReading | None] = LoadReading.take,
    ) -> None:
        self._retry_command = retry_command
        self._say = say
        self._take = take
        self._before: LoadReading | None = None
        self._has_looked = False
        self._num_in_a_row = 0
        self._has_warned = False

    def start_repeat(self) -> None:
        self._before = None if self._has_warned else self._take()

    def tick(self, repeat: Repeat) -> None:
        """Look once, about a second after the first repeat has begun, whether others keep cores busy."""
        if self._has_looked or self._before is None:
            return
        after = self._take()
        if after is None or after.at - self._before.at < MIN_LOOK_SECONDS:
            return
        self._has_looked = True
        load = compare_readings(self._before, after)
        busiest = ", ".join(load.busiest) or "by processes that cannot be seen from here, or have ended"
        if repeat.planned.cell.device == "cpu" and load.is_disturbing:
            self._say(
                f"others keep {load.busy_cores:.1f} of {load.num_cores} cores busy now ({busiest}): "
                "repeats that they disturb will be contaminated and not count"
            )

    def finish_repeat(self, result: Result) -> None:
        """Count the contaminated repeats in a row, and warn after the second."""
        self._has_looked = True  # a first repeat that was shorter than the look says by its verdict how it was
        is_contaminated = result.validity is not None and result.validity.is_contaminated
        self._num_in_a_row = self._num_in_a_row + 1 if is_contaminated else 0
        if self._num_in_a_row < NUM_IN_A_ROW or self._has_warned:
            return
        self._has_warned = True
        after = None if self._before is None else self._take()
        busiest = ""
        if self._before is not None and after is not None:
            load = compare_readings(self._before, after)
            if load.busiest and load.is_disturbing:  # who did too little is not the culprit
                busiest = f"; busiest beside the run: {', '.join(load.busiest)}"
        self._say(
            f"{NUM_IN_A_ROW} repeats in a row were contaminated and do not count{busiest}. End what "
            "disturbs and let the run go on, or press Ctrl-C: what is finished is kept. This measures the contaminated "
            f"repeats again, when the machine is quiet:\n  {self._retry_command}"
        )
