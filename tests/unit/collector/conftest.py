"""Fixtures of the tests of what is collected."""

from functools import partial
from pathlib import Path

import pytest

from measured_runs import Collect, collect_results


@pytest.fixture
def collect(tmp_path: Path) -> Collect:
    """Puts results as a run into a store of the test's own and loads it."""
    return partial(collect_results, tmp_path)
