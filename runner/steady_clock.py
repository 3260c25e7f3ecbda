"""The time of day of a command, which nobody moves by setting the machine's clock while it runs."""

import time
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta


def count_seconds() -> float:
    """Return the seconds since the machine was booted; where the system can tell, with those of its sleep."""
    return time.clock_gettime(getattr(time, "CLOCK_BOOTTIME", time.CLOCK_MONOTONIC))


@dataclass(frozen=True)
class SteadyClock:
    """Counts on from the time of day at which it was made."""

    begun_at: datetime = field(default_factory=lambda: datetime.now(UTC))
    count: Callable[[], float] = count_seconds
    _begun: float = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "_begun", self.count())

    def read(self) -> datetime:
        """Return the time of day now."""
        return self.begun_at + timedelta(seconds=self.count() - self._begun)

    def find_deadline(self, begun_at: datetime, seconds: float) -> datetime:
        """Return when what began then has taken so long; what began in the future, by another clock, begins now."""
        return min(begun_at, self.read()) + timedelta(seconds=seconds)


CLOCK = SteadyClock()
"""The clock of this process."""
