"""Requests of other threads have ended when the work that sent them has, but for a Ctrl-C."""

import threading
import time

import pytest

from runner.kubernetes.dispatcher import Dispatcher

GUARD_SECONDS = 600.0
ANSWER_SECONDS = 0.3
"""How long an answer takes after the end that is to wait for it."""


@pytest.mark.parametrize(
    ("end", "is_awaited"), [(None, True), (ValueError("the other thread's"), True), (KeyboardInterrupt(), False)]
)
def test_a_dispatcher_that_ends_waits_for_the_requests_under_way(end: BaseException | None, is_awaited: bool) -> None:
    others, answered = frozenset(threading.enumerate()), list[bool]()
    is_asked, may_answer = threading.Event(), threading.Event()

    def answer() -> None:
        is_asked.set()
        may_answer.wait(GUARD_SECONDS)
        time.sleep(ANSWER_SECONDS)
        answered.append(True)

    def end_work(_: object = None) -> None:
        is_asked.wait(GUARD_SECONDS)
        may_answer.set()
        if end is not None:
            raise end

    found = None
    try:
        with Dispatcher(warn_user=lambda message: None, patience_seconds=0.0) as dispatcher:
            dispatcher.request(answer, lambda _: None)
            if isinstance(end, ValueError):  # raised by another request, and on the main thread
                dispatcher.submit(end_work, lambda _: None)
                while True:
                    dispatcher.run_next()
            end_work()
    except BaseException as error:
        found = error

    assert found is end
    assert bool(answered) == is_awaited
    alive = [thread.name for thread in {*threading.enumerate()} - others]
    assert any(name.startswith("record-") for name in alive) != is_awaited
