"""Define what a user asks to be removed: raw results of runs in which nothing was written for so long."""

from dataclasses import dataclass
from datetime import timedelta

from runner.durations import parse_duration

MIN_AGE = "1d"
"""A run is resumed by itself for a day (`runner.runs.RESUME_WITHIN`), so nothing younger is removed."""


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
    seconds = parse_duration("--raw-older-than", older_than, least=MIN_AGE)
    return Policy(
        older_than=timedelta(seconds=seconds),
        text=f"--raw-older-than {older_than}" + (" --include-unfinished" if include_unfinished else ""),
        include_unfinished=include_unfinished,
    )
