"""Convert hours of the calendar to working hours, in which people submit jobs, and back."""

from bisect import bisect_right
from collections.abc import Sequence

from collector.access.scenario import DAYS, Day

HOURS_PER_DAY = 24.0
HOURS_PER_WEEK = 168.0


class WorkingTime:
    """The working hours of every week. Calendar time is in hours from a Monday, 00:00."""

    def __init__(self, hours: tuple[float, float], days: Sequence[Day]) -> None:
        numbers = sorted(DAYS.index(day) for day in days)
        self._starts = [HOURS_PER_DAY * number + hours[0] for number in numbers]
        self._length = hours[1] - hours[0]
        self.hours_per_day = self._length
        self.hours_per_week = self._length * len(numbers)

    def measure(self, time: float) -> float:
        """Return the working hours from the beginning until `time` (calendar)."""
        weeks, hour = divmod(time, HOURS_PER_WEEK)
        num_begun = bisect_right(self._starts, hour)
        if not num_begun:
            return weeks * self.hours_per_week
        of_last = min(hour - self._starts[num_begun - 1], self._length)
        return weeks * self.hours_per_week + (num_begun - 1) * self._length + of_last

    def locate(self, working: float) -> float:
        """Return the calendar time at which so many working hours have passed; at the end of a day, the next begin."""
        weeks, rest = divmod(working, self.hours_per_week)
        day, hour = divmod(rest, self._length)
        # Rounding can make the last moment of a week its `len(starts)`-th day.
        index = min(int(day), len(self._starts) - 1)
        return weeks * HOURS_PER_WEEK + self._starts[index] + hour

    def add(self, time: float, working: float) -> float:
        """Return the calendar time at which `working` hours have passed since `time`; `time` itself at the earliest."""
        return max(time, self.locate(self.measure(time) + working))
