"""Draws series of releases whose future is known, for benchmarks/forecast_coverage.py."""

from collections.abc import Callable

import numpy as np
import numpy.typing as npt
import pandas as pd

from collector.forecast.series import Series, SeriesKind

FloatArray = npt.NDArray[np.float64]

FIRST_YEAR = 2008
NUM_YEARS = 19
"""As many as the table of GPUs has."""
RELEASES_PER_YEAR = 4
"""About as many as the table of GPUs has."""
GROWTH_LOG2 = 0.38
"""A doubling in 2.6 years, as the memory of the largest GPUs of 2008 to 2026."""
BELOW_LOG2 = 1.0
"""Scale of how far releases stay below the largest that could be built, exponential: half of it on average."""


def draw_trend(rng: np.random.Generator, num_years: int) -> FloatArray:
    """Return steady growth; each year is off the trend by itself."""
    return GROWTH_LOG2 * np.arange(num_years) + rng.normal(0, 0.4, num_years)


def draw_walk(rng: np.random.Generator, num_years: int) -> FloatArray:
    """Return a random walk with drift: what a year is off, the later ones keep."""
    return np.cumsum(GROWTH_LOG2 + rng.normal(0, 0.35, num_years))


def draw_generations(rng: np.random.Generator, num_years: int) -> FloatArray:
    """Return generations: nothing for some years, then a doubling."""
    return np.cumsum(rng.random(num_years) < GROWTH_LOG2).astype(float)


def draw_bend(rng: np.random.Generator, num_years: int) -> FloatArray:
    """Return growth that halves or doubles once, in a year that nobody knows."""
    at = int(rng.integers(4, num_years - 2))
    slopes = rng.permutation([GROWTH_LOG2 / 1.5, GROWTH_LOG2 * 1.33])
    steps = np.where(np.arange(num_years) < at, slopes[0], slopes[1])
    return np.asarray(np.cumsum(steps) + rng.normal(0, 0.25, num_years))


def draw_parabola(rng: np.random.Generator, num_years: int) -> FloatArray:
    """Return what the study takes memory for: a parabola in GB, here off by the same factor in every year."""
    years = np.arange(num_years)
    return np.asarray(np.log2(2 + 0.3 * years + 0.6 * years**2) + rng.normal(0, 0.25, num_years))


SCENARIOS: dict[str, Callable[[np.random.Generator, int], FloatArray]] = {
    "trend": draw_trend,
    "random walk": draw_walk,
    "generations": draw_generations,
    "bend": draw_bend,
    "parabola": draw_parabola,
}


def draw_series(rng: np.random.Generator, scenario: str, kind: SeriesKind, horizon: int) -> tuple[Series, FloatArray]:
    """Return a series of NUM_YEARS years, and what is observed `horizon` years after its last (one value or more)."""
    levels = SCENARIOS[scenario](rng, NUM_YEARS + horizon)
    rows = [
        (f"{year}-{number}", FIRST_YEAR + year, FIRST_YEAR + year + (number + 0.5) / RELEASES_PER_YEAR, level - below)
        for year, level in enumerate(levels)
        for number, below in enumerate(rng.exponential(BELOW_LOG2, RELEASES_PER_YEAR))
    ]
    releases = pd.DataFrame(rows, columns=["name", "year", "date", "value"])
    releases["value"] = np.exp2(releases["value"])
    last = FIRST_YEAR + NUM_YEARS - 1
    known = releases[releases["year"] <= last].reset_index(drop=True)
    future = releases.loc[releases["year"] == last + horizon, "value"].to_numpy()
    series = Series(kind=kind, releases=known, quantity="memory", unit="GB", source=scenario)
    return series, future if kind == "all" else future[[future.argmax()]]
