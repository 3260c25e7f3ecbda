"""bench.foreign_programs: a program of somebody else ends, whatever it does, with all that it started."""

import os
import signal
import sys
from pathlib import Path
from types import FrameType
from typing import Any

import pytest

from bench.child_processes import list_children
from bench.foreign_programs import ProgramLimitError, ProgramTooSlowError, run_program
from fake_interpreters import await_end

SHORT, LONG = 0.5, 600.0


def run_shell(script: str, *, limit_seconds: float = LONG, max_bytes: int = 10_000) -> tuple[int, str, str]:
    done = run_program(["sh", "-c", script], limit_seconds=limit_seconds, max_bytes=max_bytes)
    return done.returncode, done.printed, done.errors


def test_what_it_prints_and_how_it_ends_is_returned() -> None:
    assert run_shell("echo out; echo err >&2; exit 3") == (3, "out\n", "err\n")
    assert run_shell("kill -9 $$")[0] == -9
    assert run_shell("cat") == (0, "", "")  # there is no stdin to wait for
    assert run_shell("exec >&- 2>&-; sleep 0.2; exit 4")[0] == 4


@pytest.mark.parametrize("script", ["sleep 600", "trap '' TERM INT HUP; sleep 600", "exec >&- 2>&-; sleep 600"])
def test_one_that_hangs_is_ended(script: str) -> None:
    with pytest.raises(ProgramTooSlowError, match=r"has not ended after 0\.5 s"):
        run_shell(script, limit_seconds=SHORT)


@pytest.mark.parametrize("script", ["yes", "yes | cat", "while :; do echo x; echo y >&2; done"])
def test_one_that_prints_without_end_is_ended(script: str) -> None:
    with pytest.raises(ProgramLimitError, match="printed more than 10,000 bytes"):
        run_shell(script)


def test_of_errors_without_end_the_end_is_kept() -> None:
    code, _, errors = run_shell("yes | head -c 1000000 >&2; echo last >&2")
    assert (code, len(errors), errors[-5:]) == (0, 65_536, "last\n")


def test_what_it_left_behind_is_ended_and_not_waited_for(tmp_path: Path) -> None:
    code, printed, _ = run_shell(f"sleep 600 & echo $! > {tmp_path}/pid; echo done")
    assert (code, printed) == (0, "done\n")
    await_end(int((tmp_path / "pid").read_text()))


def test_one_that_cannot_be_started_is_an_error_of_the_system(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError):
        run_program([str(tmp_path / "none")], limit_seconds=SHORT, max_bytes=1)


def test_an_interrupt_while_it_is_being_started_ends_it(tmp_path: Path) -> None:
    """Python forks in Popen, and then waits there until the program has begun: Ctrl-C would leave nobody to end it."""

    def interrupt(frame: FrameType, event: str, called: Any) -> None:
        if (event, frame.f_code.co_name, getattr(called, "__name__", "")) == ("c_call", "_execute_child", "read"):
            sys.setprofile(None)
            os.kill(os.getpid(), signal.SIGINT)

    before = list_children()
    sys.setprofile(interrupt)
    try:
        with pytest.raises(KeyboardInterrupt):
            run_shell("sleep 600")
    finally:
        sys.setprofile(None)
    assert list_children() <= before
