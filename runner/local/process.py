"""Run a process that may hang, crash or take too much memory; report how it ended, and kill everything it started."""

import os
import selectors
import signal
import subprocess
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from bench.redaction import hide_secrets
from runner.exhaustion import explain_exhaustion
from runner.local.memory import read_tree_bytes
from runner.signal_handlers import delay_interrupts

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
# Of the process itself, or of a shell whose child was killed.
KILLED = (-signal.SIGKILL, 128 + signal.SIGKILL)


How = Literal["ended", "timed-out", "over-limit"]
"""Whether a process ended by itself, or why it has to be killed."""


class ProcessNotStarted(Exception):  # noqa: N818  (one of the ways in which a process ends, not an error)
    """The command cannot be executed; the message says why."""


@dataclass(frozen=True, kw_only=True)
class ProcessEnd:
    """How a process ended. `returncode` is -N for signal N, as in `subprocess`."""

    returncode: int
    timed_out: bool
    over_limit: bool
    """Killed because it took more memory than it was allowed to."""
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
    memory_limit_bytes: int | None = None,
) -> ProcessEnd:
    """Run `command` in a process group of its own until it ends or its time is up, then kill what is left of the group.

    `on_tick` is called about once a second; the file descriptors `keep_open` are inherited. A process that takes more
    than `memory_limit_bytes`, together with its descendants, is killed; this is checked every POLL_SECONDS. An
    exception (such as Ctrl-C) kills the group at once and is passed on. Raise ProcessNotStarted if the command cannot
    be executed.
    """
    kills_before = count_oom_kills()
    tail = bytearray()
    process = None
    try:
        with delay_interrupts():
            process = start_group(command, variables=variables, keep_open=keep_open)
        prefer_for_oom_kill(process.pid)
        deadline = time.monotonic() + timeout_seconds
        how = _wait(process, tail, deadline=deadline, memory_limit_bytes=memory_limit_bytes, on_tick=on_tick)
    finally:
        if process is not None:
            tail += end_group(process)
    return ProcessEnd(
        returncode=process.returncode,
        timed_out=how == "timed-out",
        over_limit=how == "over-limit",
        oom_killed=process.returncode in KILLED and how == "ended" and count_oom_kills() > kills_before,
        tail=hide_secrets(tail[-TAIL_BYTES:].decode(errors="replace")),
    )


def count_oom_kills() -> int:
    """Return how many processes the kernel's OOM killer has killed, summed over the counters that this system has."""
    count = 0
    for path in OOM_COUNTERS:
        with suppress(OSError):
            for line in path.read_text().splitlines():
                name, _, value = line.partition(" ")
                count += int(value) if name == "oom_kill" else 0
    return count


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
    kill_group(process)  # nobody has waited for the process yet, so its number cannot be another group's
    process.wait()
    assert process.stdout is not None
    with process.stdout as output, suppress(BlockingIOError):  # where a process outside the group holds it open
        os.set_blocking(output.fileno(), False)
        return os.read(output.fileno(), PIPE_BYTES)
    return b""


def kill_group(process: "subprocess.Popen[bytes]") -> None:
    """Kill what is left of the group of a process that nobody has waited for."""
    with suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)


def has_ended(process: "subprocess.Popen[bytes]") -> bool:
    """Return whether the process has ended. It stays a zombie, which keeps its number until its group is killed."""
    return os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOHANG | os.WNOWAIT) is not None


def _wait(
    process: "subprocess.Popen[bytes]",
    tail: bytearray,
    *,
    deadline: float,
    memory_limit_bytes: int | None,
    on_tick: Callable[[], None],
) -> How:
    """Collect output until the process ends, the deadline passes or it takes too much memory; sleep between outputs."""
    assert process.stdout is not None
    output = process.stdout.fileno()
    next_tick = time.monotonic()
    with selectors.DefaultSelector() as selector:
        selector.register(output, selectors.EVENT_READ)
        while not has_ended(process):
            now = time.monotonic()
            if now >= deadline:
                return "timed-out"
            if memory_limit_bytes is not None and read_tree_bytes(process.pid) > memory_limit_bytes:
                return "over-limit"
            if now >= next_tick:
                on_tick()
                next_tick = time.monotonic() + TICK_SECONDS
            # Once its output is closed, no event says that the process has ended; none ever says that its memory grows.
            is_woken = selector.get_map() and memory_limit_bytes is None
            if selector.select(min(TICK_SECONDS if is_woken else POLL_SECONDS, deadline - now)):
                # Read once: in a loop, a process that prints faster than this reads would never be timed out.
                chunk = os.read(output, PIPE_BYTES)
                tail += chunk
                del tail[:-TAIL_BYTES]
                if not chunk:
                    selector.unregister(output)
    return "ended"


def prefer_for_oom_kill(pid: int) -> None:
    """Make the kernel kill this process rather than the runner when memory runs out."""
    with suppress(OSError):
        Path(f"/proc/{pid}/oom_score_adj").write_text("1000")
