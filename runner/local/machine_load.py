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

from bench.redaction import hide_secrets
from bench.schema import Result
from runner.matrix.plan import Repeat
from runner.terminal import join_printable

PROC = Path("/proc")
TICKS_PER_SECOND = os.sysconf("SC_CLK_TCK")
NUM_NAMES = 3
"""Processes that are named: who has more to close looks for them anyway."""
MIN_NAMED_CORES = 0.05
"""A process that takes less of a core disturbs nobody (a desktop's clock, an idle browser)."""
# Of the line of a CPU in /proc/stat (proc(5)) all but idle and iowait: user, nice, system, irq, softirq, steal.
BUSY_COLUMNS = (1, 2, 3, 6, 7, 8)

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


@dataclass(frozen=True)
class ProcessTime:
    """A process as it was once."""

    name: str
    parent: int
    seconds: float
    """CPU time that it has taken since it began."""
    waited_seconds: float
    """CPU time of its children that have ended and that it has waited for."""


@dataclass(frozen=True, kw_only=True)
class LoadReading:
    """Holds the CPU time that the machine and each of its processes have taken until one moment."""

    at: float
    """In seconds, of a clock that never goes back."""
    busy_seconds: float
    """Of the cores that this process may use, together."""
    num_cores: int
    processes: Mapping[ProcessKey, ProcessTime]

    @classmethod
    def take(cls, proc: Path = PROC) -> "LoadReading | None":
        """Return what the kernel says now; None where it does not show its CPUs."""
        lines = []
        with suppress(OSError):
            lines = [line.split() for line in (proc / "stat").read_text().splitlines()]
        cores = {f"cpu{core}" for core in os.sched_getaffinity(0)}
        busy = [sum(int(words[column]) for column in BUSY_COLUMNS) for words in lines if words and words[0] in cores]
        if not busy:
            return None
        return cls(
            at=time.monotonic(),
            busy_seconds=sum(busy) / TICKS_PER_SECOND,
            num_cores=len(busy),
            processes=dict(_read_processes(proc)),
        )

    def list_own(self) -> set[ProcessKey]:
        """Return this process and its descendants."""
        own = {key for key in self.processes if key[0] == os.getpid()}
        found = own
        while found:
            parents = {pid for pid, _ in found}
            found = {key for key, process in self.processes.items() if process.parent in parents} - own
            own = own | found
        return own


def _read_processes(proc: Path) -> Iterator[tuple[ProcessKey, ProcessTime]]:
    for stat in proc.glob("[0-9]*/stat"):
        with suppress(OSError):  # ended meanwhile
            head, _, tail = stat.read_text(errors="replace").rpartition(")")
            # proc(5): after the name come state, ppid and so on; the 12th to 15th are utime, stime, cutime and cstime,
            # the 20th is starttime.
            fields = tail.split()
            own, system, waited, waited_system = (int(field) / TICKS_PER_SECOND for field in fields[11:15])
            process = ProcessTime(head.partition("(")[2], int(fields[1]), own + system, waited + waited_system)
            yield (int(stat.parent.name), int(fields[19])), process


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
    """Return what others did between two readings; this process and its descendants are no others."""
    seconds = max(after.at - before.at, 1 / TICKS_PER_SECOND)
    nothing = ProcessTime("", 0, 0.0, 0.0)
    own_seconds = 0.0
    own = before.list_own() | after.list_own()
    for key in own:  # of one that has ended, its parent has the time
        first, last = before.processes.get(key, nothing), after.processes.get(key, nothing)
        own_seconds += last.seconds + last.waited_seconds - first.seconds - first.waited_seconds
    cores_by_name: defaultdict[str, float] = defaultdict(float)
    pids_by_name: defaultdict[str, list[int]] = defaultdict(list)
    for key in after.processes.keys() - own:
        process = after.processes[key]
        cores = (process.seconds - before.processes.get(key, nothing).seconds) / seconds
        if cores >= MIN_NAMED_CORES:
            cores_by_name[process.name] += cores
            pids_by_name[process.name].append(key[0])
    names = sorted(cores_by_name, key=lambda name: (-cores_by_name[name], name))[:NUM_NAMES]
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
