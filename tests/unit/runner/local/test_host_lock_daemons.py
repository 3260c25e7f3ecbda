"""runner.local.host_lock: a killed runner's daemon of MPS ends with the next run, and no other one does."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from fake_interpreters import await_end, is_running
from fake_mps import install_mps
from runner.local.hardware import run_mps
from runner.local.host_lock import hold_host_lock

RUNNER = """
import sys
from runner.local.host_lock import hold_host_lock
from runner.local.hardware import run_mps
with hold_host_lock("run-1") as lock, run_mps(None) as variables:
    print(variables["CUDA_MPS_PIPE_DIRECTORY"], flush=True)
    sys.stdin.read()
"""


@pytest.fixture(autouse=True)
def stand_in(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, lock_folder: Path) -> None:
    """Put a stand-in for NVIDIA's program on the PATH, and the lock of this machine into a folder of the test."""
    install_mps(tmp_path)
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    monkeypatch.delenv("BENCHMATRIX_RUNNER", raising=False)


def read_daemon(folder: str) -> int:
    """Return the process of the daemon that serves in this folder."""
    return int((Path(folder) / "nvidia-cuda-mps-control.pid").read_text())


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


def test_a_daemon_of_mps_that_no_runner_started_is_left_alone() -> None:
    with run_mps(None) as variables, hold_host_lock("run-1"):
        assert is_running(read_daemon(variables["CUDA_MPS_PIPE_DIRECTORY"]))
