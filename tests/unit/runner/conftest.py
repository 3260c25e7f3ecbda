"""Fixtures of the runner's tests."""

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from bench.store import Store
from memory_cgroup import MemoryCgroup
from nights import SimulatedNights
from workspace import Workspace


@pytest.fixture
def nights(store: Store) -> SimulatedNights:
    return SimulatedNights(store=store)


@pytest.fixture
def lock_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Give the test a host's lock of its own, so that a real run on this machine does not keep it from measuring."""
    folder = tmp_path / "lock"
    folder.mkdir()
    monkeypatch.setenv("BENCHMATRIX_LOCK_DIR", str(folder))
    return folder


@pytest.fixture
def memory_cgroup() -> Iterator[MemoryCgroup]:
    """A memory cgroup of 100 MiB."""
    try:
        cgroup = MemoryCgroup.make(f"benchmatrix-test-{os.getpid()}", 100 * 2**20)
    except OSError as error:
        pytest.skip(f"no memory cgroup can be made here: {error}")
    yield cgroup
    cgroup.remove()


@pytest.fixture
def workspace(tmp_path: Path, lock_folder: Path) -> Workspace:
    """A folder with a matrix and an interpreter, in which the tool can be called."""
    return Workspace.set_up(tmp_path)
