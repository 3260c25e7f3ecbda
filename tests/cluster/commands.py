"""Words of the command line in, exit code and output of the command out; objects of the API made."""

import json
import sys
from collections.abc import Callable
from typing import Any

import pytest

from runner import cli
from runner.kubernetes.connection import Connection

CallMain = Callable[..., tuple[int, str, str]]


def make_call(monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]) -> CallMain:
    """Return what calls the command line in this process: exit code, stdout and stderr come back."""

    def call(*words: object) -> tuple[int, str, str]:
        capfd.readouterr()
        monkeypatch.setattr(sys, "argv", ["benchmatrix", *map(str, words)])
        with pytest.raises(SystemExit) as end:
            cli.main()
        assert isinstance(end.value.code, int)
        return end.value.code, *capfd.readouterr()

    return call


def create(connection: Connection, path: str, body: dict[str, Any], **query: str) -> dict[str, Any]:
    """Make an object and return it."""
    made: dict[str, Any] = json.loads(
        connection.request("create", path, body=json.dumps(body).encode(), query=query or None)
    )
    return made
