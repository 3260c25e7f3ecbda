"""Evaluate the claim that polynomial regression projects GPU memory, read as that of the largest GPU of a year."""

from collector.claims.study import Claim
from collector.claims.verdicts import ClaimContext, ClaimResult, ClaimVerdict, Finding
from collector.forecast.fit import STUDY_YEAR, Projection, format_amount, replay_study
from collector.forecast.series import load_series

LONG_AGO = 2022
# A projection within this factor of the truth is right. The study gives no error; products of one year differ by more
# (in 2024 141, 180 and 256 GB), so nearer than that a projection could not be called wrong.
RIGHT_FACTOR = 1.25


def evaluate_memory(claim: Claim, context: ClaimContext) -> ClaimResult:
    """Evaluate the claim by replaying it: degrees 2 to 4, fitted up to each year that the study's data may end in."""
    projections = replay_study(load_series())
    polynomials = [projection for projection in projections if projection.is_of_study]
    scope = "the study's own figures, its degree, its last year of data and what it counts as demand are not known here"
    verdict: ClaimVerdict = "not tested here"
    reason = scope
    if polynomials:
        right = [projection for projection in polynomials if _is_right(projection)]
        verdict = "not decided" if right else "not reproduced"
        verdict = "reproduced" if len(right) == len(polynomials) else verdict
        reason = (
            f"{len(right)} of {len(polynomials)} polynomials come within a factor of {RIGHT_FACTOR:g} of the largest "
            f"GPU of {STUDY_YEAR}, {_format_gb(polynomials[0].truth)}: fitted on GPUs {_list_spans(polynomials)}; "
            f"{scope}"
        )
    return ClaimResult(
        statement=claim.statement,
        verdict=verdict,
        reason=reason,
        findings=_find_miss(polynomials),
        arithmetic=tuple(_describe(projection) for projection in projections),
    )


def _is_right(projection: Projection) -> bool:
    """Return whether a projection is within RIGHT_FACTOR of the truth."""
    return projection.truth / RIGHT_FACTOR <= projection.value <= projection.truth * RIGHT_FACTOR


def _list_spans(projections: list[Projection]) -> str:
    """Return `up to 2021 197 GB to 682 GB, up to 2022 ...`."""
    spans = []
    for year in dict.fromkeys(projection.last_year for projection in projections):
        given = [projection.value for projection in projections if projection.last_year == year]
        spans.append(f"up to {year} they give {_format_gb(min(given))} to {_format_gb(max(given))}")
    return ", ".join(spans)


def _find_miss(polynomials: list[Projection]) -> tuple[Finding, ...]:
    """Return a finding if every polynomial fitted on data up to LONG_AGO misses the true memory; none otherwise."""
    found = [projection for projection in polynomials if projection.last_year == LONG_AGO]
    if not found or any(_is_right(projection) for projection in found):
        return ()
    return (Finding(name="misses if fitted up to 2022", reason=f"fitted on GPUs {_list_spans(found)}; none is right"),)


def _describe(projection: Projection) -> str:
    given = _format_gb(projection.value) if projection.value > 0 else "no forecast, as it is zero or less"
    return f"{projection.method}, fitted on GPUs up to {projection.last_year}: {given}"


def _format_gb(memory_gb: float) -> str:
    return format_amount(memory_gb, "GB")
