"""Requests of other threads have ended when the work that sent them has, but for a Ctrl-C."""

import threading

import pytest

from runner.kubernetes.tracked_jobs import Dispatcher

GUARD_SECONDS = 600.0


@pytest.mark.parametrize(("end", "is_awaited"), [(ValueError(), True), (KeyboardInterrupt(), False)])
def test_a_dispatcher_that_ends_waits_for_the_requests_under_way(end: BaseException, is_awaited: bool) -> None:
    is_asked, may_answer, is_answered = (threading.Event() for _ in range(3))

    def answer() -> None:
        is_asked.set()
        may_answer.wait(0.3 if is_awaited else GUARD_SECONDS)
        is_answered.set()

    def work() -> None:
        with Dispatcher(warn_user=lambda message: None, patience_seconds=0.0) as dispatcher:
            dispatcher.request(answer, lambda _: None)
            is_asked.wait(GUARD_SECONDS)
            raise end

    with pytest.raises(type(end)):
        work()

    assert is_answered.is_set() == is_awaited
    may_answer.set()
