"""The time of day as documents hold it: machines without a battery for their clock begin in 1970."""

from datetime import UTC, datetime

from bench.schema.document import EARLIEST, LATEST


def bound_time(value: datetime) -> datetime:
    """Return the nearest time that a document can hold."""
    return min(max(value, EARLIEST), LATEST)


def read_time_of_day() -> datetime:
    """Return the time of day by this machine's clock, moved to the nearest that a document can hold."""
    return bound_time(datetime.now(UTC))


def describe_clock(said: datetime) -> str | None:
    """Return a line about a clock whose time no document can hold; None if one can."""
    bounded = bound_time(said)
    if bounded == said:
        return None
    return f"time of day: the machine's clock says {said.isoformat()}; recorded as {bounded.isoformat()}"
