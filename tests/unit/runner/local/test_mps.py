"""runner.local.hardware: a daemon for the tenants of one repeat, which leaves nothing behind; with a stand-in."""

import os
from pathlib import Path

import pytest

from fake_interpreters import await_end
from fake_mps import install_mps
from runner.local.hardware import run_mps
from runner.local.process import ProcessNotStarted

DEVICE = "GPU-aaaa1111"


@pytest.fixture
def log(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The file in which the stand-in notes what it was started with."""
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    return install_mps(tmp_path)


def list_daemons(folder: str) -> list[int]:
    """Return the processes of the stand-in that serve in this folder."""
    found = []
    for entry in filter(str.isdecimal, os.listdir("/proc")):
        try:
            command = Path(f"/proc/{entry}/cmdline").read_bytes()
            variables = Path(f"/proc/{entry}/environ").read_bytes()
        except OSError:
            continue
        if b"--serve" in command and folder.encode() in variables:
            found.append(int(entry))
    return found


def test_the_daemon_is_there_for_its_clients_and_gone_after_them(log: Path) -> None:
    with run_mps(DEVICE) as variables:
        folder = variables["CUDA_MPS_PIPE_DIRECTORY"]
        assert log.read_text() == f"{DEVICE} {folder}\n"
        daemons = list_daemons(folder)
        assert len(daemons) == 2
        assert len(folder) < 80  # the path of a socket in it has 107 characters at the most
    assert not Path(folder).exists()
    for pid in daemons:
        await_end(pid)


def test_a_daemon_that_does_not_hear_is_killed(log: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FAKE_MPS_IS_DEAF", "1")
    with run_mps(DEVICE) as variables:
        monkeypatch.setattr("runner.local.hardware.MPS_SECONDS", 0.5)  # for its end alone
        daemons = list_daemons(variables["CUDA_MPS_PIPE_DIRECTORY"])
        assert len(daemons) == 2
    for pid in daemons:
        await_end(pid)


def test_a_daemon_ends_with_what_its_tenants_raise(log: Path) -> None:
    daemons: list[int] = []

    def be_interrupted() -> None:
        with run_mps(None) as variables:
            daemons.extend(list_daemons(variables["CUDA_MPS_PIPE_DIRECTORY"]))
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        be_interrupted()
    assert len(daemons) == 2
    for pid in daemons:
        await_end(pid)


def test_a_daemon_that_does_not_start_says_why(log: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FAKE_MPS_FAILS", "1")
    reason = "nvidia-cuda-mps-control -d ended with exit code 1: An instance of this daemon is already running"
    with pytest.raises(ProcessNotStarted, match=reason), run_mps(DEVICE):
        pass


def test_a_machine_without_the_program_has_no_mps(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(ProcessNotStarted, match="nvidia-cuda-mps-control"), run_mps(DEVICE):
        pass
