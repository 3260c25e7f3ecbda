"""Names results whose dates cannot be: before their run was made, or to come. They count all the same.

Clocks of nodes go wrong, and no figure depends on them; but dates choose which attempt counts, and order nights.
"""

from datetime import UTC, datetime, timedelta

import pyarrow as pa
import pyarrow.compute as pc

from bench.schema import EARLIEST, LATEST, Run

TOLERANCE = timedelta(days=1)
"""Clocks of two machines that are kept differ by less than a second; those that are not, by hours where the time zone
is wrong."""


def describe_odd_dates(attempts: pa.Table, run: Run, now: datetime | None = None) -> tuple[str, ...]:
    """Return in a sentence each how many results are dated before their run was made, and how many in the future.

    Those of clocks that were never set, which say so themselves, are left out.
    """
    latest = (now or datetime.now(UTC)) + TOLERANCE
    started, finished = attempts["started_at"], attempts["finished_at"]
    kinds = (
        (pc.and_(pc.less(started, _scalar(run.created_at - TOLERANCE)), pc.greater(started, _scalar(EARLIEST))),
         f"are dated more than a day before their run was made, on {run.created_at:%Y-%m-%d}"),
        (pc.and_(pc.greater(finished, _scalar(latest)), pc.less(finished, _scalar(LATEST))), "are dated in the future"),
    )  # fmt: skip
    found = []
    for is_odd, words in kinds:
        count = pc.sum(is_odd).as_py() or 0
        if count:
            key = attempts["key"].filter(is_odd)[0].as_py()
            verb = words if count > 1 else words.replace("are", "is", 1).replace("their", "its")
            found.append(
                f"{count:,} {'results' if count > 1 else 'result'} {verb} ({key}): a clock was wrong, or a date"
            )
    return tuple(found)


def _scalar(moment: datetime) -> pa.Scalar:
    return pa.scalar(moment.astimezone(UTC), pa.timestamp("us", tz="UTC"))
