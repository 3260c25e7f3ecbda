"""Intervals and the band of a claim come in, verdicts go out; also what an answer holds, and what it is judged by."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import pandas as pd

from collector.claims.measurements import Measurements
from collector.claims.plausibility import Counted
from collector.claims.study import Study
from collector.comparisons import count_left_out
from collector.forecast.fit import Forecast
from collector.results.frames import list_rows

ClaimVerdict = Literal[
    "reproduced",
    "not reproduced",
    "not decided",
    "implausible on the stated hardware",
    "impossible on the stated hardware",
    "not tested here",
]
Judgement = tuple[ClaimVerdict, str]
Interval = tuple[float, float]
Place = Literal["inside", "outside", "across"]


@dataclass(frozen=True, kw_only=True)
class ClaimResult:
    """A claim with what arithmetic and runs say about it."""

    statement: str
    verdict: ClaimVerdict
    reason: str
    arithmetic: tuple[str, ...] = ()
    measured: tuple[str, ...] = ()


@dataclass(frozen=True, kw_only=True)
class ClaimContext:
    """What a claim is judged by."""

    study: Study
    counted: Counted
    measurements: Measurements
    forecast: Forecast | None


def list_intervals(pairs: pd.DataFrame) -> list[Interval]:
    """Return the interval of each pair's ratio; every pair must have one."""
    return [(row["ratio_low"], row["ratio_high"]) for row in list_rows(pairs)]


def place_interval(interval: Interval, band: Interval) -> Place:
    """Return where an interval lies: inside the band, outside without touching it, or across one of its edges."""
    low, high = interval
    if band[0] <= low and high <= band[1]:
        return "inside"
    return "outside" if high < band[0] or low > band[1] else "across"


def decide(places: Sequence[Place]) -> ClaimVerdict:
    """Return the verdict on a claim that must hold in every one of `places`, of which there is one at least."""
    if "outside" in places:
        return "not reproduced"
    return "not decided" if "across" in places else "reproduced"


def explain_gaps(pairs: pd.DataFrame) -> str:
    """Return why pairs have no interval: left out, of a single repeat, not comparable; empty where all have one."""
    single = int((pairs["ratio"].notna() & pairs["ratio_low"].isna()).sum())
    refused = pairs.loc[pairs["ratio"].isna() & pairs["left_out"].isna(), "verdict"].value_counts()
    gaps = [count_left_out([pairs]).removesuffix(".")]
    gaps += [f"no interval for {single} of {len(pairs)} pairs, as a side has one repeat" if single else ""]
    gaps += [f"{verdict} ({count} of {len(pairs)} pairs)" for verdict, count in refused.items()]
    return "; ".join(gap for gap in gaps if gap)


def list_gaps(pairs: pd.DataFrame) -> tuple[str, ...]:
    """Return the text of `explain_gaps` as a line, or none."""
    gaps = explain_gaps(pairs)
    return (gaps,) if gaps else ()
