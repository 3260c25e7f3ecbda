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

TAIL_BYTES = 8_000
TICK_SECONDS = 1.0
# A process killed for want of memory dies before the kernel's counter is read again: no wait is needed.
OOM_COUNTERS = (
    Path("/proc/vmstat"),
    Path("/sys/fs/cgroup/memory.events"),
    Path("/sys/fs/cgroup/memory/memory.oom_control"),
)


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
    on_start: Callable[[int], None],
    on_tick: Callable[[], None],
    keep_open: Sequence[int] = (),
) -> ProcessEnd:
    """Run `command` in a process group of its own until it ends or its time is up, then kill what is left of the group.

    `on_start` is told the group, `on_tick` called about once a second, the file descriptors `keep_open` are inherited.
    An exception (Ctrl-C for one) kills the group at once and goes on. OSError where the command cannot be started.
    """
    kills_before = count_oom_kills()
    process = subprocess.Popen(
        command,
        env=dict(variables),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        start_new_session=True,
        pass_fds=keep_open,
    )
    tail = bytearray()
    try:
        on_start(process.pid)
        _prefer_for_oom_kill(process.pid)
        timed_out = _wait(process, tail, time.monotonic() + timeout_seconds, on_tick)
    finally:
        _kill_group(process)
    oom_killed = process.returncode == -signal.SIGKILL and not timed_out and count_oom_kills() > kills_before
    return ProcessEnd(
        returncode=process.returncode,
        timed_out=timed_out,
        oom_killed=oom_killed,
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


def _wait(process: "subprocess.Popen[bytes]", tail: bytearray, deadline: float, on_tick: Callable[[], None]) -> bool:
    """Collect output until the process ends (False) or the deadline passes (True). Sleeps between outputs."""
    assert process.stdout is not None
    os.set_blocking(process.stdout.fileno(), False)
    with selectors.DefaultSelector() as selector:
        selector.register(process.stdout, selectors.EVENT_READ)
        while process.poll() is None:
            if time.monotonic() >= deadline:
                return True
            on_tick()
            timeout = min(TICK_SECONDS, deadline - time.monotonic())
            if not selector.get_map():
                with suppress(subprocess.TimeoutExpired):
                    process.wait(max(0.0, timeout))
            elif selector.select(timeout) and not _read_output(process, tail):
                selector.unregister(process.stdout)
    _read_output(process, tail)
    return False


def _read_output(process: "subprocess.Popen[bytes]", tail: bytearray) -> bool:
    """Append what is there to the tail; False at the end of the stream."""
    assert process.stdout is not None
    while True:
        try:
            chunk = os.read(process.stdout.fileno(), 65_536)
        except BlockingIOError:
            return True
        if not chunk:
            return False
        tail += chunk
        del tail[:-TAIL_BYTES]


def _prefer_for_oom_kill(pid: int) -> None:
    """Have the kernel kill this process rather than the runner when memory runs out."""
    with suppress(OSError):
        Path(f"/proc/{pid}/oom_score_adj").write_text("1000")


def _kill_group(process: "subprocess.Popen[bytes]") -> None:
    with suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()
    if process.stdout is not None:
        process.stdout.close()
