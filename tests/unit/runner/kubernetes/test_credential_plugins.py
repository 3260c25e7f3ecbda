"""A login has an end, whatever the program does that a kubeconfig names for it."""

import subprocess

import pytest

from runner.kubernetes.credential_plugins import LoginTooSlow, limit_login


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
            with pytest.raises(LoginTooSlow):
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
        with pytest.raises(LoginTooSlow):
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
