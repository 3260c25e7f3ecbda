"""Fixtures of the tests that call the command line."""

import sys
from collections.abc import Callable

import pytest

from runner import cli
from workspace import Workspace

CallMain = Callable[..., tuple[int, str, str]]


@pytest.fixture
def call_main(workspace: Workspace, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]) -> CallMain:
    """Calls the command line in this process, in the workspace's folder; returns exit code, stdout and stderr."""

    def call(*words: str) -> tuple[int, str, str]:
        monkeypatch.chdir(workspace.folder)
        monkeypatch.setattr(sys, "argv", ["benchmatrix", *words])
        with pytest.raises(SystemExit) as end:
            cli.main()
        assert isinstance(end.value.code, int)
        return end.value.code, *capfd.readouterr()

    return call
