"""Working time: hours of the calendar against hours in which people work, by hand."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from collector.access.scenario import DAYS
from collector.access.working_time import WorkingTime

OFFICE = WorkingTime((9.0, 17.0), ("mon", "tue", "wed", "thu", "fri"))
MONDAY, FRIDAY, NEXT_MONDAY = 0.0, 96.0, 168.0


@pytest.mark.parametrize(
    ("now", "working", "then"),
    [
        (MONDAY, 0.0, MONDAY + 9),
        (MONDAY + 10, 3.0, MONDAY + 13),
        (MONDAY + 16, 3.0, MONDAY + 24 + 11),  # 1 h on Monday, 2 h on Tuesday
        (MONDAY + 20, 1.0, MONDAY + 24 + 10),
        (FRIDAY + 16.5, 1.0, NEXT_MONDAY + 9.5),
        (FRIDAY + 30, 8.0 * 5 + 1, NEXT_MONDAY + 168 + 10),
    ],
)
def test_working_hours_pass_only_while_people_work(now: float, working: float, then: float) -> None:
    assert OFFICE.add(now, working) == pytest.approx(then)


def test_days_can_stand_in_any_order_and_days_between_can_be_free() -> None:
    part_time = WorkingTime((8.0, 12.0), ("wed", "mon"))
    assert part_time.hours_per_week == 8.0
    assert part_time.add(MONDAY + 11, 2.0) == pytest.approx(48 + 9)


def test_around_the_clock_working_time_is_the_calendar() -> None:
    always = WorkingTime((0.0, 24.0), DAYS)
    assert always.add(100.0, 1000.5) == pytest.approx(1100.5)


@given(now=st.floats(0, 2000), working=st.floats(0, 500))
def test_as_many_working_hours_lie_between_as_were_added(now: float, working: float) -> None:
    then = OFFICE.add(now, working)
    assert then >= now
    assert OFFICE.measure(then) - OFFICE.measure(now) == pytest.approx(working, abs=1e-6)
