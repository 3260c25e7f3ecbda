"""A login has an end, whatever the program does that a kubeconfig names for it."""

import os
import signal
import subprocess
from pathlib import Path

import pytest

from bench.errors import UserError
from fake_interpreters import make_interpreter
from kubeconfigs import write_kubeconfig
from runner.kubernetes.credential_plugins import LoginEndedError, limit_login
from runner.kubernetes.login import log_in


def was_ended(program: "subprocess.Popen[bytes]", within_seconds: float) -> bool:
    """Return whether a signal ends the program within so many seconds."""
    try:
        return program.wait(within_seconds) < 0
    except subprocess.TimeoutExpired:
        return False


def test_a_program_that_does_not_end_is_ended_with_the_login() -> None:
    started: list[subprocess.Popen[bytes]] = []

    def log_in() -> None:
        program = subprocess.Popen(["sleep", "600"])
        started.append(program)
        program.wait()

    try:
        for limit_seconds in (0.2, 2.0, 20.0):
            with pytest.raises(LoginEndedError):
                limit_login(log_in, limit_seconds)
            # On a busy machine the program may have begun only after the limit, when nobody ends it any more.
            if any(was_ended(program, limit_seconds) for program in list(started)):
                break
        else:
            pytest.fail("none of the programs was ended")
    finally:
        for program in started:
            program.kill()


def test_only_what_the_login_started_is_ended() -> None:
    bystander = subprocess.Popen(["sleep", "600"])
    blocked = subprocess.Popen(["sleep", "600"])
    try:
        with pytest.raises(LoginEndedError):
            limit_login(blocked.wait, 0.2)
        assert (bystander.poll(), blocked.poll()) == (None, None)
    finally:
        for process in (bystander, blocked):
            process.kill()
            process.wait()


def test_what_a_login_returns_or_raises_is_passed_on() -> None:
    def refuse() -> None:
        raise KeyError("x")

    assert limit_login(lambda: 7, 60.0) == 7
    with pytest.raises(KeyError):
        limit_login(refuse, 60.0)


def test_a_program_that_prints_without_end_is_ended_with_the_login(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("runner.kubernetes.credential_plugins.MAX_LOGIN_BYTES", 20 * 2**20)
    started: list[subprocess.Popen[bytes]] = []

    def log_in() -> None:
        started.append(subprocess.Popen(["yes"], stdout=subprocess.PIPE))
        started[0].communicate()

    with pytest.raises(LoginEndedError, match="prints without end; call it by hand"):
        limit_login(log_in, 600.0)
    assert was_ended(started[0], 60.0)


@pytest.mark.parametrize(
    ("script", "reason"),
    [
        ("echo hunter2; exit 3", "ended with exit code 3"),
        ("printf 'hunter2 \\033[2J' >&2; exit 1", "ended with exit code 1"),
        ("kill -9 $$", "ended with exit code -9"),
        ("echo hunter2", "answers with what is no credentials"),
        ("echo '[]'", "answers with what is no credentials"),
        ("printf '\\377'", "answers with what is no credentials"),
    ],
)
def test_a_program_that_fails_is_named_and_what_it_printed_is_not_shown(
    script: str, reason: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    plugin = make_interpreter(tmp_path / "plugin", script)
    write_kubeconfig(tmp_path / "config", context="lab", plugin=plugin)
    monkeypatch.setenv("KUBECONFIG", str(tmp_path / "config"))
    with pytest.raises(UserError, match=rf"--on lab: .*user `me`: the program that gives .* {reason}; call it by hand"):
        log_in("lab", num_connections=1)
    assert capfd.readouterr() == ("", "")


def test_a_program_that_is_not_there_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write_kubeconfig(tmp_path / "config", context="lab", plugin="auth-plugin-of-nobody")
    monkeypatch.setenv("KUBECONFIG", str(tmp_path / "config"))
    with pytest.raises(UserError, match="cannot be started: auth-plugin-of-nobody: No such file or directory;"):
        log_in("lab", num_connections=1)


def test_a_program_that_ends_and_leaves_another_with_its_stdout_is_told_from_one_that_hangs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Agents are left running on purpose, and so are not ended; the login cannot see the end of the answer."""
    plugin = make_interpreter(tmp_path / "plugin", f"sleep 600 & echo $! > {tmp_path}/agent; echo '{{}}'")
    write_kubeconfig(tmp_path / "config", context="lab", plugin=plugin)
    monkeypatch.setenv("KUBECONFIG", str(tmp_path / "config"))
    monkeypatch.setattr("runner.kubernetes.login.find_limit_seconds", lambda: 5.0)
    try:
        with pytest.raises(UserError, match="or something that it left running keeps its stdout open; call it by hand"):
            log_in("lab", num_connections=1)
    finally:
        os.kill(int((tmp_path / "agent").read_text()), signal.SIGKILL)
