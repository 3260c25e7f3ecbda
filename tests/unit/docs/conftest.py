"""Fixtures of the tests of the documentation."""

import sys
from collections.abc import Callable

import pytest

from runner import cli

RunCommand = Callable[..., tuple[int, str]]


@pytest.fixture
def run_command(monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]) -> RunCommand:
    """Calls the command line in this process; returns the exit code and what it said."""

    def call(*words: str) -> tuple[int, str]:
        monkeypatch.setattr(sys, "argv", ["benchmatrix", *words])
        with pytest.raises(SystemExit) as end:
            cli.main()
        assert isinstance(end.value.code, int)
        return end.value.code, "".join(capfd.readouterr())

    return call
