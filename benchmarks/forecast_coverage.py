"""Measures how often the forecast's prediction intervals hold the truth, on simulated series whose future is known.

Prints the tables of docs/forecast.md as Markdown. Series are drawn as benchmarks/forecast_scenarios.py says: as long as
the table of GPUs. `--horizon`: years ahead. `--kind all` forecasts every release instead of the largest of a year. From
the checkout, some minutes: .venv/bin/python benchmarks/forecast_coverage.py
"""

import argparse
import math
from collections.abc import Iterator
from typing import Any, get_args

import numpy as np
import pandas as pd
from forecast_scenarios import SCENARIOS, draw_series

from collector.forecast.fit import Forecast, fit_forecast
from collector.forecast.series import SeriesKind

SEED = 20261122
NO_LIMIT = 1e300
WINNER = "the winner"


def run_scenario(scenario: str, kind: SeriesKind, horizon: int, num_series: int, level: float) -> pd.DataFrame:
    """Return one row per series and candidate: whether its intervals held the truth, and how wide they were."""
    rows: list[dict[str, Any]] = []
    for number in range(num_series):
        rng = np.random.default_rng([SEED, list(SCENARIOS).index(scenario), number])
        series, truth = draw_series(rng, scenario, kind, horizon)
        forecast = fit_forecast(series, year=series.last_year + horizon, level=level, max_factor=NO_LIMIT)
        rows += judge(forecast, truth)
    return pd.DataFrame(rows).assign(scenario=scenario)


def judge(forecast: Forecast, truth: np.ndarray) -> Iterator[dict[str, Any]]:
    """Yield what each candidate, and the winner, said of the year asked for."""
    for row in forecast.asked.itertuples():
        is_calibrated = not math.isnan(row.upper)
        outcome = {
            "calibrated": is_calibrated,
            "held": float(np.mean((row.lower <= truth) & (truth <= row.upper))) if is_calibrated else math.nan,
            "width": row.upper / row.lower if is_calibrated else math.nan,
        }
        yield {"candidate": row.candidate, **outcome}
        if row.candidate == forecast.ranking.winner:
            yield {"candidate": WINNER, **outcome}


def print_table(frame: pd.DataFrame) -> None:
    """Print coverage by candidate and scenario."""
    print("| candidate | " + " | ".join(SCENARIOS) + " | calibrated | median width |")
    print("|---|" + "---|" * (len(SCENARIOS) + 2))
    for name in frame["candidate"].unique():
        rows = frame[frame["candidate"] == name]
        held = [rows.loc[rows["scenario"] == scenario, "held"].mean() for scenario in SCENARIOS]
        cells = [f"{100 * share:.0f} %" if not math.isnan(share) else "–" for share in held]
        cells += [f"{100 * rows['calibrated'].mean():.0f} %", f"x {rows['width'].median():.1f}"]
        print(f"| {name} | " + " | ".join(cells) + " |")


def main() -> None:
    """Simulate and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--series", type=int, default=500, help="simulated series per scenario")
    parser.add_argument("--horizon", type=int, nargs="+", default=[2, 4, 6], help="years ahead")
    parser.add_argument("--kind", choices=get_args(SeriesKind), default="frontier")
    parser.add_argument("--level", type=float, default=95.0, help="percent")
    given = parser.parse_args()
    for horizon in given.horizon:
        print(f"\n{given.kind}, {horizon} years ahead, {given.series} series per scenario, {given.level:g} %\n")
        frames = [
            run_scenario(scenario, given.kind, horizon, given.series, given.level / 100) for scenario in SCENARIOS
        ]
        print_table(pd.concat(frames))


if __name__ == "__main__":
    main()
