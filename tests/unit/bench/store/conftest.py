"""Stores over directories and S3 servers."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from bench.store import Store
from s3_server import S3Server
from store_calls import Answers, serve


@pytest.fixture(params=["file", "s3"])
def store(request: pytest.FixtureRequest, tmp_path: Path) -> Store:
    """A store in a folder, or below a prefix of a bucket; test_buckets.py has a bucket without one."""
    if request.param == "file":
        return Store.open(f"file://{tmp_path}/results")
    return Store.open(f"s3://{request.getfixturevalue('s3_server').bucket}/team/a b")


@pytest.fixture
def few_retries(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Store.put, "__kwdefaults__", {"retry_seconds": 0.1})
    monkeypatch.setattr("bench.store.buckets.RETRY_SECONDS", 0.1)
    monkeypatch.setattr("bench.store.buckets.LIST_ATTEMPTS", 1)


@pytest.fixture
def answers(monkeypatch: pytest.MonkeyPatch, s3_server: S3Server) -> Iterator[Answers]:
    """The (status, text) with which the endpoint answers in turn, the last one for ever."""
    queue: Answers = []
    with serve(queue) as url:
        monkeypatch.setenv("AWS_ENDPOINT_URL", url)
        yield queue
