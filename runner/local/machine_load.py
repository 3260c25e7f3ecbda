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
from runner.terminal_text import join_printable

PROC = Path("/proc")
TICKS_PER_SECOND = os.sysconf("SC_CLK_TCK")
NUM_NAMES = 3
"""Processes that are named: who has more to close looks for them anyway."""
MIN_NAMED_CORES = 0.05
"""A process that takes less of a core disturbs nobody (a desktop's clock, an idle browser)."""
# Of the line of a CPU in /proc/stat (proc(5)) all but idle and iowait: user, nice, system, irq, softirq, steal.
BUSY_COLUMNS = (0, 1, 2, 5, 6, 7)

MAX_OTHER_SHARE = 0.10
"""Of the cores. As bench.verdicts.neighbours: a CPU cell that lacks a tenth of its cores is contaminated."""
MIN_EXPLAINED = 0.5
"""The share of the load of others that the named processes have, all together."""

MIN_LOOK_SECONDS = 0.5
"""The kernel counts CPU time in hundredths of a second: over half a second each core is exact to 2 %."""
NUM_IN_A_ROW = 2
"""One contaminated repeat may be a passing backup; after two, the next will most likely be so too."""
MAX_CHARACTERS = 60
HIDDEN = "(hidden)"

ProcessKey = tuple[int, int]
"""Id of a process, and when it started: ids are given again."""


@dataclass(frozen=True, kw_only=True)
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
    proc: Path | None = None
    """Where command lines of these processes can be read; None: nowhere."""

    @classmethod
    def take(cls, proc: Path = PROC) -> "LoadReading | None":
        """Return what the kernel says now; None where it does not show its CPUs."""
        busy = _read_busy_seconds(proc)
        cores = os.sched_getaffinity(0) & busy.keys()
        if not cores:
            return None
        return cls(
            at=time.monotonic(),
            busy_seconds=sum(busy[core] for core in cores),
            num_cores=len(cores),
            processes=dict(_read_processes(proc)),
            proc=proc,
        )

    def list_own(self) -> set[ProcessKey]:
        own, parents = set[ProcessKey](), {os.getpid()}
        own |= {key for key in self.processes if key[0] in parents}
        while parents:
            found = {key for key, process in self.processes.items() if process.parent in parents} - own
            own |= found
            parents = {pid for pid, _ in found}
        return own


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

    def describe_busiest(self) -> str:
        """Return the busiest processes, or why none is named."""
        return ", ".join(self.busiest) or "by processes that cannot be seen from here, or have ended"


def compare_readings(before: LoadReading, after: LoadReading) -> OtherLoad:
    """Return what others did between two readings; this process and its descendants are no others."""
    seconds = max(after.at - before.at, 1 / TICKS_PER_SECOND)
    own = before.list_own() | after.list_own()
    own_seconds = sum(_count_seconds(before, after, key, with_waited=True) for key in own)
    cores_by_name: defaultdict[str, float] = defaultdict(float)
    pids_by_name: defaultdict[str, list[int]] = defaultdict(list)
    for key in after.processes.keys() - own:
        cores = _count_seconds(before, after, key) / seconds
        if cores >= MIN_NAMED_CORES:
            cores_by_name[after.processes[key].name] += cores
            pids_by_name[after.processes[key].name].append(key[0])
    names = sorted(cores_by_name, key=lambda name: (-cores_by_name[name], name))[:NUM_NAMES]
    busy_cores = max(0.0, after.busy_seconds - before.busy_seconds - own_seconds) / seconds
    is_explained = sum(cores_by_name[name] for name in names) >= MIN_EXPLAINED * busy_cores
    described = (_describe(after, name, cores_by_name[name], pids_by_name[name]) for name in names)
    return OtherLoad(busy_cores=busy_cores, num_cores=after.num_cores, busiest=tuple(described) if is_explained else ())


def _count_seconds(before: LoadReading, after: LoadReading, key: ProcessKey, *, with_waited: bool = False) -> float:
    """Return the CPU time that a process took between the readings; 0 if it has ended: its parent has it then."""
    first, last = before.processes.get(key), after.processes.get(key)
    if last is None:
        return 0.0 if first is None else -first.seconds - (first.waited_seconds if with_waited else 0.0)
    taken = last.seconds + (last.waited_seconds if with_waited else 0.0)
    return taken if first is None else taken - first.seconds - (first.waited_seconds if with_waited else 0.0)


def _describe(reading: LoadReading, name: str, cores: float, pids: list[int]) -> str:
    which = f"process {pids[0]}" if len(pids) == 1 else f"{len(pids)} processes"
    return f"{_name_processes(reading.proc, name, pids)} ({cores:.1f} cores, {which})"


def _name_processes(proc: Path | None, name: str, pids: list[int]) -> str:
    """Return what processes of one name run and whose they are, as far as that is the same for all."""
    commands, users = set[str](), set[str]()
    for pid in pids if proc is not None else ():
        with suppress(OSError):  # ended meanwhile
            assert proc is not None
            arguments = (proc / str(pid) / "cmdline").read_text(errors="replace").rstrip("\0").split("\0")
            commands.add(_describe_command(arguments, name))
            owner = (proc / str(pid)).stat().st_uid
            try:
                users.add(pwd.getpwuid(owner).pw_name)
            except KeyError:
                users.add(str(owner))
    command = commands.pop() if len(commands) == 1 else join_printable(name)
    return f"{command} of {users.pop()}" if len(users) == 1 else command


def _describe_command(arguments: Sequence[str], name: str) -> str:
    """Return the program with the script or module that it runs: `python3 train.py`, `python3 -m http.server`.

    Nothing else of the command line is shown, as any option and what follows it may be a password. `name`: what the
    kernel calls the process, where it shows no command line.
    """
    if not arguments or not arguments[0]:
        return join_printable(name)
    words = [Path(arguments[0]).name or name]
    rest = list(arguments[1:3])
    if rest[:1] == ["-m"] and len(rest) > 1:
        words += rest
    elif rest and not rest[0].startswith("-"):
        words.append(_mask(rest[0]))
    text = hide_secrets(join_printable(" ".join(words)))
    return text if len(text) <= MAX_CHARACTERS else f"{text[:MAX_CHARACTERS]}..."


def _mask(argument: str) -> str:
    """Return an argument without credentials of a URL, without what stands behind `=`, and a path by its last part."""
    if "://" in argument:
        return re.sub(r"://.*", f"://{HIDDEN}", argument)
    key, equals, _ = argument.partition("=")
    return f"{key}={HIDDEN}" if equals else Path(argument).name or argument


def _read_busy_seconds(proc: Path) -> dict[int, float]:
    """Return the busy seconds of each CPU since the machine started."""
    try:
        lines = [line.split() for line in (proc / "stat").read_text().splitlines()]
    except OSError:
        return {}
    return {
        int(words[0][3:]): sum(int(words[1 + column]) for column in BUSY_COLUMNS) / TICKS_PER_SECOND
        for words in lines
        if words and words[0].startswith("cpu") and words[0][3:].isdigit()
    }


def _read_processes(proc: Path) -> Iterator[tuple[ProcessKey, ProcessTime]]:
    for stat in proc.glob("[0-9]*/stat"):
        try:
            head, _, tail = stat.read_text(errors="replace").rpartition(")")
        except OSError:  # ended meanwhile
            continue
        # proc(5): after the name come state, ppid and so on; the 12th to 15th are utime, stime, cutime and cstime, the
        # 20th is starttime.
        fields = tail.split()
        times = [int(field) / TICKS_PER_SECOND for field in fields[11:15]]
        yield (
            (int(stat.parent.name), int(fields[19])),
            ProcessTime(
                name=head.partition("(")[2],
                parent=int(fields[1]),
                seconds=times[0] + times[1],
                waited_seconds=times[2] + times[3],
            ),
        )


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
        if repeat.planned.cell.device == "cpu" and load.is_disturbing:
            self._say(
                f"others keep {load.busy_cores:.1f} of {load.num_cores} cores busy now ({load.describe_busiest()}): "
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
        load = None if self._before is None or after is None else compare_readings(self._before, after)
        self._say(
            f"{NUM_IN_A_ROW} repeats in a row were contaminated and do not count{_name_busiest(load)}. End what "
            "disturbs and let the run go on, or press Ctrl-C: what is finished is kept. This measures the contaminated "
            f"repeats again, when the machine is quiet:\n  {self._retry_command}"
        )


def _name_busiest(load: OtherLoad | None) -> str:
    """Return who kept the cores busy; nothing where nobody that is still there did enough to disturb a repeat."""
    if load is None or not load.busiest or not load.is_disturbing:
        return ""
    return f"; busiest beside the run: {load.describe_busiest()}"
