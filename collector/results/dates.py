"""Names results whose dates cannot be: before their run was made, or to come. They count all the same.

Clocks of nodes go wrong, and no figure depends on them; but dates choose which attempt counts, and order nights.
"""

from datetime import UTC, datetime, timedelta

import pandas as pd

from bench.schema import EARLIEST, LATEST, Run

TOLERANCE = timedelta(days=1)
"""Clocks of two machines that are kept differ by less than a second; those that are not, by hours where the time zone
is wrong."""


def describe_odd_dates(attempts: pd.DataFrame, run: Run, now: datetime | None = None) -> tuple[str, ...]:
    """Return in a sentence each how many results are dated before their run was made, and how many in the future.

    Those of clocks that were never set, which say so themselves, are left out.
    """
    latest = (now or datetime.now(UTC)) + TOLERANCE
    started, finished = attempts["started_at"], attempts["finished_at"]
    kinds = (
        ((started < run.created_at - TOLERANCE) & (started > EARLIEST),
         f"are dated more than a day before their run was made, on {run.created_at:%Y-%m-%d}"),
        ((finished > latest) & (finished < LATEST), "are dated in the future"),
    )  # fmt: skip
    found = []
    for is_odd, words in kinds:
        keys = attempts.loc[is_odd, "key"].to_list()
        if keys:
            verb = words if len(keys) > 1 else words.replace("are", "is", 1).replace("their", "its")
            noun = "results" if len(keys) > 1 else "result"
            found.append(f"{len(keys):,} {noun} {verb} ({keys[0]}): a clock was wrong, or a date")
    return tuple(found)
