"""What a user asks to be removed: raw results of runs in which nothing was written for so long."""

import re
from dataclasses import dataclass
from datetime import timedelta

from bench.errors import UserError

AGE = re.compile(r"(?P<number>[1-9][0-9]{0,4})(?P<unit>[dw])")
DAYS = {"d": 1, "w": 7}
"""A run is resumed by itself for a day (`runner.runs.RESUME_WITHIN`), so a day is the least that can be asked for."""


@dataclass(frozen=True, kw_only=True)
class Policy:
    """Which raw results are removed; which never are is in `runner.retention.protection`."""

    older_than: timedelta
    text: str
    """The options as the user wrote them, for the record."""
    include_unfinished: bool = False
    """Also of runs that lack repeats, were not cancelled, and have no report in the store."""


def parse_policy(older_than: str, *, include_unfinished: bool) -> Policy:
    """Return the policy that the options ask for; UserError where `older_than` is no age such as `90d` or `12w`."""
    match = AGE.fullmatch(older_than)
    if match is None:
        raise UserError(
            f"--raw-older-than {older_than}: it takes a whole number of days or weeks, at least one day: 90d or 12w"
        )
    return Policy(
        older_than=timedelta(days=int(match["number"]) * DAYS[match["unit"]]),
        text=f"--raw-older-than {older_than}" + (" --include-unfinished" if include_unfinished else ""),
        include_unfinished=include_unfinished,
    )
