"""Calls of the command line in this process, and requests that create and change objects."""

import json
import sys
from collections.abc import Callable
from typing import Any

import pytest

from runner import cli
from runner.kubernetes.connection import Connection

CallMain = Callable[..., tuple[int, str, str]]


@pytest.fixture
def call_main(monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]) -> CallMain:
    """A function that calls the command line in this process and returns exit code, stdout and stderr."""

    def call(*words: object) -> tuple[int, str, str]:
        capfd.readouterr()
        monkeypatch.setattr(sys, "argv", ["benchmatrix", *map(str, words)])
        with pytest.raises(SystemExit) as end:
            cli.main()
        assert isinstance(end.value.code, int)
        return end.value.code, *capfd.readouterr()

    return call


def create(connection: Connection, path: str, body: dict[str, Any], **query: str) -> dict[str, Any]:
    made: dict[str, Any] = json.loads(
        connection.request("create", path, body=json.dumps(body).encode(), query=query or None)
    )
    return made


def patch(connection: Connection, path: str, body: dict[str, Any]) -> None:
    """Change the fields of an object that `body` has."""
    connection.request("patch", path, body=json.dumps(body).encode(), content_type="application/merge-patch+json")
