"""runner.local.process: one run at a time, nothing left of one that was killed. Every runner is a real process."""

import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from bench.errors import UserError
from fake_interpreters import await_end, is_running
from fake_mps import install_mps
from runner.local.process import hold_host_lock

HOLD = """
import subprocess, sys, time
from runner.local.process import hold_host_lock
with hold_host_lock(sys.argv[1]) as lock:
    {start}
    print("held", flush=True)
    time.sleep({seconds})
"""
START_GROUP = (
    "child = subprocess.Popen(['sh', '-c', 'sleep 1000 & echo $!; exec sleep 1000'], pass_fds=[lock], "
    "start_new_session=True, stdout=subprocess.PIPE, text=True); print(child.pid, child.stdout.readline(), end='')"
)
TRY = """
import sys
from bench.errors import UserError
from runner.local.process import hold_host_lock
try:
    with hold_host_lock(sys.argv[1]):
        sys.stdin.read()
except UserError:
    sys.exit(2)
"""

StartRunner = Callable[[str], "subprocess.Popen[str]"]


@pytest.fixture
def start_runner(lock_folder: Path) -> Iterator[StartRunner]:
    """Starts programs that hold the lock, each in a session of its own, and ends them."""
    runners: list[subprocess.Popen[str]] = []

    def start(program: str) -> "subprocess.Popen[str]":
        command = [sys.executable, "-c", program, f"run-{len(runners) + 1}"]
        runner = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, start_new_session=True
        )
        runners.append(runner)
        return runner

    yield start
    for runner in runners:
        with runner:
            runner.kill()


def read_line(runner: "subprocess.Popen[str]") -> str:
    assert runner.stdout is not None
    return runner.stdout.readline().strip()


def test_a_second_run_is_refused_and_told_who_measures(start_runner: StartRunner, lock_folder: Path) -> None:
    first = start_runner(HOLD.format(start="", seconds=1000))
    assert read_line(first) == "held"

    with pytest.raises(UserError) as refusal, hold_host_lock("run-2"):
        pass

    assert str(lock_folder) in str(refusal.value)
    assert f"run run-1 measures on this machine (process {first.pid})" in str(refusal.value)
    assert is_running(first.pid)


def test_what_a_killed_runner_left_is_ended_before_the_next_one_starts(start_runner: StartRunner) -> None:
    killed = start_runner(HOLD.format(start=START_GROUP, seconds=1000))
    group = [int(word) for word in read_line(killed).split()]
    assert read_line(killed) == "held"
    killed.kill()
    killed.wait()
    assert [is_running(pid) for pid in group] == [True, True]

    with hold_host_lock("run-2"):
        for pid in group:
            await_end(pid)


def test_a_bystander_that_holds_the_lock_is_left_alone(
    lock_folder: Path, monkeypatch: pytest.MonkeyPatch, start_runner: StartRunner
) -> None:
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


def test_the_lock_of_a_machine_is_where_every_user_can_write(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from runner.local.process import find_lock_path

    monkeypatch.delenv("BENCHMATRIX_LOCK_DIR", raising=False)
    own, shared, linked = (tmp_path / name for name in ("own", "shared", "linked"))
    own.mkdir(mode=0o755)
    shared.mkdir()
    shared.chmod(0o1777)
    linked.symlink_to(shared)
    folders = (tmp_path / "absent", own, linked, shared)
    for folder in (own, tmp_path):
        monkeypatch.setenv("TMPDIR", str(folder))
        assert find_lock_path(folders) == shared / "benchmatrix.lock"
    with pytest.raises(UserError, match="name one in BENCHMATRIX_LOCK_DIR"):
        find_lock_path(folders[:3])
    monkeypatch.setenv("BENCHMATRIX_LOCK_DIR", str(tmp_path / "absent"))
    with pytest.raises(UserError, match="BENCHMATRIX_LOCK_DIR=.*absent: there is no such folder"):
        find_lock_path(folders)


RUNNER = """
import sys
from runner.local.process import hold_host_lock
from runner.local.hardware import run_mps
with hold_host_lock("run-1") as lock, run_mps(None) as variables:
    print(variables["CUDA_MPS_PIPE_DIRECTORY"], flush=True)
    sys.stdin.read()
"""


@pytest.fixture
def stand_in(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, lock_folder: Path) -> None:
    """Put a stand-in for NVIDIA's program on the PATH, and the lock of this machine into a folder of the test."""
    install_mps(tmp_path)
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    monkeypatch.delenv("BENCHMATRIX_RUNNER", raising=False)


def read_daemon(folder: str) -> int:
    """Return the process of the daemon that serves in this folder."""
    return int((Path(folder) / "nvidia-cuda-mps-control.pid").read_text())


@pytest.mark.usefixtures("stand_in")
def test_a_daemon_of_mps_does_not_outlive_its_killed_runner() -> None:
    """It has closed the lock that it inherited, as daemons do."""
    with subprocess.Popen(
        [sys.executable, "-c", RUNNER], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as runner:
        assert runner.stdout is not None
        folder = runner.stdout.readline().strip()
        daemon = read_daemon(folder)
        assert is_running(daemon)  # a lock that another test takes at the same time may end it as well, from now on
        runner.kill()
        runner.wait()
        with hold_host_lock("run-2"):
            await_end(daemon)
    shutil.rmtree(folder)
