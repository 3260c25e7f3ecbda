"""Evaluate the claim that polynomial regression projects the demand for GPU memory."""

import pandas as pd

from collector.claims.study import Claim
from collector.claims.verdicts import ClaimContext, ClaimResult, ReasonedVerdict
from collector.forecast.fit import BACKTEST_HORIZON_YEARS, Forecast, format_gb
from collector.results.frames import list_rows

STUDY_YEAR = 2025
# A projection within this factor of the truth is right. The study gives no error; neighbouring products of one year
# differ as much (in 2024 141, 180 and 256 GB), so nearer than that a projection could not be called wrong.
RIGHT_FACTOR = 1.25


def evaluate_memory(claim: Claim, context: ClaimContext) -> ClaimResult:
    """Evaluate the claim by replaying it: what polynomials fitted to what was known say of STUDY_YEAR."""
    verdict, reason = _judge(context.forecast)
    replayed = _select_year(context.forecast)
    return ClaimResult(statement=claim.statement, verdict=verdict, reason=reason, arithmetic=tuple(_describe(replayed)))


def _select_year(forecast: Forecast | None) -> pd.DataFrame:
    """Return the backtest's rows of STUDY_YEAR; none where the forecast is of another series than the largest GPU's."""
    if forecast is None or forecast.series != "frontier":
        return pd.DataFrame()
    return forecast.backtest[forecast.backtest["year"] == STUDY_YEAR]


def _judge(forecast: Forecast | None) -> ReasonedVerdict:
    scope = "the study's own figures, and what it counts as demand, are not known here"
    rows = [row for row in list_rows(_select_year(forecast)) if str(row["candidate"]).startswith("polynomial")]
    if not rows:
        return "not tested here", scope
    truth = rows[0]["actual_gb"]
    given = [row["predicted_gb"] for row in rows if not row["refused"]]
    right = [value for value in given if truth / RIGHT_FACTOR <= value <= truth * RIGHT_FACTOR]
    span = f"{format_gb(min(given))} to {format_gb(max(given))}" if given else "nothing"
    reason = (
        f"tested on the memory of the largest GPU of {STUDY_YEAR} alone: polynomials of degree 2 to 4, fitted on GPUs "
        f"up to {STUDY_YEAR - BACKTEST_HORIZON_YEARS}, give {span} where it has {format_gb(truth)}; {len(right)} of "
        f"{len(rows)} are within a factor of {RIGHT_FACTOR:g}. For the rest, {scope}"
    )
    if len(right) == len(rows):
        return "reproduced", reason
    return ("not decided" if right else "not reproduced"), reason


def _describe(replayed: pd.DataFrame) -> list[str]:
    return [
        f"{row['candidate']}, fitted on GPUs up to {row['origin']}: "
        + ("no forecast" if row["refused"] else f"{format_gb(row['predicted_gb'])}")
        + f" for the largest GPU of {row['year']}, which has {format_gb(row['actual_gb'])}"
        + ("; its 95 % prediction interval holds that" if row["inside"] else "; outside its 95 % prediction interval")
        for row in list_rows(replayed)
    ]
