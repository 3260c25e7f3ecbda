"""Sees which processes of others keep the cores of this machine busy, names them, and tells the user in time."""

import os
import pwd
import re
import time
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from bench.probes.cpu import TICKS_PER_SECOND, list_own_pids, read_busy_seconds, read_own_seconds
from bench.redaction import hide_secrets
from bench.schema import Result
from runner.matrix.plan import Repeat
from runner.terminal import join_printable

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
MAX_CHARACTERS = 60

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
    """Their busiest processes in words, the busiest first: `python3 train.py of ada (1.3 cores, process 4711)`.

    Empty where these are not most of the load: who is named is taken for the culprit.
    """

    @property
    def is_disturbing(self) -> bool:
        """Whether a CPU cell that lacks so many cores is contaminated."""
        return self.busy_cores > MAX_OTHER_SHARE * self.num_cores


def compare_readings(before: LoadReading, after: LoadReading, proc: Path = PROC) -> OtherLoad:
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
        busiest = tuple(_describe(proc, name, cores_by_name[name], pids_by_name[name]) for name in names)
    return OtherLoad(busy_cores=busy_cores, num_cores=after.num_cores, busiest=busiest)


def _describe(proc: Path, name: str, cores: float, pids: list[int]) -> str:
    """Return what processes of one name run and whose they are, as far as that is the same for all."""
    commands, users = set[str](), set[str]()
    for pid in pids:
        with suppress(OSError):  # ended meanwhile
            commands.add(_describe_command((proc / str(pid) / "cmdline").read_text(errors="replace").split("\0"), name))
            owner = (proc / str(pid)).stat().st_uid
            try:
                users.add(pwd.getpwuid(owner).pw_name)
            except KeyError:
                users.add(str(owner))
    command = commands.pop() if len(commands) == 1 else join_printable(name)
    user = f" of {users.pop()}" if len(users) == 1 else ""
    which = f"process {pids[0]}" if len(pids) == 1 else f"{len(pids)} processes"
    return f"{command}{user} ({cores:.1f} cores, {which})"


def _describe_command(arguments: Sequence[str], name: str) -> str:
    """Return the program with the script or module that it runs: `python3 train.py`, `python3 -m http.server`.

    Nothing else of the command line is shown, as any option and what follows it may be a password. `name`: what the
    kernel calls the process, where it shows no command line.
    """
    program, first, second = [*arguments, "", "", ""][:3]
    words = [Path(program).name or name]
    if first == "-m":
        words += [first, second]
    elif "." in first and not re.search(r"^-|=|://", first):
        words.append(Path(first).name)
    text = hide_secrets(join_printable(" ".join(words)))
    return text if len(text) <= MAX_CHARACTERS else f"{text[:MAX_CHARACTERS]}..."


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
