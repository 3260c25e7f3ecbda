"""Waits for what takes moments, and longer on a machine that is busy."""

import time
from collections.abc import Callable
from typing import Any

DEADLINE_SECONDS = 600.0
"""Only a test that fails takes so long."""


def wait_for(condition: Callable[[], Any], what: str, pause_seconds: float = 0.01) -> Any:
    """Return the first true answer of `condition`; AssertionError if none comes."""
    deadline = time.monotonic() + DEADLINE_SECONDS
    while not (answer := condition()):
        assert time.monotonic() < deadline, f"{what} did not come in time"
        time.sleep(pause_seconds)
    return answer
