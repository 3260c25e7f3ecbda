"""Fixtures of the tests of `benchmatrix probe`."""

import sys
from collections.abc import Callable

import pytest

from fake_interpreters import make_measuring_interpreter
from runner import cli
from workspace import Workspace

CallProbe = Callable[..., tuple[int, str, str]]


@pytest.fixture
def call_probe(workspace: Workspace, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]) -> CallProbe:
    """Calls `probe conv6 --python ./python` in this process; 11 samples fit. Returns exit code, stdout and stderr."""
    make_measuring_interpreter(workspace.folder / "python", log=workspace.log, num_samples_that_fit=11)
    monkeypatch.setattr("runner.local.hardware.find_gpu", lambda: None)

    def call(*words: str, model: str = "conv6") -> tuple[int, str, str]:
        monkeypatch.chdir(workspace.folder)
        monkeypatch.setattr(sys, "argv", ["benchmatrix", "probe", model, "--python", "./python", *words])
        with pytest.raises(SystemExit) as end:
            cli.main()
        assert isinstance(end.value.code, int)
        return end.value.code, *capfd.readouterr()

    return call
