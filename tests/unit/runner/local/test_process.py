"""runner.local.process: how processes of every kind end, and that nothing of them is left."""

import random
import signal
import sys
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from types import FrameType

import pytest

from local_processes import await_death, end_time_when, read_pids, run_command, run_shell
from runner.local import process
from runner.local.process import ProcessEnd, ProcessNotStarted


@pytest.fixture(autouse=True)
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


def test_a_process_that_hangs_is_killed_with_all_its_children(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pids = tmp_path / "pids"
    end_time_when(lambda: pids.exists() and len(read_pids(pids)) == 4, monkeypatch, "runner.local.process")
    script = f"trap '' TERM INT HUP\nsleep 1000 & echo $! >> {pids}\n(sleep 1000 & echo $! >> {pids}; wait) &\n"
    script += f"echo still here\necho $$ $! >> {pids}\nwhile true; do sleep 1000; done"

    end = run_shell(script)

    assert (end.returncode, end.timed_out, end.oom_killed, end.tail) == (-signal.SIGKILL, True, False, "still here\n")
    assert len(read_pids(pids)) == 4
    await_death(read_pids(pids))


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


def test_a_file_without_permission_to_execute_cannot_be_executed(tmp_path: Path) -> None:
    (tmp_path / "program").write_text("#!/bin/sh\n")

    with pytest.raises(ProcessNotStarted, match="Permission denied"):
        run_command(str(tmp_path / "program"))


@pytest.mark.parametrize("seed", range(4))
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
