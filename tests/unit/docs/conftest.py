"""Fixtures of the tests of the documentation."""

from collections.abc import Callable

import pytest

from workspace import make_call_main


@pytest.fixture
def run_command(monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]) -> Callable[..., tuple[int, str]]:
    """Calls the command line in this process; returns the exit code and what it said."""

    def call(*words: str) -> tuple[int, str]:
        code, out, err = make_call_main(monkeypatch, capfd)(*words)
        return code, out + err

    return call
