"""The time of day as documents hold it: machines without a battery for their clock begin in 1970."""

from datetime import UTC, datetime, timedelta

from bench.schema.document import EARLIEST, LATEST

MAX_ATTEMPT = timedelta(days=366)
"""An attempt may take a year at the most (`request.MAX_SECONDS`): a clock that says more was set meanwhile."""


def measure_attempt(started_at: datetime, finished_at: datetime) -> float | None:
    """Return how many seconds an attempt took by its two times.

    None where they are of a clock that was not set yet at the first of them, and was at the second: nobody knows then.
    """
    took = finished_at - started_at
    return took.total_seconds() if took <= MAX_ATTEMPT else None


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
