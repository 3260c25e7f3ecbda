"""Processes started through runner.local.process, for its tests, and the ends of what they started."""

import os
import time
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace

import pytest

from fake_interpreters import await_end
from runner.local.process import ProcessEnd, run_processes
from workspace import HANG_GUARD_SECONDS


def run_shell(script: str, *, memory_limit_bytes: int | None = None) -> ProcessEnd:
    return run_processes(
        ["/bin/sh", "-c", script],
        variables=[os.environ],
        timeout_seconds=HANG_GUARD_SECONDS,
        on_tick=lambda: None,
        memory_limit_bytes=memory_limit_bytes,
    )[0]


def end_time_when(is_ready: Callable[[], bool], monkeypatch: pytest.MonkeyPatch, module: str) -> None:
    """Have the time that processes have been given end as soon as `is_ready`, by the clock of `module`.

    A limit in seconds would be too short for what a process has to do before it, on a machine that is busy enough.
    """
    skipped_seconds = 0.0

    def read_clock() -> float:
        nonlocal skipped_seconds
        if is_ready():  # more with each look: the process may be ready before its time begins
            skipped_seconds += 2 * HANG_GUARD_SECONDS
        return time.monotonic() + skipped_seconds

    monkeypatch.setattr(f"{module}.time", SimpleNamespace(monotonic=read_clock, sleep=time.sleep))


def read_pids(file: Path) -> list[int]:
    """Return the process ids that a script has written into a file."""
    return [int(word) for word in file.read_text().split()]


def await_death(pids: list[int]) -> None:
    """Return when all are dead: the kernel needs a moment for each after the signal."""
    for pid in pids:
        await_end(pid)
