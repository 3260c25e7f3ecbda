"""Fixtures that tests of several packages use."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import settings

from bench.registry import FRAMEWORKS
from bench.schema import Framework
from runner.local.virtual_environments import prepare_virtual_environments
from s3_server import S3Server

# A busy machine is no fault of the code: no example of any test has a deadline.
settings.register_profile("benchmatrix", deadline=None)
settings.load_profile("benchmatrix")


@pytest.fixture(scope="session")
def interpreters() -> dict[Framework, Path]:
    """The interpreters of the images' CPU environments, by framework; what is missing is installed first."""
    return prepare_virtual_environments(tuple(FRAMEWORKS), "cpu", print)


@pytest.fixture
def s3_server(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[S3Server]:
    """A running S3 server with an empty bucket; the environment, also of child processes, leads to it."""
    server = S3Server(root=tmp_path / "s3" / "root")
    for name in ("AWS_PROFILE", "AWS_SESSION_TOKEN", "AWS_ENDPOINT_URL_S3", "AWS_REGION"):
        monkeypatch.delenv(name, raising=False)
    for name, value in server.environment.items():
        monkeypatch.setenv(name, value)
    try:
        server.start()
        yield server
    finally:
        server.stop()
