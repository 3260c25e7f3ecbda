"""Calls of the store for tests of what all of them do, and waiting for what a store does."""

import time
from collections.abc import Callable

from bench.store import Store

DEADLINE_SECONDS = 300.0
"""Only a test that fails takes so long."""


def wait_until(is_true: Callable[[], bool]) -> None:
    """Return when `is_true` returns True; AssertionError where it does not in time."""
    deadline = time.monotonic() + DEADLINE_SECONDS
    while not is_true():
        assert time.monotonic() < deadline
        time.sleep(0.005)


def list_calls(store: Store) -> list[Callable[[], object]]:
    """Return a call of every method of the store."""
    return [
        store.check_writable,
        lambda: store.put("x", b"1"),
        lambda: store.put_with_short_retries("x", b"1"),
        lambda: store.get("x"),
        lambda: list(store.get_listed(["x"])),
        lambda: list(store.list_keys("")),
        store.list_run_ids,
    ]
