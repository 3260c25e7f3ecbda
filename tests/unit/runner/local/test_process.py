"""runner.local.process: how processes end, alone or as tenants, what memory they take, and that nothing is left."""

import os
import random
import shlex
import signal
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from types import FrameType

import pytest

from local_processes import await_death, end_time_when, read_pids, run_shell
from memory_cgroup import MemoryCgroup
from runner.local import process
from runner.local.process import ProcessEnd, count_oom_kills, run_processes
from runner.local.run import explain_end
from runner.processes import list_children
from workspace import HANG_GUARD_SECONDS


@pytest.fixture
def alarm() -> Iterator[Callable[[float], None]]:
    """Sends SIGINT to this process after so many seconds, wherever the program is then."""

    def interrupt(number: int, frame: FrameType | None) -> None:
        signal.raise_signal(signal.SIGINT)

    previous = signal.signal(signal.SIGALRM, interrupt)
    yield lambda seconds: signal.setitimer(signal.ITIMER_REAL, seconds) and None
    signal.setitimer(signal.ITIMER_REAL, 0)
    signal.signal(signal.SIGALRM, previous)


def test_children_that_outlive_their_parent_are_killed(tmp_path: Path) -> None:
    end = run_shell(f"sleep 1000 & echo $! > {tmp_path}/pids; exit 4")

    assert end.returncode == 4
    await_death(read_pids(tmp_path / "pids"))


@pytest.mark.parametrize("seed", range(3))
def test_an_interrupt_at_any_moment_kills_the_group(seed: int, tmp_path: Path, alarm: Callable[[float], None]) -> None:
    pids, children = tmp_path / "pids", list_children()

    def run() -> None:
        alarm(random.Random(seed).uniform(0.05, 0.3))
        run_shell(f"sleep 1000 & echo $$ $! > {pids}; while :; do echo x; sleep 0.001; done")

    with pytest.raises(KeyboardInterrupt):
        run()

    assert list_children() - children == set()
    await_death(read_pids(pids) if pids.exists() else [])


def test_credentials_that_a_program_prints_are_not_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "hunter2-here")
    tail = run_shell("env; exit 3").tail
    assert "AWS_SECRET_ACCESS_KEY=(hidden)" in tail
    assert "hunter2" not in tail


TENANT = "TENANT"
FOREVER = "sleep 1000 & echo $! $$ >> {pids}; wait"


def run_each(script: str) -> list[tuple[int, ProcessEnd]]:
    """Run a shell script for each of three tenants, whose number is in its environment; return the ends as told."""
    ended: list[tuple[int, ProcessEnd]] = []
    ends = run_processes(
        ["/bin/sh", "-c", script],
        variables=[{**os.environ, TENANT: str(tenant)} for tenant in range(3)],
        on_end=lambda tenant, end: ended.append((tenant, end)),
        timeout_seconds=HANG_GUARD_SECONDS,
        on_tick=lambda: None,
    )
    assert [end for _, end in sorted(ended, key=lambda item: item[0])] == ends
    return ended


def test_all_are_killed_with_all_they_started_when_the_time_is_up(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pids = tmp_path / "pids"
    end_time_when(lambda: pids.exists() and len(read_pids(pids)) == 6, monkeypatch, "runner.local.process")
    ended = run_each(f"trap '' TERM; echo stuck; {FOREVER.format(pids=pids)}")
    assert [(tenant, end.how, end.returncode) for tenant, end in ended] == [(n, "timed-out", -9) for n in range(3)]
    assert {end.tail for _, end in ended} == {"stuck\n"}
    status, error = explain_end(ended[0][1], 60.0)
    assert (status, error.kind, error.signal) == ("timeout", "timeout", "SIGKILL")
    assert error.message == "still running after timeout_seconds = 60; killed with all it had started"
    assert len(read_pids(pids)) == 6
    await_death(read_pids(pids))


def test_the_others_may_not_outlive_tenant_0_for_long(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("runner.local.process.LAST_SECONDS", 0.1)
    pids = tmp_path / "pids"
    wait = f'until [ "$(cat {pids} | wc -l)" = 2 ]; do sleep 0.01; done'
    ended = run_each(f"[ ${TENANT} = 0 ] && {{ {wait}; exit 0; }} 2> /dev/null; {FOREVER.format(pids=pids)}")
    assert [(tenant, end.returncode) for tenant, end in ended] == [(0, 0), (1, -9), (2, -9)]
    await_death(read_pids(pids))


def test_kills_for_memory_are_counted_wherever_the_kernel_writes_them(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In /proc/vmstat, in memory.events of version 2, in memory.oom_control of version 1; old kernels count nothing."""
    paths = tuple(tmp_path / str(number) for number in range(4))
    monkeypatch.setattr(process, "OOM_COUNTERS", paths)
    assert count_oom_kills() == 0
    paths[0].write_text("pgfault 12\noom_kill 4\nkswapd_inodesteal 0\n")
    paths[1].write_text("low 0\nhigh 9\nmax 12\noom 3\noom_kill 2\noom_group_kill 8\n")
    paths[2].write_text("oom_kill_disable 0\nunder_oom 0\noom_kill 3\n")
    paths[3].write_text("oom_kill_disable 0\nunder_oom 0\n")
    assert count_oom_kills() == 9


def test_a_process_killed_by_somebody_in_the_same_cgroup_is_not_out_of_memory(
    memory_cgroup: MemoryCgroup, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Not the counter of the whole machine, where other tests run out of memory at the same time.
    counters = tuple(memory_cgroup.path / name for name in ("memory.events", "memory.oom_control"))
    monkeypatch.setattr(process, "OOM_COUNTERS", counters)
    assert any(path.exists() for path in counters)
    end = run_shell(f"{memory_cgroup.join_command}; kill -9 $$")

    assert (end.returncode, end.how) == (-9, "ended")


def test_a_process_that_takes_more_memory_than_it_may_is_killed(tmp_path: Path) -> None:
    """Counted with what it has started: the shell itself takes next to nothing."""
    fill = (
        f"import os, time; full = b'x' * 2**28; open('{tmp_path}/pid', 'w').write(str(os.getpid())); time.sleep(1000)"
    )
    script = f"{sys.executable} -S -c {shlex.quote(fill)}"

    end = run_shell(script, memory_limit_bytes=2**27)

    assert end.how == "over-limit"
    if (tmp_path / "pid").exists():
        await_death(read_pids(tmp_path / "pid"))
