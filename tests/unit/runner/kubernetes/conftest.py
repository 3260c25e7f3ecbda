"""Fixtures of the tests of the cluster's side."""

from collections.abc import Iterator

import pytest

from lying_server import LyingServer


@pytest.fixture
def server() -> Iterator[LyingServer]:
    started = LyingServer()
    yield started
    started.stop()
