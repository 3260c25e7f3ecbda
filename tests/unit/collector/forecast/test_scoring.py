"""Who wins a backtest, and whether the others are worse than by chance."""

import math

import pandas as pd
import pytest

from collector.forecast.scoring import find_scored_horizon, rank_candidates


def make_backtest(errors: dict[str, list[float]], *, horizon: int = 1, inside: bool | None = None) -> pd.DataFrame:
    """Return one case per error, from origins 2010, 2011, ...; NaN is a refused one."""
    rows = [
        {
            "candidate": name,
            "origin": 2010 + number,
            "horizon": horizon,
            "year": 2010 + number + horizon,
            "error_log2": error,
            "inside": inside,
            "refused": math.isnan(error),
        }
        for name, values in errors.items()
        for number, error in enumerate(values)
    ]
    return pd.DataFrame(rows).astype({"inside": "boolean"})


def test_the_winner_has_the_least_root_mean_square_error_among_those_that_always_answer() -> None:
    errors = {"often right": [0.0, 0.0, math.nan, 0.0], "steady": [1.0, -1.0, 1.0, -1.0], "wild": [0.1, 0.1, 0.1, 3.0]}
    ranking = rank_candidates(make_backtest(errors), list(errors), horizon=1, level=0.95)
    assert ranking.winner == "steady"
    scores = ranking.scores.set_index("candidate")
    assert scores["rms_error_log2"].tolist() == pytest.approx([0.0, 1.0, math.sqrt((0.03 + 9) / 4)])
    assert scores["refused"].tolist() == [1, 0, 0]
    assert scores["cases"].tolist() == [4, 4, 4]


def test_candidates_that_differ_by_chance_are_rivals_and_a_much_worse_one_is_none() -> None:
    errors = {
        "winner": [0.1, -0.2, 0.15, -0.1, 0.2, -0.15, 0.1, 0.05],
        "rival": [0.2, -0.1, -0.2, 0.15, 0.1, 0.2, -0.05, 0.1],
        "worse": [2.0, -2.1, 2.05, -2.0, 1.9, 2.0, -2.05, 2.1],
    }
    ranking = rank_candidates(make_backtest(errors), list(errors), horizon=1, level=0.95)
    assert ranking.winner == "winner"
    assert ranking.rivals == ("rival",)
    assert ranking.num_independent == pytest.approx(8.0)


def test_overlapping_cases_tell_candidates_apart_less() -> None:
    errors = {"winner": [0.3, 0.2, 0.4, 0.3], "other": [1.0, 0.6, 1.2, 0.5]}
    apart = rank_candidates(make_backtest(errors), list(errors), horizon=1, level=0.95)
    overlapping = rank_candidates(make_backtest(errors, horizon=4), list(errors), horizon=4, level=0.95)
    # Squares differ by 0.91, 0.32, 1.28 and 0.16: t = 0.6675 / (0.5226 / 2) = 2.55 with 3 degrees of freedom, p = 0.08.
    assert apart.rivals == ("other",)
    assert overlapping.num_independent == pytest.approx(16 / (4 + 2 * (3 * 9 / 16 + 2 / 4 + 1 / 16)))
    assert overlapping.rivals == ("other",)


def test_without_enough_origins_a_shorter_horizon_is_scored_and_without_any_nobody_wins() -> None:
    cases = pd.concat([make_backtest({"a": [0.1] * 5}, horizon=2), make_backtest({"a": [0.1] * 2}, horizon=3)])
    assert find_scored_horizon(cases, 3) == 2
    assert find_scored_horizon(cases, 2) == 2
    assert find_scored_horizon(cases, 1) is None
    ranking = rank_candidates(cases, ["a"], horizon=1, level=0.95)
    assert (ranking.winner, ranking.horizon) == (None, None)


def test_calibrated_intervals_are_checked_on_later_cases_than_they_were_calibrated_on() -> None:
    # From 2012 on two errors of 0.1 are known: half width 4.30 x 0.1. The case of 2014 is off by far more.
    errors = {"a": [0.1, 0.1, 0.1, 0.1, 5.0]}
    scores = rank_candidates(make_backtest(errors), ["a"], horizon=1, level=0.95).scores
    assert scores.loc[0, "calibrated_cases"] == 3
    assert scores.loc[0, "calibrated_inside"] == 2
    assert scores.loc[0, "own_cases"] == 0


def test_own_intervals_are_counted_where_there_are_any() -> None:
    scores = rank_candidates(make_backtest({"a": [0.1] * 4}, inside=True), ["a"], horizon=1, level=0.95).scores
    assert scores.loc[0, "own_cases"] == 4
    assert scores.loc[0, "own_inside"] == 4
