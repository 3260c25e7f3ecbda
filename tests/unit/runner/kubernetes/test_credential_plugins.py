"""A login has an end, whatever the program does that a kubeconfig names for it."""

import subprocess
from contextlib import suppress

import pytest

from runner.kubernetes.credential_plugins import LoginTooSlow, limit_login


def test_a_program_that_does_not_end_is_ended_with_the_login() -> None:
    started: list[subprocess.Popen[bytes]] = []

    def log_in() -> None:
        started.append(subprocess.Popen(["sleep", "600"]))
        started[0].wait()

    for limit_seconds in (0.2, 2.0, 20.0):  # on a busy machine the program may not have begun yet
        if not started:
            with suppress(LoginTooSlow):
                limit_login(log_in, limit_seconds)

    assert started[0].wait(timeout=60) < 0


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
