"""Say what a run leaves open because of how long and in which order it measured."""

import pandas as pd

from collector.analysis import Analysis
from collector.answers.answer import Said
from collector.facts import find_window_seconds, join_words
from collector.labels import DEVICE_NAMES
from collector.units import SECOND, format_number

LONG_SECONDS = 600.0
"""A device that computes for ten minutes is as warm as it gets."""
FEWEST_CELLS = 3
"""Two cells stand in the same order by chance in every second round."""


def find_short_windows(analysis: Analysis) -> list[Said]:
    """Return for how long steps were timed in one go, where that was for less than LONG_SECONDS."""
    longest = _find_longest(analysis.collection.results)
    if longest.empty or longest.max() >= LONG_SECONDS:
        return []
    text = f"The speed over hours is not known: at most {_say_longest(longest)} were timed in one go."
    return [Said(text=text, anchor="step-times")]


def _find_longest(results: pd.DataFrame) -> "pd.Series[float]":
    """Return for each device the longest time, in seconds, for which steps were timed without a break."""
    windows = results.assign(window=find_window_seconds(results))[["device", "window", "sustained_seconds"]]
    return windows.groupby("device", sort=True).max().max(axis=1).dropna()


def _say_longest(longest: "pd.Series[float]") -> str:
    """Return `15 s`; of several devices `15 s on the CPU and 2.7 s on the GPU`."""
    said = {str(device): f"{format_number(seconds, SECOND, 2)} s" for device, seconds in longest.items()}
    if len(said) == 1:
        return next(iter(said.values()))
    return join_words(f"{text} on the {DEVICE_NAMES[device]}" for device, text in said.items())


def find_same_order(analysis: Analysis) -> list[Said]:
    """Return that every round measured the cells in the same order, where it did."""
    results = analysis.collection.results
    measured = results[results["started_at"].notna()].sort_values("started_at", kind="stable")
    orders = [tuple(rows["cell_id"]) for _, rows in measured.groupby("repeat")]
    if len(orders) < 2 or len(orders[0]) < FEWEST_CELLS or len(set(orders)) > 1:
        return []
    text = (
        f"All {len(orders)} rounds measured the cells in one order: what each leaves behind for the next "
        "(heat, say) is not known."
    )
    return [Said(text=text, anchor="planned")]
