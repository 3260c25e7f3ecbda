"""Run the processes of one repeat's tenants at the same time, under one time limit and one memory limit."""

import os
import selectors
import subprocess
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

from bench.redaction import hide_secrets
from runner.local.memory import read_tree_bytes
from runner.local.process import (
    KILLED,
    PIPE_BYTES,
    POLL_SECONDS,
    TAIL_BYTES,
    TICK_SECONDS,
    How,
    ProcessEnd,
    count_oom_kills,
    end_group,
    has_ended,
    prefer_for_oom_kill,
    start_group,
)
from runner.signal_handlers import delay_interrupts

LAST_SECONDS = 10.0
"""How long the others may take to end after tenant 0 has: their records are gathered by then."""


@dataclass(kw_only=True)
class _Running:
    """One tenant's process, until its end is known."""

    process: "subprocess.Popen[bytes]"
    tail: bytearray = field(default_factory=bytearray)
    end: ProcessEnd | None = None

    def finish(self, how: How, *, oom_killed: bool = False) -> ProcessEnd:
        """Kill what is left of the process and its group, and return how it ended."""
        self.tail += end_group(self.process)
        self.end = ProcessEnd(
            returncode=self.process.returncode,
            timed_out=how == "timed-out",
            over_limit=how == "over-limit",
            oom_killed=oom_killed and self.process.returncode in KILLED,
            tail=hide_secrets(self.tail[-TAIL_BYTES:].decode(errors="replace")),
        )
        return self.end


def run_tenants(
    command: Sequence[str],
    *,
    variables: Sequence[Mapping[str, str]],
    timeout_seconds: float,
    on_tick: Callable[[], None],
    on_end: Callable[[int, ProcessEnd], None],
    keep_open: Sequence[int] = (),
    memory_limit_bytes: int | None = None,
) -> list[ProcessEnd]:
    """Run `command` once for each tenant, with its variables, until all have ended; return their ends in this order.

    Each is a process group of its own. `on_end` is called as soon as a process has ended, with the tenant's number:
    tenant 0's end gives the others LAST_SECONDS. All are killed when the time is up, when together they take more than
    `memory_limit_bytes`, or at an exception, which is passed on. Raise ProcessNotStarted if the command cannot be
    executed.
    """
    running: list[_Running] = []
    kills_before = count_oom_kills()
    try:
        with delay_interrupts():
            for own in variables:
                running.append(_Running(process=start_group(command, variables=own, keep_open=keep_open)))
        for tenant in running:
            prefer_for_oom_kill(tenant.process.pid)
        return _follow(
            running,
            deadline=time.monotonic() + timeout_seconds,
            memory_limit_bytes=memory_limit_bytes,
            on_tick=on_tick,
            on_end=on_end,
            kills_before=kills_before,
        )
    finally:
        for tenant in running:
            if tenant.end is None:
                tenant.finish("ended")


def _follow(
    running: Sequence[_Running],
    *,
    deadline: float,
    memory_limit_bytes: int | None,
    on_tick: Callable[[], None],
    on_end: Callable[[int, ProcessEnd], None],
    kills_before: int,
) -> list[ProcessEnd]:
    """Collect output until every process has ended or has to be killed."""
    next_tick = time.monotonic()
    with selectors.DefaultSelector() as selector:
        for tenant in running:
            assert tenant.process.stdout is not None
            selector.register(tenant.process.stdout, selectors.EVENT_READ, tenant)
        while any(tenant.end is None for tenant in running):
            now = time.monotonic()
            how = _find_reason(running, now, deadline, memory_limit_bytes)
            for number, tenant in enumerate(running):
                if tenant.end is None and (how != "ended" or has_ended(tenant.process)):
                    assert tenant.process.stdout is not None
                    _forget(selector, tenant)
                    on_end(number, tenant.finish(how, oom_killed=count_oom_kills() > kills_before))
                    deadline = min(deadline, time.monotonic() + LAST_SECONDS) if number == 0 else deadline
            if now >= next_tick:
                on_tick()
                next_tick = time.monotonic() + TICK_SECONDS
            _read_output(selector)
    return [tenant.end for tenant in running if tenant.end is not None]


def _find_reason(running: Sequence[_Running], now: float, deadline: float, memory_limit_bytes: int | None) -> How:
    """Return why all processes have to be killed now; `ended`: for no reason."""
    if now >= deadline:
        return "timed-out"
    if memory_limit_bytes is not None:
        taken = sum(read_tree_bytes(tenant.process.pid) for tenant in running if tenant.end is None)
        if taken > memory_limit_bytes:
            return "over-limit"
    return "ended"


def _read_output(selector: selectors.DefaultSelector) -> None:
    """Sleep until one of the processes says something, POLL_SECONDS at the most, and keep the end of what it says."""
    if not selector.get_map():
        time.sleep(POLL_SECONDS)
        return
    for key, _ in selector.select(POLL_SECONDS):
        tenant: _Running = key.data
        chunk = os.read(key.fd, PIPE_BYTES)
        tenant.tail += chunk
        del tenant.tail[:-TAIL_BYTES]
        if not chunk:
            selector.unregister(key.fileobj)


def _forget(selector: selectors.DefaultSelector, tenant: _Running) -> None:
    for key in list(selector.get_map().values()):
        if key.data is tenant:
            selector.unregister(key.fileobj)
