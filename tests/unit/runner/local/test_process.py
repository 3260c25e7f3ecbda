"""runner.local.process: how processes end, alone or as tenants, what memory they take, and that nothing is left."""

import os
import random
import shlex
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from types import FrameType
from typing import Any

import pytest

from local_processes import await_death, end_time_when, read_pids, run_command, run_shell
from memory_cgroup import MemoryCgroup
from runner.local import process
from runner.local.process import (
    ProcessEnd,
    ProcessNotStarted,
    count_oom_kills,
    read_available_bytes,
    read_tree_bytes,
    run_processes,
)
from workspace import HANG_GUARD_SECONDS


@pytest.fixture
def no_kills_for_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    """Have the kernel count none: it counts those of the whole machine, where other tests provoke some."""
    monkeypatch.setattr(process, "OOM_COUNTERS", ())


@pytest.fixture
def alarm() -> Iterator[Callable[[float], None]]:
    """Sends SIGINT to this process after so many seconds, wherever the program is then."""

    def interrupt(number: int, frame: FrameType | None) -> None:
        signal.raise_signal(signal.SIGINT)

    previous = signal.signal(signal.SIGALRM, interrupt)
    yield lambda seconds: signal.setitimer(signal.ITIMER_REAL, seconds) and None
    signal.setitimer(signal.ITIMER_REAL, 0)
    signal.signal(signal.SIGALRM, previous)


@pytest.mark.usefixtures("no_kills_for_memory")
def test_an_exit_code_and_both_streams_come_back() -> None:
    end = run_shell("echo to stdout; echo to stderr >&2; exit 7")

    assert (
        ProcessEnd(returncode=7, timed_out=False, over_limit=False, oom_killed=False, tail="to stdout\nto stderr\n")
        == end
    )


@pytest.mark.usefixtures("no_kills_for_memory")
@pytest.mark.parametrize("number", [signal.SIGSEGV, signal.SIGABRT, signal.SIGKILL, signal.SIGRTMIN + 3])
def test_a_signal_comes_back_as_a_negative_code(number: int) -> None:
    end = run_shell(f"kill -{int(number)} $$")

    assert (end.returncode, end.timed_out, end.oom_killed) == (-number, False, False)


@pytest.mark.usefixtures("no_kills_for_memory")
def test_of_much_output_the_very_end_is_kept() -> None:
    program = "import os\nfor n in range(300_000): print(n)\nprint('last words', flush=True)\nos.abort()"

    end = run_command(sys.executable, "-c", program)

    assert end.returncode == -signal.SIGABRT
    assert len(end.tail) == process.TAIL_BYTES
    assert end.tail.endswith("299998\n299999\nlast words\n")


@pytest.mark.usefixtures("no_kills_for_memory")
def test_a_process_that_hangs_is_killed_with_all_its_children(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pids = tmp_path / "pids"
    end_time_when(lambda: pids.exists() and len(read_pids(pids)) == 4, monkeypatch, "runner.local.process")
    script = f"trap '' TERM INT HUP\nsleep 1000 & echo $! >> {pids}\n(sleep 1000 & echo $! >> {pids}; wait) &\n"
    script += f"echo still here\necho $$ $! >> {pids}\nwhile true; do sleep 1000; done"

    end = run_shell(script)

    assert (end.returncode, end.timed_out, end.oom_killed, end.tail) == (-signal.SIGKILL, True, False, "still here\n")
    assert len(read_pids(pids)) == 4
    await_death(read_pids(pids))


@pytest.mark.usefixtures("no_kills_for_memory")
def test_children_that_outlive_their_parent_are_killed(tmp_path: Path) -> None:
    end = run_shell(f"sleep 1000 & echo $! > {tmp_path}/pids; exit 4")

    assert end.returncode == 4
    await_death(read_pids(tmp_path / "pids"))


def list_children() -> set[str]:
    found: set[str] = set()
    for file in Path("/proc/self/task").glob("*/children"):
        with suppress(OSError):  # the thread has ended meanwhile
            found.update(file.read_text().split())
    return found


@pytest.mark.parametrize("content", [None, "#!/no/such/interpreter\n", "not a program"])
def test_what_cannot_be_executed_is_told_apart(tmp_path: Path, content: str | None) -> None:
    path = tmp_path / "program"
    if content:
        path.write_text(content)
        path.chmod(0o755)

    with pytest.raises(ProcessNotStarted, match=r"No such file|Exec format error"):
        run_command(str(path))


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


def run_each(script: str, number: int = 3, **options: Any) -> list[tuple[int, ProcessEnd]]:
    """Run a shell script for each tenant, whose number is in its environment; return the ends in their order."""
    ended: list[tuple[int, ProcessEnd]] = []
    given: dict[str, Any] = {"timeout_seconds": HANG_GUARD_SECONDS, "on_tick": lambda: None}
    ends = run_processes(
        ["/bin/sh", "-c", script],
        variables=[{**os.environ, TENANT: str(tenant)} for tenant in range(number)],
        on_end=lambda tenant, end: ended.append((tenant, end)),
        **(given | options),
    )
    assert [end for _, end in sorted(ended, key=lambda item: item[0])] == ends
    return ended


def test_every_tenant_has_its_own_variables_and_its_own_last_words() -> None:
    ended = run_each(f"echo I am ${TENANT}; exit ${TENANT}")
    assert {(tenant, end.returncode, end.tail) for tenant, end in ended} == {
        (0, 0, "I am 0\n"),
        (1, 1, "I am 1\n"),
        (2, 2, "I am 2\n"),
    }


def test_a_tenants_end_is_told_while_the_others_run(tmp_path: Path) -> None:
    told = tmp_path / "told"
    script = f"[ ${TENANT} = 2 ] && kill -9 $$; while [ ! -e {told} ]; do sleep 0.01; done"
    ended: list[int] = []

    def tell(tenant: int, end: ProcessEnd) -> None:
        ended.append(end.returncode)
        told.touch()

    run_processes(
        ["/bin/sh", "-c", script],
        variables=[{**os.environ, TENANT: str(tenant)} for tenant in range(3)],
        timeout_seconds=HANG_GUARD_SECONDS,
        on_tick=lambda: None,
        on_end=tell,
    )
    assert ended == [-9, 0, 0]


def test_all_are_killed_with_all_they_started_when_the_time_is_up(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pids = tmp_path / "pids"
    end_time_when(lambda: pids.exists() and len(read_pids(pids)) == 6, monkeypatch, "runner.local.process")
    ended = run_each(FOREVER.format(pids=pids))
    assert [(tenant, end.timed_out, end.returncode) for tenant, end in ended] == [(n, True, -9) for n in range(3)]
    assert len(read_pids(pids)) == 6
    await_death(read_pids(pids))


def test_the_others_may_not_outlive_tenant_0_for_long(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("runner.local.process.LAST_SECONDS", 0.1)
    pids = tmp_path / "pids"
    wait = f'until [ "$(cat {pids} | wc -l)" = 2 ]; do sleep 0.01; done'
    ended = run_each(f"[ ${TENANT} = 0 ] && {{ {wait}; exit 0; }} 2> /dev/null; {FOREVER.format(pids=pids)}")
    assert [(tenant, end.returncode) for tenant, end in ended] == [(0, 0), (1, -9), (2, -9)]
    await_death(read_pids(pids))


def test_one_limit_holds_for_the_memory_of_all_together() -> None:
    # Each takes about 150 MB, so that two of them are below the limit and three are not.
    take = "exec python3 -c \"import time; kept = bytearray(150_000_000); kept[::4096] = b'x' * len(kept[::4096]); "
    ended = run_each(take + 'time.sleep(1000)"', memory_limit_bytes=400_000_000)
    assert [end.over_limit for _, end in ended] == [True] * 3


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


GIB = 2**30


def write_files(root: Path, files: dict[str, str]) -> Path:
    for name, text in files.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return root


def make_root(root: Path, cgroup: str) -> Path:
    meminfo = "MemTotal:       16777216 kB\nMemFree:         1048576 kB\nMemAvailable:    8388608 kB\n"  # 8 GiB
    return write_files(root, {"proc/meminfo": meminfo, "proc/self/cgroup": cgroup})


def write_cgroup(folder: Path, version: int, limit: str, used: int, reclaimable: int) -> None:
    if version == 2:
        names = ("memory.max", "memory.current", f"anon 1\ninactive_file {reclaimable}\nactive_file 7\n")
    else:
        statistics = f"inactive_file 1\ntotal_inactive_file {reclaimable}\n"
        names = ("memory.limit_in_bytes", "memory.usage_in_bytes", statistics)
    write_files(folder, {names[0]: f"{limit}\n", names[1]: f"{used}\n", "memory.stat": names[2]})


def test_without_a_limit_all_that_the_machine_has_can_be_taken(tmp_path: Path) -> None:
    root = make_root(tmp_path, "0::/user.slice\n")
    write_cgroup(root / "sys/fs/cgroup/user.slice", 2, "max", GIB, 0)
    assert read_available_bytes(root) == 8 * GIB


@pytest.mark.parametrize(("version", "line"), [(2, "0::/pod/box\n"), (1, "5:cpu:/x\n4:memory:/pod/box\n0::/y\n")])
def test_the_room_below_the_limit_of_the_cgroup_counts(version: int, line: str, tmp_path: Path) -> None:
    root = make_root(tmp_path, line)
    top = root / "sys/fs/cgroup" if version == 2 else root / "sys/fs/cgroup/memory"
    write_cgroup(top / "pod/box", version, str(6 * GIB), 3 * GIB, GIB)
    assert read_available_bytes(root) == 4 * GIB  # 6 - 3, and 1 that the kernel can take back


def test_the_tightest_cgroup_around_the_process_counts(tmp_path: Path) -> None:
    root = make_root(tmp_path, "0::/pod/box\n")
    write_cgroup(root / "sys/fs/cgroup/pod/box", 2, str(6 * GIB), GIB, 0)
    write_cgroup(root / "sys/fs/cgroup/pod", 2, str(4 * GIB), 2 * GIB, 0)
    assert read_available_bytes(root) == 2 * GIB


def test_a_process_is_counted_with_what_it_has_started() -> None:
    program = "full = b'x' * 2**26; print('full', flush=True); input()"
    script = f'{sys.executable} -S -c "{program}"; true'
    with subprocess.Popen(["sh", "-c", script], stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        process.stdout.readline()
        taken = read_tree_bytes(process.pid)
        process.communicate(b"\n")
    assert 2**26 < taken < 2**26 + 2**25
