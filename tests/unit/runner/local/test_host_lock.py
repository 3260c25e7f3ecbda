"""runner.local.process: one run at a time, nothing left of one that was killed. Every runner is a real process."""

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from bench.errors import UserError
from fake_interpreters import await_end, is_running
from runner.local.process import hold_host_lock

HOLD = """
import subprocess, sys
from runner.local.process import hold_host_lock
with hold_host_lock("run-1") as lock:
    command = ["sh", "-c", "sleep 1000 & echo $!; exec sleep 1000"]
    child = subprocess.Popen(command, pass_fds=[lock], start_new_session=True, stdout=subprocess.PIPE, text=True)
    print(child.pid, child.stdout.readline(), end="", flush=True)
    sys.stdin.read()
"""


@pytest.fixture
def runner(lock_folder: Path) -> Iterator["subprocess.Popen[str]"]:
    """A program that holds the lock; it prints the processes of a group that it has started then."""
    command = [sys.executable, "-c", HOLD]
    with subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, start_new_session=True
    ) as runner:
        yield runner
        runner.kill()


def read_line(runner: "subprocess.Popen[str]") -> str:
    assert runner.stdout is not None
    return runner.stdout.readline().strip()


def test_a_second_run_is_refused_and_told_who_measures_until_the_first_is_killed_with_what_it_left(
    runner: "subprocess.Popen[str]", lock_folder: Path
) -> None:
    group = [int(word) for word in read_line(runner).split()]

    with pytest.raises(UserError) as refusal, hold_host_lock("run-2"):
        pass

    assert str(lock_folder) in str(refusal.value)
    assert f"run run-1 measures on this machine (process {runner.pid})" in str(refusal.value)
    assert is_running(runner.pid)

    runner.kill()
    runner.wait()
    assert [is_running(pid) for pid in group] == [True, True]
    with hold_host_lock("run-2"):
        for pid in group:
            await_end(pid)


def test_a_bystander_that_holds_the_lock_is_left_alone(lock_folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As a script does that waits for a quiet machine: `exec 9<>FILE; flock 9`, whose taker of the lock has ended."""
    monkeypatch.setattr("runner.local.process.GRACE_SECONDS", 0.5)
    script = 'exec 9<>"$0"; flock 9; echo held; sleep 1000'
    command = ["sh", "-c", script, str(lock_folder / "benchmatrix.lock")]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, start_new_session=True) as bystander:
        assert read_line(bystander) == "held"
        try:
            with pytest.raises(UserError, match="another process holds this lock"), hold_host_lock("run-2"):
                pass
            assert is_running(bystander.pid)
        finally:
            os.killpg(bystander.pid, signal.SIGKILL)


def test_a_missing_folder_for_the_lock_is_one_message(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("BENCHMATRIX_LOCK_DIR", str(tmp_path / "absent"))
    with pytest.raises(UserError, match="absent: there is no such folder for the lock"), hold_host_lock("run-1"):
        pass
