"""What a claim is evaluated from, what the result holds, and how intervals decide the verdict."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

import pandas as pd

from collector.claims.measurements import Measurements
from collector.claims.plausibility import Algorithm, Rate, describe_algorithm
from collector.claims.stated_times import Counted, ReadTime
from collector.claims.study import Study
from collector.facts import count_left_out
from collector.results.frames import list_rows

ClaimVerdict = Literal[
    "reproduced",
    "not reproduced",
    "not decided",
    "implausible without Winograd",
    "implausible on the stated hardware",
    "impossible on the stated hardware",
    "peak rates only",
    "not tested here",
]
FindingName = Literal[
    "too slow to be a baseline", "its own table disagrees", "no kernel time", "misses if fitted up to 2022"
]
ReasonedVerdict = tuple[ClaimVerdict, str]
Interval = tuple[float, float]
Place = Literal["inside", "outside", "across"]


@dataclass(frozen=True, kw_only=True)
class Finding:
    """What arithmetic shows about a claim and no verdict says; it decides nothing."""

    name: FindingName
    reason: str
    scope: str = ""
    """The reading that it holds under, as in `at 32 px`; empty where it holds under every one."""

    @property
    def title(self) -> str:
        """The name with its scope."""
        return f"{self.name} {self.scope}".strip()


@dataclass(frozen=True, kw_only=True)
class GainClaim:
    """A claim that the time of one program is lower than that of another by about some share."""

    figure: float
    """The share, 0 to 1."""
    pairs: frozenset[frozenset[tuple[str, str]]]
    """The pairs of cells, each as its two (cell_id, environment_id), that it is held against."""
    mean: str = ""
    """The mean over models that decides, in words; empty where nothing decides."""


@dataclass(frozen=True, kw_only=True)
class ClaimResult:
    """A claim with what arithmetic and runs say about it."""

    statement: str
    verdict: ClaimVerdict
    reason: str
    """What the verdict rests on, without a full stop."""
    nearest: str = ""
    """What was measured at the stated work where that is not what decides, as a sentence without a full stop."""
    id: str = ""
    """That of the claim in claims.yaml."""
    is_headline: bool = False
    """Whether the study's abstract makes the claim."""
    is_measured: bool = False
    """Whether the run has a ratio of what the claim compares, whatever its batch, its work and its hardware."""
    provenance: str = ""
    """Who reports the claim, in words that follow "of": the verdict is of the claim as they report it."""
    quote: str = ""
    gain: GainClaim | None = None
    """Of a claim that one program is faster than another: what to look for among the run's comparisons."""
    extremes: str = ""
    """The best and the worst for the claim of several cells; empty where fewer than two were measured."""
    findings: tuple[Finding, ...] = ()
    arithmetic: tuple[str, ...] = ()
    measured: tuple[str, ...] = ()

    @property
    def full_reason(self) -> str:
        """The reason, and what was measured at the stated work."""
        return ". ".join(filter(None, (self.reason, self.nearest)))


@dataclass(frozen=True, kw_only=True)
class ClaimContext:
    """What claims are evaluated from."""

    study: Study
    counted: Counted
    measurements: Measurements


def choose_verdict(worst: ReadTime, measured: ReasonedVerdict) -> ReasonedVerdict:
    """Return the verdict on a claim whose least plausible time is `worst`.

    What is impossible by arithmetic stays so; otherwise what was measured decides, and arithmetic only where that
    decides nothing.
    """
    plausibility = worst.rate.plausibility
    is_decided = measured[0] not in ("not decided", "not tested here")
    if plausibility != "impossible" and (is_decided or plausibility == "possible"):
        return measured
    return judge_rate(worst.rate), f"{worst.describe()}: {describe_algorithm(worst.rate)}"


def judge_rate(rate: Rate) -> ClaimVerdict:
    """Return the verdict on a claim that rests on a time of this rate, by arithmetic alone."""
    verdicts: Mapping[Algorithm | None, ClaimVerdict] = {
        "direct convolutions": "not tested here",
        "F(2x2, 3x3)": "implausible without Winograd",
        "F(4x4, 3x3)": "implausible on the stated hardware",
        None: "impossible on the stated hardware",
    }
    return verdicts[rate.algorithm]


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


def explain_missing_intervals(pairs: pd.DataFrame) -> str:
    """Return why pairs have no interval: left out, of a single repeat, not comparable; empty where all have one."""
    single = int((pairs["ratio"].notna() & pairs["ratio_low"].isna()).sum())
    not_compared = pairs.loc[pairs["ratio"].isna() & pairs["left_out"].isna(), "verdict"].value_counts()
    reasons = [count_left_out([pairs]).removesuffix(".")]
    reasons += [f"no interval for {single} of {len(pairs)} pairs, as a side has one repeat" if single else ""]
    reasons += [f"{verdict} ({count} of {len(pairs)} pairs)" for verdict, count in not_compared.items()]
    return "; ".join(reason for reason in reasons if reason)


def list_missing_intervals(pairs: pd.DataFrame) -> tuple[str, ...]:
    """Return the text of `explain_missing_intervals` as the only line, or no line if it is empty."""
    reasons = explain_missing_intervals(pairs)
    return (reasons,) if reasons else ()
