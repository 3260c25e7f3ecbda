"""Put ratios into words: each by itself, and adjusted for how many of them are looked at."""

from collections.abc import Sequence

import pandas as pd

from collector.results.frames import Row
from collector.statistics import CONFIDENCE, Estimate, adjust_p_values
from collector.units import format_significant

NO_DIFFERENCE = "no difference shown"
NO_INTERVAL = "no verdict: one repeat counts, no interval"


def describe_ratio(ratio: Estimate, *, subject: str) -> str:
    """Return in words how `subject` compares, where `ratio` is its time over the other's."""
    if ratio.interval is None:
        return NO_INTERVAL
    low, high = ratio.interval
    if low <= 1 <= high:
        return NO_DIFFERENCE
    factors = (ratio.center, low, high) if low > 1 else (1 / ratio.center, 1 / high, 1 / low)
    factor, least, most = (format_significant(value) for value in factors)
    return f"{subject} is {factor}x {_name_direction(ratio)} ({least} to {most})"


def describe_efficiency(efficiency: Estimate) -> str:
    """Return in words how near n GPUs come to n times the throughput of one."""
    if efficiency.interval is None:
        return NO_INTERVAL
    center, low, high = (format_significant(100 * value) for value in (efficiency.center, *efficiency.interval))
    return f"{center} % of linear ({low} to {high})"


def describe_direction(ratio: Estimate, *, subject: str) -> str:
    """Return `TensorFlow is slower`, where `ratio` is the time of `subject` over the other's."""
    return f"{subject} is {_name_direction(ratio)}"


def adjust_verdicts(rows: Sequence[Row]) -> list[Row]:
    """Return the pairs of one comparison with `p_adjusted` and `adjusted_verdict`, by Holm over those that were tested.

    `rows`: those with a `p_value` have a `direction`, which is the verdict where the difference remains.
    """
    tested = [index for index, row in enumerate(rows) if row.get("p_value") is not None]
    adjusted = [dict(row) for row in rows]
    for index, p_value in zip(tested, adjust_p_values([rows[index]["p_value"] for index in tested]), strict=True):
        is_shown = p_value < 1 - CONFIDENCE
        verdict = rows[index]["direction"] if is_shown else NO_DIFFERENCE
        adjusted[index] |= {"p_adjusted": p_value, "adjusted_verdict": verdict}
    return adjusted


def count_differences(pairs: pd.DataFrame) -> str:
    """Return in a sentence how many ratios were tested, and how many differences remain; empty where none was."""
    tested = pairs[pairs["p_value"].notna()]
    if tested.empty:
        return ""
    compared = f"{len(tested)} ratios are compared" if len(tested) > 1 else "1 ratio is compared"
    found = int((tested["verdict"] != NO_DIFFERENCE).sum())
    if not found:
        return f"{compared}; no difference is shown."
    remaining = int((tested["adjusted_verdict"] != NO_DIFFERENCE).sum())
    remain = "difference remains" if found == 1 else "differences remain"
    return f"{compared}; after Holm's adjustment {remaining} of {found} {remain}."


def _name_direction(ratio: Estimate) -> str:
    return "slower" if ratio.center > 1 else "faster"
