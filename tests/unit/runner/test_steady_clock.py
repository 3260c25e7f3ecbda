"""runner.steady_clock: the time of day counts on, whatever the machine's clock is set to meanwhile."""

from datetime import timedelta

from factories import START
from runner.steady_clock import SteadyClock


def test_it_counts_on_from_where_it_began() -> None:
    seconds = iter([1000.0, 1000.0, 1090.0, 1090.0])
    clock = SteadyClock(begun_at=START, count=lambda: next(seconds))
    assert clock.read() == START
    assert clock.read() == START + timedelta(seconds=90)


def test_a_deadline_counts_from_the_beginning_unless_that_lies_in_the_future() -> None:
    clock = SteadyClock(begun_at=START, count=lambda: 7.0)
    hour = timedelta(hours=1)
    assert clock.find_deadline(START - hour, 7200.0) == START + hour
    assert clock.find_deadline(START + 24 * hour, 7200.0) == START + 2 * hour
