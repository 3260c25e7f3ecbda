"""runner.local.process: how processes of every kind end, and that nothing of them is left."""

import os
import random
import shlex
import signal
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from types import FrameType

import pytest

from fake_interpreters import is_running
from memory_cgroup import MemoryCgroup
from runner.local import process
from runner.local.process import ProcessEnd, ProcessNotStarted, count_oom_kills, delay_interrupts, run_process

HANG_GUARD_SECONDS = 20.0


def run_shell(script: str, *, timeout_seconds: float = HANG_GUARD_SECONDS, **options: object) -> ProcessEnd:
    return run_command("/bin/sh", "-c", script, timeout_seconds=timeout_seconds, **options)


def run_command(
    *command: str,
    timeout_seconds: float = HANG_GUARD_SECONDS,
    on_tick: Callable[[], None] = lambda: None,
    keep_open: tuple[int, ...] = (),
    memory_limit_bytes: int | None = None,
) -> ProcessEnd:
    return run_process(
        command,
        variables=os.environ,
        timeout_seconds=timeout_seconds,
        on_tick=on_tick,
        keep_open=keep_open,
        memory_limit_bytes=memory_limit_bytes,
    )


def read_pids(file: Path) -> list[int]:
    return [int(word) for word in file.read_text().split()]


def await_death(pids: list[int]) -> None:
    """Return when all are dead: the kernel needs a moment for each after the signal."""
    deadline = time.monotonic() + HANG_GUARD_SECONDS
    while any(is_running(pid) for pid in pids):
        assert time.monotonic() < deadline, "a process outlived its group"
        time.sleep(0.01)


@pytest.fixture
def alarm() -> Iterator[Callable[[float], None]]:
    """Calls for a KeyboardInterrupt after so many seconds, wherever the program is then."""

    def interrupt(number: int, frame: FrameType | None) -> None:
        raise KeyboardInterrupt

    previous = signal.signal(signal.SIGALRM, interrupt)
    yield lambda seconds: signal.setitimer(signal.ITIMER_REAL, seconds) and None
    signal.setitimer(signal.ITIMER_REAL, 0)
    signal.signal(signal.SIGALRM, previous)


def test_an_exit_code_and_both_streams_come_back() -> None:
    end = run_shell("echo to stdout; echo to stderr >&2; exit 7")

    assert (
        ProcessEnd(returncode=7, timed_out=False, over_limit=False, oom_killed=False, tail="to stdout\nto stderr\n")
        == end
    )


@pytest.mark.parametrize("number", [signal.SIGSEGV, signal.SIGABRT, signal.SIGKILL, signal.SIGRTMIN + 3])
def test_a_signal_comes_back_as_a_negative_code(number: int) -> None:
    end = run_shell(f"kill -{int(number)} $$")

    assert (end.returncode, end.timed_out, end.oom_killed) == (-number, False, False)


def test_of_much_output_the_very_end_is_kept() -> None:
    program = "import os\nfor n in range(300_000): print(n)\nprint('last words', flush=True)\nos.abort()"

    end = run_command(sys.executable, "-c", program)

    assert end.returncode == -signal.SIGABRT
    assert len(end.tail) == process.TAIL_BYTES
    assert end.tail.endswith("299998\n299999\nlast words\n")


def test_bytes_that_are_no_text_are_replaced() -> None:
    assert run_shell(r"printf '\377A'").tail == "\ufffdA"


def test_a_process_that_hangs_is_killed_with_all_its_children(tmp_path: Path) -> None:
    pids = tmp_path / "pids"
    script = f"trap '' TERM INT HUP\nsleep 60 & echo $! >> {pids}\n(sleep 60 & echo $! >> {pids}; wait) &\n"
    script += f"echo $$ $! >> {pids}\necho still here\nwhile true; do sleep 60; done"

    end = run_shell(script, timeout_seconds=0.5)

    assert (end.returncode, end.timed_out, end.oom_killed, end.tail) == (-signal.SIGKILL, True, False, "still here\n")
    assert len(read_pids(pids)) == 4
    await_death(read_pids(pids))


def test_children_that_outlive_their_parent_are_killed(tmp_path: Path) -> None:
    end = run_shell(f"sleep 60 & echo $! > {tmp_path}/pids; exit 4")

    assert end.returncode == 4
    await_death(read_pids(tmp_path / "pids"))


def test_a_daemon_that_holds_the_output_open_is_not_waited_for(tmp_path: Path) -> None:
    end = run_shell(f"setsid sh -c 'echo $$ > {tmp_path}/pids; exec sleep 60' & sleep 0.2; echo done; exit 5")

    daemon = read_pids(tmp_path / "pids")[0]
    try:
        assert (end.returncode, end.timed_out, end.tail) == (5, False, "done\n")
        assert is_running(daemon)
    finally:
        os.kill(daemon, signal.SIGKILL)


def test_a_process_that_closes_its_output_is_waited_for() -> None:
    assert run_shell("exec >&- 2>&-; sleep 0.2; exit 6").returncode == 6


def test_a_process_that_closed_its_output_is_timed_out_too() -> None:
    assert run_shell("exec >&- 2>&-; sleep 60", timeout_seconds=0.3).timed_out


def test_a_flood_of_output_does_not_keep_the_clock_from_striking() -> None:
    end = run_command("/usr/bin/yes", "x" * 1000, timeout_seconds=0.5)

    assert end.timed_out
    assert len(end.tail) == process.TAIL_BYTES


def test_ticks_come_by_the_clock_not_by_the_line() -> None:
    ticks: list[float] = []
    program = "import time\nfor n in range(400): print(n, flush=True); time.sleep(0.001)"

    run_command(sys.executable, "-c", program, on_tick=lambda: ticks.append(time.monotonic()))

    assert ticks
    assert all(process.TICK_SECONDS <= later - tick for tick, later in zip(ticks, ticks[1:], strict=False))


def list_children() -> set[str]:
    return {child for file in Path("/proc/self/task").glob("*/children") for child in file.read_text().split()}


def test_no_zombie_and_no_file_is_left() -> None:
    before, children = os.listdir("/proc/self/fd"), list_children()

    run_shell("sleep 60 & exit 1")
    run_shell("sleep 60", timeout_seconds=0.1)
    with suppress(ProcessNotStarted):
        run_command("/no/such/program")

    assert os.listdir("/proc/self/fd") == before
    assert list_children() == children  # servers of other tests' may be among them


def test_of_the_open_files_only_those_asked_for_are_inherited(tmp_path: Path) -> None:
    kept, other = (os.open(tmp_path / name, os.O_CREAT | os.O_RDWR) for name in ("kept", "other"))
    os.set_inheritable(other, True)
    try:
        end = run_command(sys.executable, "-c", "import os; print(*os.listdir('/proc/self/fd'))", keep_open=(kept,))
    finally:
        os.close(kept)
        os.close(other)

    listing = 3 if kept != 3 else 4  # the descriptor that os.listdir itself opens
    assert {int(word) for word in end.tail.split()} == {0, 1, 2, listing, kept}


@pytest.mark.parametrize("content", [None, "#!/no/such/interpreter\n", "not a program"])
def test_what_cannot_be_executed_is_told_apart(tmp_path: Path, content: str | None) -> None:
    path = tmp_path / "program"
    if content:
        path.write_text(content)
        path.chmod(0o755)

    with pytest.raises(ProcessNotStarted, match=r"No such file|Exec format error"):
        run_command(str(path))


def test_a_file_without_permission_to_execute_cannot_be_executed(tmp_path: Path) -> None:
    (tmp_path / "program").write_text("#!/bin/sh\n")

    with pytest.raises(ProcessNotStarted, match="Permission denied"):
        run_command(str(tmp_path / "program"))


def test_a_fault_of_the_observer_is_no_fault_of_the_start(tmp_path: Path) -> None:
    def fail() -> None:
        raise OSError(5, "Input/output error")  # a terminal that is gone

    with pytest.raises(OSError, match="Input/output error"):
        run_shell(f"echo $$ > {tmp_path}/pids; sleep 60", on_tick=fail)


@pytest.mark.parametrize("seed", range(4))
def test_an_interrupt_at_any_moment_kills_the_group(seed: int, tmp_path: Path, alarm: Callable[[float], None]) -> None:
    pids = tmp_path / "pids"
    alarm(random.Random(seed).uniform(0.05, 0.3))

    with pytest.raises(KeyboardInterrupt):
        run_shell(f"sleep 60 & echo $$ $! > {pids}; while :; do echo x; sleep 0.001; done")

    await_death(read_pids(pids))


@pytest.mark.parametrize("number", process.INTERRUPTS)
def test_an_interrupt_at_the_start_waits_until_the_process_is_known(number: int) -> None:
    heard: list[int] = []
    previous = signal.signal(number, lambda number, frame: heard.append(number))
    try:
        with delay_interrupts():
            os.kill(os.getpid(), number)
            assert heard == []
        assert heard == [number]
        os.kill(os.getpid(), number)
        assert heard == [number, number]
    finally:
        signal.signal(number, previous)


def test_an_ignored_signal_stays_ignored_while_interrupts_wait() -> None:
    previous = signal.signal(signal.SIGHUP, signal.SIG_IGN)
    try:
        with delay_interrupts():
            ignored = run_shell("kill -HUP $$; echo alive").tail
    finally:
        signal.signal(signal.SIGHUP, previous)

    assert ignored == "alive\n"


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


def test_a_process_killed_by_somebody_in_the_same_cgroup_is_not_out_of_memory(memory_cgroup: MemoryCgroup) -> None:
    end = run_shell(f"{memory_cgroup.join_command}; kill -9 $$")

    assert (end.returncode, end.oom_killed) == (-9, False)


def test_a_process_that_takes_more_memory_than_it_may_is_killed(tmp_path: Path) -> None:
    """Counted with what it has started: the shell itself takes next to nothing."""
    fill = f"import os, time; full = b'x' * 2**28; open('{tmp_path}/pid', 'w').write(str(os.getpid())); time.sleep(60)"
    script = f"{sys.executable} -S -c {shlex.quote(fill)}"

    end = run_shell(script, memory_limit_bytes=2**27)

    assert (end.over_limit, end.timed_out, end.oom_killed) == (True, False, False)
    if (tmp_path / "pid").exists():
        await_death(read_pids(tmp_path / "pid"))


def test_a_process_within_its_memory_limit_ends_as_it_likes() -> None:
    end = run_shell("echo well; exit 3", memory_limit_bytes=2**27)

    assert (end.returncode, end.over_limit, end.tail) == (3, False, "well\n")
