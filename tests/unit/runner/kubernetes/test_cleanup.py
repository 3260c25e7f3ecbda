"""Which marks stop a runner, and how often the store is asked for them."""

from collections.abc import Iterator

import pytest

from bench.store import Store, cancelled_prefix
from runner.kubernetes import cleanup
from runner.kubernetes.cleanup import (
    Cancellation,
    CancellationWatcher,
    RunCancelled,
    leave_mark,
    list_marks,
)
from runner.kubernetes.dispatcher import Dispatcher

RUN_ID = "mine"


@pytest.fixture
def dispatcher() -> Iterator[Dispatcher]:
    dispatcher = Dispatcher(warn_user=lambda message: None, patience_seconds=60.0)
    yield dispatcher
    dispatcher.stop()


def make_watcher(dispatcher: Dispatcher, store: Store, *others: str) -> CancellationWatcher:
    return CancellationWatcher(
        dispatcher=dispatcher, store=store, run_ids=(RUN_ID, *others), known=list_marks(store, RUN_ID)
    )


def run_all(dispatcher: Dispatcher, cancellation_watcher: CancellationWatcher) -> None:
    while cancellation_watcher.is_checking:
        dispatcher.run_next()


def test_each_cancellation_leaves_a_mark_of_its_own_that_says_who_and_when(store: Store) -> None:
    leave_mark(store, RUN_ID)
    leave_mark(store, RUN_ID)
    leave_mark(store, "others")

    keys = sorted(store.list_keys(cancelled_prefix(RUN_ID)))
    assert len(keys) == 2
    first, second = (Cancellation.model_validate_json(store.get(key)) for key in keys)
    assert (first.run_id, second.run_id) == (RUN_ID, RUN_ID)
    assert first.user
    assert first.hostname
    assert first.cancelled_at != second.cancelled_at


def test_a_mark_that_was_there_at_the_start_stops_nobody_and_a_later_one_does(
    dispatcher: Dispatcher, store: Store
) -> None:
    leave_mark(store, RUN_ID)
    cancellation_watcher = make_watcher(dispatcher, store)
    leave_mark(store, "others")
    cancellation_watcher.check()
    run_all(dispatcher, cancellation_watcher)

    leave_mark(store, RUN_ID)
    cancellation_watcher.check()
    with pytest.raises(RunCancelled):
        run_all(dispatcher, cancellation_watcher)


def test_a_mark_of_its_night_stops_a_confirmation(dispatcher: Dispatcher, store: Store) -> None:
    cancellation_watcher = make_watcher(dispatcher, store, "night")
    leave_mark(store, "night")

    cancellation_watcher.check()
    with pytest.raises(RunCancelled):
        run_all(dispatcher, cancellation_watcher)


def test_checks_begun_during_a_request_share_the_next_one(
    dispatcher: Dispatcher, store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    cancellation_watcher = make_watcher(dispatcher, store)
    requests: list[str] = []

    def count_requests(store: Store, run_id: str) -> frozenset[str]:
        requests.append(run_id)
        return list_marks(store, run_id)

    monkeypatch.setattr(cleanup, "list_marks", count_requests)
    for _ in range(200):
        cancellation_watcher.check()
    run_all(dispatcher, cancellation_watcher)

    assert requests == [RUN_ID] * 2
