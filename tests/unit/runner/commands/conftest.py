"""Fixtures of the tests that call the command line."""

import pytest

from workspace import CallMain, Workspace, make_call_main


@pytest.fixture
def call_main(workspace: Workspace, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]) -> CallMain:
    """Calls the command line in this process, in the workspace's folder; returns exit code, stdout and stderr."""
    monkeypatch.chdir(workspace.folder)
    return make_call_main(monkeypatch, capfd)
