"""Calls of the command line in this process, and requests that create and change objects."""

import json
from typing import Any

import pytest

from runner.kubernetes.connection import Connection
from workspace import CallMain, make_call_main


@pytest.fixture
def call_main(monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]) -> CallMain:
    return make_call_main(monkeypatch, capfd)


def create(connection: Connection, path: str, body: dict[str, Any], **query: str) -> dict[str, Any]:
    made: dict[str, Any] = json.loads(
        connection.request("create", path, body=json.dumps(body).encode(), query=query or None)
    )
    return made


def patch(connection: Connection, path: str, body: dict[str, Any]) -> None:
    """Change the fields of an object that `body` has."""
    connection.request("patch", path, body=json.dumps(body).encode(), content_type="application/merge-patch+json")
