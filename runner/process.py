"""One measuring process: a command in, how it ended and what it last printed out. Kills all that it started."""

import os
import selectors
import signal
import subprocess
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import IO

TAIL_BYTES = 8_000
PIPE_BYTES = 2**20  # more than a pipe holds
TICK_SECONDS = 1.0
POLL_SECONDS = 0.05
# A process killed for want of memory dies before the kernel's counter is read again: no wait is needed.
OOM_COUNTERS = (
    Path("/proc/vmstat"),
    Path("/sys/fs/cgroup/memory.events"),
    Path("/sys/fs/cgroup/memory/memory.oom_control"),
)
# By itself, or as the exit code of a shell that had started what was killed.
KILLED = (-signal.SIGKILL, 128 + signal.SIGKILL)


class ProcessNotStarted(Exception):  # noqa: N818  (an end of the process like the others, not a fault)
    """The command cannot be executed; the message says why."""


@dataclass(frozen=True, kw_only=True)
class ProcessEnd:
    """How a process ended. `returncode` is -N for signal N, as in `subprocess`."""

    returncode: int
    timed_out: bool
    oom_killed: bool
    tail: str
    """The end of its stdout and stderr."""


def run_process(
    command: Sequence[str],
    *,
    variables: Mapping[str, str],
    timeout_seconds: float,
    on_tick: Callable[[], None],
    keep_open: Sequence[int] = (),
) -> ProcessEnd:
    """Run `command` in a process group of its own until it ends or its time is up, then kill what is left of the group.

    `on_tick` is called about once a second, the file descriptors `keep_open` are inherited. An exception (Ctrl-C for
    one) kills the group at once and goes on. ProcessNotStarted where the command cannot be executed.
    """
    kills_before = count_oom_kills()
    process = _start(command, variables, keep_open)
    assert process.stdout is not None
    tail = bytearray()
    with process.stdout:
        try:
            _prefer_for_oom_kill(process.pid)
            timed_out = _wait(process, tail, time.monotonic() + timeout_seconds, on_tick)
        finally:
            kill_group(process)
        _read_output(process.stdout, tail)
    return ProcessEnd(
        returncode=process.returncode,
        timed_out=timed_out,
        oom_killed=process.returncode in KILLED and not timed_out and count_oom_kills() > kills_before,
        tail=tail.decode(errors="replace"),
    )


def count_oom_kills() -> int:
    """Return how often the kernel's OOM killer has struck here, summed over the counters that this system has."""
    count = 0
    for path in OOM_COUNTERS:
        with suppress(OSError):
            for line in path.read_text().splitlines():
                name, _, value = line.partition(" ")
                count += int(value) if name == "oom_kill" else 0
    return count


def kill_group(process: "subprocess.Popen[bytes]") -> None:
    """Kill the process, if it still runs, and all of its group, and return when it is dead."""
    # Nobody has waited for the process yet, so its number cannot be another group's.
    with suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()


def _start(command: Sequence[str], variables: Mapping[str, str], keep_open: Sequence[int]) -> "subprocess.Popen[bytes]":
    try:
        return subprocess.Popen(
            command,
            env=dict(variables),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            start_new_session=True,
            pass_fds=keep_open,
        )
    except OSError as error:
        raise ProcessNotStarted(str(error)) from error


def _wait(process: "subprocess.Popen[bytes]", tail: bytearray, deadline: float, on_tick: Callable[[], None]) -> bool:
    """Collect output until the process ends (False) or the deadline passes (True). Sleeps between outputs."""
    assert process.stdout is not None
    os.set_blocking(process.stdout.fileno(), False)
    next_tick = time.monotonic()
    with selectors.DefaultSelector() as selector:
        selector.register(process.stdout, selectors.EVENT_READ)
        while not _has_ended(process):
            now = time.monotonic()
            if now >= deadline:
                return True
            if now >= next_tick:
                on_tick()
                next_tick = now + TICK_SECONDS
            pause = TICK_SECONDS if selector.get_map() else POLL_SECONDS  # only the end of its output wakes us
            if selector.select(min(pause, deadline - now)) and not _read_output(process.stdout, tail):
                selector.unregister(process.stdout)
    return False


def _has_ended(process: "subprocess.Popen[bytes]") -> bool:
    """Whether the process has ended. It is left as a zombie: its number stays taken until its group is killed."""
    return os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOHANG | os.WNOWAIT) is not None


def _read_output(output: IO[bytes], tail: bytearray) -> bool:
    """Append what is there to the tail; False at the end of the stream.

    Reads once: with a process that prints faster than this reads, it would never get out of a loop.
    """
    try:
        chunk = os.read(output.fileno(), PIPE_BYTES)
    except BlockingIOError:
        return True
    tail += chunk
    del tail[:-TAIL_BYTES]
    return bool(chunk)


def _prefer_for_oom_kill(pid: int) -> None:
    """Have the kernel kill this process rather than the runner when memory runs out."""
    with suppress(OSError):
        Path(f"/proc/{pid}/oom_score_adj").write_text("1000")
