"""Fixtures of the tests of what is collected."""

from functools import partial
from pathlib import Path

import pytest

from bench.store import Store
from measured_runs import Collect, collect_results


@pytest.fixture
def collect(tmp_path: Path) -> Collect:
    """Puts results as a run into a store of the test's own and loads it."""
    return partial(collect_results, tmp_path)


@pytest.fixture
def store(tmp_path: Path) -> Store:
    """An empty store of this test alone."""
    return Store.open(f"file://{tmp_path}/store")
