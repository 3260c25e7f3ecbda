"""Score candidates by their backtest: errors, how often intervals held the truth, and which one is best."""

import math
from dataclasses import dataclass

import numpy as np
import pandas as pd
from scipy import special

from collector.forecast.calibration import average_squares, calibrate, count_independent

MIN_ORIGINS = 3
"""Fewest origins to score candidates on; at a horizon with fewer, the longest one that has them is taken."""
SAME_LEVEL = 0.05
"""A candidate is no worse than the winner where chance alone gives such a difference more often than this."""


@dataclass(frozen=True, kw_only=True)
class Ranking:
    """What the backtest says of the candidates.

    scores: one row per candidate, in their order: candidate; horizon (years); origins, cases, refused (counts);
    rms_error_log2 (root mean square over the cases that were not refused, each origin once; 1 means off by a factor of
    2; NaN without such a case); own_cases, own_inside (cases in which the candidate's own interval could and did hold
    the truth); calibrated_cases, calibrated_inside (the same of intervals calibrated on what was known at the origin).
    """

    horizon: int | None
    """What was scored, years ahead: the horizon asked for, or the longest shorter one; None: no backtest."""
    scores: pd.DataFrame
    winner: str | None
    """The least error of the candidates that gave a forecast in every case; None: there is none."""
    rivals: tuple[str, ...]
    """Candidates whose errors do not differ from the winner's by more than chance."""
    num_independent: float
    """What the origins are worth in independent cases."""


def rank_candidates(backtest: pd.DataFrame, names: list[str], *, horizon: int, level: float) -> Ranking:
    """Score the candidates `horizon` years ahead, or at the longest horizon below that has MIN_ORIGINS origins."""
    scored = find_scored_horizon(backtest, horizon)
    cases = backtest[backtest["horizon"] == scored]
    scores = pd.DataFrame([_score(name, cases[cases["candidate"] == name], level) for name in names])
    origins = [int(origin) for origin in cases["origin"].unique()]
    num_independent = count_independent(origins, scored) if scored else 0.0
    answered = scores[(scores["cases"] > 0) & (scores["refused"] == 0)]
    by_error = answered.sort_values("rms_error_log2", kind="stable")["candidate"].tolist()
    winner = by_error[0] if by_error else None
    rivals = () if winner is None else _find_rivals(cases, winner, answered["candidate"].tolist(), num_independent)
    return Ranking(horizon=scored, scores=scores, winner=winner, rivals=rivals, num_independent=num_independent)


def find_scored_horizon(backtest: pd.DataFrame, horizon: int) -> int | None:
    """Return the longest horizon up to `horizon` that enough origins have cases for; None if there is none."""
    origins = backtest[backtest["horizon"] <= horizon].groupby("horizon")["origin"].nunique()
    enough = origins[origins >= MIN_ORIGINS]
    return None if enough.empty else int(enough.index.max())


def _score(name: str, cases: pd.DataFrame, level: float) -> dict[str, object]:
    errors = cases["error_log2"].to_numpy()
    answered = ~np.isnan(errors)
    squares = average_squares(cases["origin"].to_numpy()[answered], errors[answered])[1]
    own = cases["inside"].dropna()
    calibrated = _check_forward(cases, level)
    return {
        "candidate": name,
        "origins": cases["origin"].nunique(),
        "cases": len(cases),
        "refused": int(cases["refused"].sum()),
        "rms_error_log2": math.sqrt(squares.mean()) if len(squares) else math.nan,
        "own_cases": len(own),
        "own_inside": int(own.sum()),
        "calibrated_cases": len(calibrated),
        "calibrated_inside": sum(calibrated),
    }


def _check_forward(cases: pd.DataFrame, level: float) -> list[bool]:
    """Return, for each case that earlier ones could calibrate an interval for, whether that held the truth."""
    origins, years = cases["origin"].to_numpy(), cases["year"].to_numpy()
    errors, horizons = cases["error_log2"].to_numpy(), cases["horizon"].to_numpy()
    held = []
    for origin, error, horizon in zip(origins, errors, horizons, strict=True):
        known = years <= origin
        calibration = calibrate(origins[known], errors[known], int(horizon))
        if calibration is not None and not math.isnan(error):
            held.append(abs(error) <= calibration.find_half_width(level))
    return held


def _find_rivals(cases: pd.DataFrame, winner: str, names: list[str], num_independent: float) -> tuple[str, ...]:
    """Compare squared errors with the winner's, origin by origin, by Student's t over independent cases."""
    squares = cases.assign(square=cases["error_log2"] ** 2).pivot_table("square", "origin", "candidate")
    return tuple(
        name for name in names if name != winner and _is_same(squares[name] - squares[winner], num_independent)
    )


def _is_same(differences: pd.Series, num_independent: float) -> bool:
    if num_independent <= 1:
        return True
    spread = float(differences.std(ddof=1))
    if spread == 0:
        return float(differences.mean()) == 0
    t = float(differences.mean()) / (spread / math.sqrt(num_independent))
    return bool(2 * special.stdtr(num_independent - 1, -abs(t)) > SAME_LEVEL)
