"""runner.local.process: processes that run out of memory, by the kernel's word or by their limit."""

import shlex
import sys
from pathlib import Path

import pytest

from local_processes import await_death, read_pids, run_shell
from memory_cgroup import MemoryCgroup
from runner.local import process
from runner.local.process import count_oom_kills


@pytest.mark.parametrize(
    ("contents", "expected"),
    [
        (["pgfault 12\noom_kill 4\nkswapd_inodesteal 0\n"], 4),  # /proc/vmstat
        (["low 0\nhigh 9\nmax 12\noom 3\noom_kill 2\noom_group_kill 8\n"], 2),  # version 2: memory.events
        (["oom_kill_disable 0\nunder_oom 0\noom_kill 3\n"], 3),  # version 1: memory.oom_control
        (["oom_kill 4\n", "oom_kill 2\n", "oom_kill_disable 1\noom_kill 3\n"], 9),
        (["pgfault 12\n", "oom_kill_disable 0\nunder_oom 0\n"], 0),  # old kernels count nothing
        ([], 0),
    ],
)
def test_kills_for_memory_are_counted_wherever_the_kernel_writes_them(
    contents: list[str], expected: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    paths = tuple(tmp_path / str(number) for number in range(3))
    for path, content in zip(paths, contents, strict=False):
        path.write_text(content)
    monkeypatch.setattr(process, "OOM_COUNTERS", paths)

    assert count_oom_kills() == expected


def test_this_kernel_counts_kills_for_memory() -> None:
    assert any(path.exists() for path in process.OOM_COUNTERS)


@pytest.mark.parametrize(("before", "after", "code"), [("exec", "", -9), ("", "; exit $?", 137)])
def test_a_process_killed_for_memory_is_told_from_a_killed_one(
    before: str, after: str, code: int, memory_cgroup: MemoryCgroup
) -> None:
    program = "print('filling', flush=True); full = b'x' * 2**30"

    end = run_shell(f'{memory_cgroup.join_command}; {before} {sys.executable} -S -c "{program}"{after}')

    assert (end.returncode, end.oom_killed) == (code, True)
    assert end.tail.startswith("filling\n")


def test_a_process_killed_by_somebody_in_the_same_cgroup_is_not_out_of_memory(
    memory_cgroup: MemoryCgroup, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Not the counter of the whole machine, where other tests run out of memory at the same time.
    counters = tuple(memory_cgroup.path / name for name in ("memory.events", "memory.oom_control"))
    monkeypatch.setattr(process, "OOM_COUNTERS", counters)
    assert any(path.exists() for path in counters)
    end = run_shell(f"{memory_cgroup.join_command}; kill -9 $$")

    assert (end.returncode, end.oom_killed) == (-9, False)


def test_a_process_that_takes_more_memory_than_it_may_is_killed(tmp_path: Path) -> None:
    """Counted with what it has started: the shell itself takes next to nothing."""
    fill = (
        f"import os, time; full = b'x' * 2**28; open('{tmp_path}/pid', 'w').write(str(os.getpid())); time.sleep(1000)"
    )
    script = f"{sys.executable} -S -c {shlex.quote(fill)}"

    end = run_shell(script, memory_limit_bytes=2**27)

    assert (end.over_limit, end.timed_out, end.oom_killed) == (True, False, False)
    if (tmp_path / "pid").exists():
        await_death(read_pids(tmp_path / "pid"))


def test_a_process_within_its_memory_limit_ends_as_it_likes() -> None:
    end = run_shell("echo well; exit 3", memory_limit_bytes=2**27)

    assert (end.returncode, end.over_limit, end.tail) == (3, False, "well\n")
