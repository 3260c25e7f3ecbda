"""Run processes that may hang, crash or take too much memory, of one run at a time on this machine.

How they ended is reported, and all they started is killed. Every process that a run starts inherits the machine's lock
and a mark in its environment. So a second runner is refused, whoever started it; and what a killed runner left behind
(a process that loads data, a daemon of NVIDIA's MPS, which closes the lock that it was given) is killed before the next
run starts.
"""

import fcntl
import os
import select
import signal
import subprocess
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from bench.errors import UserError
from bench.redaction import hide_secrets
from runner.processes import delay_interrupts, explain_exhaustion, list_children, read_start

TAIL_BYTES = 8_000
PIPE_BYTES = 2**20  # more than a pipe holds
TICK_SECONDS = 1.0
POLL_SECONDS = 0.05
LAST_SECONDS = 10.0
"""How long the other tenants may take to end after tenant 0 has: their records are gathered by then."""
# A process killed for want of memory dies before the kernel's counter is read again: no wait is needed.
OOM_COUNTERS = (
    Path("/proc/vmstat"),
    Path("/sys/fs/cgroup/memory.events"),
    Path("/sys/fs/cgroup/memory/memory.oom_control"),
)
# Of the process itself, or of a shell whose child was killed.
KILLED = (-signal.SIGKILL, 128 + signal.SIGKILL)

How = Literal["ended", "timed-out", "over-limit", "oom-killed"]
"""Whether a process ended by itself, or what it was killed for: by this program or, out of memory, by the kernel."""


class ProcessNotStarted(Exception):  # noqa: N818  (one of the ways in which a process ends, not an error)
    """The command cannot be executed; the message says why."""


@dataclass(frozen=True, kw_only=True)
class ProcessEnd:
    """How a process ended. `returncode` is -N for signal N, as in `subprocess`; `tail`: of its stdout and stderr."""

    how: How
    returncode: int
    tail: str


@dataclass(kw_only=True)
class _Running:
    """One process, until its end is known."""

    process: "subprocess.Popen[bytes]"
    tail: bytes = b""
    is_silent: bool = False
    """Its output is closed."""
    end: ProcessEnd | None = None

    def finish(self, how: How, kills_before: int) -> ProcessEnd:
        tail = self.tail + end_group(self.process)
        code = self.process.returncode
        if how == "ended" and code in KILLED and count_oom_kills() > kills_before:
            how = "oom-killed"
        text = hide_secrets(tail[-TAIL_BYTES:].decode(errors="replace"))
        self.end = ProcessEnd(how=how, returncode=code, tail=text)
        return self.end


def run_processes(
    command: Sequence[str],
    *,
    variables: Sequence[Mapping[str, str]],
    timeout_seconds: float,
    on_tick: Callable[[], None],
    on_end: Callable[[int, ProcessEnd], None] = lambda number, end: None,
    keep_open: Sequence[int] = (),
    memory_limit_bytes: int | None = None,
) -> list[ProcessEnd]:
    """Run `command` once with each of the `variables` until all have ended; return their ends in this order.

    Each is a process group of its own, and what is left of it is killed at its end. `on_tick` is called about once a
    second, `on_end` as soon as a process has ended, with its number: the end of number 0 gives the others LAST_SECONDS.
    All are killed when the time is up, when together with their descendants they take more than `memory_limit_bytes`
    (checked every POLL_SECONDS), or at an exception such as Ctrl-C, which is passed on. They inherit the file
    descriptors `keep_open`. Raise ProcessNotStarted if the command cannot be executed.
    """
    running: list[_Running] = []
    kills_before = count_oom_kills()
    try:
        with delay_interrupts():
            for own in variables:
                running.append(_Running(process=start_group(command, variables=own, keep_open=keep_open)))
        for one in running:  # the kernel is to kill these rather than the runner when memory runs out
            # Unbuffered: of a process that has ended the write fails, and closing must not write once more.
            with suppress(OSError), Path(f"/proc/{one.process.pid}/oom_score_adj").open("wb", buffering=0) as file:
                file.write(b"1000")
        _follow(running, time.monotonic() + timeout_seconds, memory_limit_bytes, on_tick, on_end, kills_before)
    finally:
        for one in running:
            if one.end is None:
                one.finish("ended", kills_before)
    return [one.end for one in running if one.end is not None]


def _follow(
    running: Sequence[_Running],
    deadline: float,
    memory_limit_bytes: int | None,
    on_tick: Callable[[], None],
    on_end: Callable[[int, ProcessEnd], None],
    kills_before: int,
) -> None:
    next_tick = time.monotonic()
    while left := [one for one in running if one.end is None]:
        now = time.monotonic()
        how: How = "timed-out" if now >= deadline else "ended"
        if memory_limit_bytes and sum(read_tree_bytes(one.process.pid) for one in left) > memory_limit_bytes:
            how = "over-limit"
        for number, one in enumerate(running):
            if one.end is None and (how != "ended" or has_ended(one.process)):
                on_end(number, one.finish(how, kills_before))
                deadline = min(deadline, time.monotonic() + LAST_SECONDS) if number == 0 else deadline
        if now >= next_tick:
            on_tick()
            next_tick = time.monotonic() + TICK_SECONDS
        left = [one for one in left if one.end is None]
        speaking = {one.process.stdout.fileno(): one for one in left if one.process.stdout and not one.is_silent}
        # Once its output is closed, nothing says that a process has ended; nothing ever says that its memory grows.
        seconds = TICK_SECONDS if len(speaking) == len(left) and not memory_limit_bytes else POLL_SECONDS
        for output in select.select(speaking, (), (), max(0.0, min(seconds, deadline - now)) if left else 0)[0]:
            # Read once: in a loop, a process that prints faster than this reads would never be timed out.
            chunk = os.read(output, PIPE_BYTES)
            speaking[output].tail = (speaking[output].tail + chunk)[-TAIL_BYTES:]
            speaking[output].is_silent = not chunk


def start_group(
    command: Sequence[str], *, variables: Mapping[str, str] | None = None, keep_open: Sequence[int] = ()
) -> "subprocess.Popen[bytes]":
    """Start a process as leader of its own group, with one pipe for all output; raise ProcessNotStarted on failure.

    Where the machine gives no more files, memory or processes, the OSError is passed on.
    """
    try:
        return subprocess.Popen(
            command,
            env=variables,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            start_new_session=True,
            pass_fds=keep_open,
        )
    except OSError as error:
        if explain_exhaustion(error):  # no fault of the cell: its repeat gets no record
            raise
        raise ProcessNotStarted(str(error)) from error


def end_group(process: "subprocess.Popen[bytes]") -> bytes:
    """Kill the process, if it still runs, and its group; wait for its end and return output that was not read yet."""
    with suppress(ProcessLookupError):  # nobody has waited for the process yet, so its number is not another group's
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()
    assert process.stdout is not None
    with process.stdout as output, suppress(BlockingIOError):  # where a process outside the group holds it open
        os.set_blocking(output.fileno(), False)
        return os.read(output.fileno(), PIPE_BYTES)
    return b""


def has_ended(process: "subprocess.Popen[bytes]") -> bool:
    """Return whether the process has ended. It stays a zombie, which keeps its number until its group is killed."""
    return os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOHANG | os.WNOWAIT) is not None


def find_marked(variable: str) -> Iterator[int]:
    """Yield the other processes of this user that were started with `NAME=VALUE` in their environment."""
    for folder in Path("/proc").glob("[0-9]*"):
        with suppress(OSError):  # it has ended, or is another user's
            is_marked = os.fsencode(variable) in (folder / "environ").read_bytes().split(b"\0")
            if is_marked and int(folder.name) != os.getpid():
                yield int(folder.name)


def kill_marked(variable: str) -> None:
    for pid in find_marked(variable):
        with suppress(OSError):  # it has ended
            os.kill(pid, signal.SIGKILL)


def count_oom_kills() -> int:
    """Return how many processes the kernel's OOM killer has killed, summed over the counters that this system has."""
    count = 0
    for path in OOM_COUNTERS:
        with suppress(OSError):
            for line in path.read_text().splitlines():
                name, _, value = line.partition(" ")
                count += int(value) if name == "oom_kill" else 0
    return count


def read_tree_bytes(pid: int) -> int:
    """Return the bytes of memory and swap of a process and its descendants, without pages of files (libraries).

    A process that has ended counts 0. Memory that two of them share counts twice.
    """
    try:
        lines = Path(f"/proc/{pid}/status").read_text(errors="replace").split("\n")
    except (FileNotFoundError, ProcessLookupError):
        return 0
    status = dict(line.split(":", 1) for line in lines if ":" in line)
    own = sum(int(status[key].split()[0]) * 1024 for key in ("RssAnon", "RssShmem", "VmSwap") if key in status)
    return own + sum(map(read_tree_bytes, list_children(pid)))


LOCK_DIR = "BENCHMATRIX_LOCK_DIR"
"""Environment variable: the folder of the lock, if none of FOLDERS is right. All runners must have the same."""
FOLDERS = ("/run/lock", "/dev/shm", "/tmp")
"""The lock is in the first that every user can write to: the same for all users. In /dev/shm logind may remove what is
a user's when he logs out, while his run goes on (RemoveIPC)."""
LOCK_NAME = "benchmatrix.lock"
MARK = "BENCHMATRIX_RUNNER"
"""Environment variable of the processes of a runner: its `PID:START`, the start in clock ticks after boot."""
# How long a killed runner's last process may take to die before the machine counts as busy.
GRACE_SECONDS = 10.0


@contextmanager
def hold_host_lock(run_id: str) -> Iterator[int]:
    """Hold the lock of this machine; yield the file descriptor that every process started meanwhile has to inherit.

    UserError if another run measures here. The mark is in the environment.
    """
    path = find_lock_path()
    descriptor = _open_lock(path)
    mark = f"{os.getpid()}:{read_start(os.getpid())}"
    try:
        _acquire(descriptor, path)
        os.ftruncate(descriptor, 0)
        os.pwrite(descriptor, f"{run_id} {mark}".encode(), 0)
        os.environ[MARK] = mark
        try:
            yield descriptor
        finally:
            os.ftruncate(descriptor, 0)
            os.environ.pop(MARK, None)
    finally:
        os.close(descriptor)


def find_measured_run() -> str | None:
    """Return the id of the run that measures on this machine now; None if none does.

    The lock is only looked at: if it were taken, a runner that starts meanwhile would be refused.
    """
    with suppress(OSError, UserError):
        run_id, mark = _parse_note(find_lock_path().read_bytes())
        return run_id if _is_runner_alive(mark) else None
    return None


def find_lock_path() -> Path:
    given = os.environ.get(LOCK_DIR)
    shared = (folder for folder in FOLDERS if os.path.isdir(folder) and os.stat(folder).st_mode & 0o1777 == 0o1777)
    folder = Path(given or next(shared, FOLDERS[-1]))
    if not folder.is_dir():
        raise UserError(f"{folder}: there is no such folder for the lock; name one that all can write to in {LOCK_DIR}")
    return folder / LOCK_NAME


def _open_lock(path: Path) -> int:
    """Open the lock file, created if absent; raise UserError if it is anything else, such as a link."""
    flags = os.O_RDWR | os.O_NOFOLLOW | os.O_CLOEXEC | os.O_NONBLOCK
    try:
        # Without O_CREAT first: the kernel refuses that for another user's file (fs.protected_regular).
        with suppress(FileNotFoundError):
            return os.open(path, flags)
        descriptor = os.open(path, flags | os.O_CREAT, 0o600)
        with suppress(PermissionError):  # another user's runner has made it meanwhile
            os.fchmod(descriptor, 0o666)  # for every user, whatever the umask
        return descriptor
    except OSError as error:
        hint = f"remove it, or name another folder in {LOCK_DIR}"
        raise UserError(f"{path}: this cannot be used as a lock ({error.strerror}); {hint}") from error


def _acquire(descriptor: int, path: Path) -> None:
    """Take the lock, and kill what the run that had it before left."""
    deadline = time.monotonic() + GRACE_SECONDS
    while True:
        run_id, mark = _parse_note(os.pread(descriptor, 200, 0))
        is_measured = _is_runner_alive(mark)
        if mark and not is_measured:
            kill_marked(f"{MARK}={mark}")
        try:
            return fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            if is_measured:
                raise UserError(
                    f"{path}: run {run_id} measures on this machine (process {mark.partition(':')[0]}), and two at "
                    "once would falsify both; wait for it or stop it"
                ) from None
            if time.monotonic() > deadline:
                # Another user's or another container's, or of a script that waits for a quiet machine.
                last = f", last taken by run {run_id}" if run_id else ""
                raise UserError(f"{path}: another process holds this lock{last}; wait for it or stop it") from None
            time.sleep(POLL_SECONDS)


def _parse_note(note: bytes) -> tuple[str, str]:
    """Return the run and its runner's mark; empty where its runner has ended in order."""
    run_id, _, mark = note.decode(errors="replace").partition(" ")
    return run_id, mark


def _is_runner_alive(mark: str) -> bool:
    pid, _, start = mark.partition(":")
    return pid.isdecimal() and read_start(int(pid)) == start
