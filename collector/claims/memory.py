"""Evaluate the claim that polynomial regression projects GPU memory, read as that of the largest GPU of a year."""

from dataclasses import dataclass

import pandas as pd

from collector.claims.study import Claim
from collector.claims.verdicts import ClaimContext, ClaimResult, ClaimVerdict, Finding
from collector.forecast.fit import MIN_DATES, Forecast, format_gb
from collector.forecast.trend import CANDIDATES, Candidate, predict_memory

STUDY_YEAR = 2025
# The study does not say what its last year of data is: from one to four years ahead.
LAST_YEARS = (2021, 2022, 2023, 2024)
LONG_AGO = 2022
# A projection within this factor of the truth is right. The study gives no error; products of one year differ by more
# (in 2024 141, 180 and 256 GB), so nearer than that a projection could not be called wrong.
RIGHT_FACTOR = 1.25


@dataclass(frozen=True, kw_only=True)
class Projection:
    """What a fit on GPUs up to a year gives for STUDY_YEAR, in GB; zero or less is no forecast."""

    candidate: Candidate
    last_year: int
    memory_gb: float
    truth_gb: float

    @property
    def is_right(self) -> bool:
        """Whether it is within RIGHT_FACTOR of the truth."""
        return self.truth_gb / RIGHT_FACTOR <= self.memory_gb <= self.truth_gb * RIGHT_FACTOR

    @property
    def is_polynomial(self) -> bool:
        """Whether it is by the study's method."""
        return not self.candidate.in_log2


def evaluate_memory(claim: Claim, context: ClaimContext) -> ClaimResult:
    """Evaluate the claim by replaying it: degrees 2 to 4, fitted up to each year that the study's data may end in."""
    projections = _replay(context.forecast)
    polynomials = [projection for projection in projections if projection.is_polynomial]
    scope = "the study's own figures, its degree, its last year of data and what it counts as demand are not known here"
    verdict: ClaimVerdict = "not tested here"
    reason = scope
    if polynomials:
        right = [projection for projection in polynomials if projection.is_right]
        verdict = "not decided" if right else "not reproduced"
        verdict = "reproduced" if len(right) == len(polynomials) else verdict
        reason = (
            f"{len(right)} of {len(polynomials)} polynomials come within a factor of {RIGHT_FACTOR:g} of the largest "
            f"GPU of {STUDY_YEAR}, {format_gb(polynomials[0].truth_gb)}: fitted on GPUs {_list_spans(polynomials)}; "
            f"{scope}"
        )
    return ClaimResult(
        statement=claim.statement,
        verdict=verdict,
        reason=reason,
        findings=_find_miss(polynomials),
        arithmetic=tuple(_describe(projection) for projection in projections),
    )


def _replay(forecast: Forecast | None) -> list[Projection]:
    """Return the projections of STUDY_YEAR; none where the forecast is of another series than the largest GPU's."""
    if forecast is None or forecast.series != "frontier":
        return []
    observations = forecast.observations
    asked = observations[observations["year"] == STUDY_YEAR]
    known = {year: observations[observations["year"] <= year] for year in LAST_YEARS}
    return [
        _project(candidate, year, rows, asked)
        for year, rows in known.items()
        if len(asked) and rows["date"].nunique() >= MIN_DATES
        for candidate in CANDIDATES
    ]


def _project(candidate: Candidate, last_year: int, known: pd.DataFrame, asked: pd.DataFrame) -> Projection:
    predicted = predict_memory(candidate, known, asked["date"].to_numpy(dtype=float))
    return Projection(
        candidate=candidate,
        last_year=last_year,
        memory_gb=float(predicted["memory_gb"].iloc[0]),
        truth_gb=float(asked["memory_gb"].iloc[0]),
    )


def _list_spans(projections: list[Projection]) -> str:
    """Return `up to 2021 197 GB to 682 GB, up to 2022 ...`."""
    spans = []
    for year in dict.fromkeys(projection.last_year for projection in projections):
        given = [projection.memory_gb for projection in projections if projection.last_year == year]
        spans.append(f"up to {year} they give {format_gb(min(given))} to {format_gb(max(given))}")
    return ", ".join(spans)


def _find_miss(polynomials: list[Projection]) -> tuple[Finding, ...]:
    """Return a finding if every polynomial fitted on data up to LONG_AGO misses the true memory; none otherwise."""
    found = [projection for projection in polynomials if projection.last_year == LONG_AGO]
    if not found or any(projection.is_right for projection in found):
        return ()
    return (Finding(name="misses if fitted up to 2022", reason=f"fitted on GPUs {_list_spans(found)}; none is right"),)


def _describe(projection: Projection) -> str:
    given = format_gb(projection.memory_gb) if projection.memory_gb > 0 else "no forecast, as it is zero or less"
    return f"{projection.candidate.name}, fitted on GPUs up to {projection.last_year}: {given}"
