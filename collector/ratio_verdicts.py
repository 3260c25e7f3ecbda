"""Put the ratios of a comparison into words: one verdict each, adjusted for how many of them are looked at."""

from collections.abc import Sequence

import pandas as pd

from collector.ratio_words import describe_longer
from collector.results.frames import Row, list_rows
from collector.statistics import CONFIDENCE, Estimate, adjust_p_values, invert_estimate
from collector.units import format_significant

NO_DIFFERENCE = "no difference shown"
MACHINES_DIFFER = "no verdict: the machines differ, by how much is not known"
NO_INTERVAL = "no verdict: one repeat counts, no interval"
ESTIMATE_COLUMNS = ["ratio", "log_standard_error", "degrees_of_freedom"]
"""What a ratio and its intervals are read from."""


def describe_ratio(ratio: Estimate, *, subject: str, reference: str) -> str:
    """Return `TensorFlow takes 21 % longer`, where `ratio` is the time of `subject` over that of `reference`.

    The side that takes longer is named, whichever it is. Whether that is shown, `adjust_verdicts` says.
    """
    if ratio.interval is None:
        return NO_INTERVAL
    slower, time_ratio = (subject, ratio) if ratio.center > 1 else (reference, invert_estimate(ratio))
    return f"{slower} takes {describe_longer(time_ratio)}"


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

    `rows`: those with a `p_value` have a `direction`, which is the adjusted verdict where the difference remains, and
    else none is shown; then their `verdict`, if they have one, says so too: a pair has one verdict.
    """
    tested = [index for index, row in enumerate(rows) if row.get("p_value") is not None]
    adjusted = [dict(row) for row in rows]
    for index, p_value in zip(tested, adjust_p_values([rows[index]["p_value"] for index in tested]), strict=True):
        is_shown = p_value < 1 - CONFIDENCE
        verdict = rows[index]["direction"] if is_shown else NO_DIFFERENCE
        adjusted[index] |= {"p_adjusted": p_value, "adjusted_verdict": verdict}
        if not is_shown and "verdict" in adjusted[index]:
            adjusted[index]["verdict"] = NO_DIFFERENCE
    return adjusted


def count_tested(pairs: pd.DataFrame) -> int:
    """Return how many ratios of a comparison Holm's adjustment was made for."""
    return int(pairs["p_value"].notna().sum())


def read_ratio(pair: Row) -> Estimate:
    """Return the ratio of a row of `compare_cells`, which has one."""
    error, freedom = pair["log_standard_error"], pair["degrees_of_freedom"]
    return Estimate(
        center=float(pair["ratio"]),
        log_standard_error=None if pd.isna(error) else float(error),
        degrees_of_freedom=None if pd.isna(freedom) else float(freedom),
    )


def take_joint_intervals(pairs: pd.DataFrame) -> pd.DataFrame:
    """Return the pairs of one comparison with the intervals of its table as `ratio_low` and `ratio_high`.

    Those of tested ratios hold together; a ratio that was not tested has its own.
    """
    tested = pairs["p_value"].notna()
    rows = list_rows(pairs.loc[tested, ESTIMATE_COLUMNS])
    ends = [read_ratio(row).find_joint_interval(len(rows)) for row in rows]
    joint = pd.DataFrame(ends, index=pairs.index[tested], columns=["ratio_low", "ratio_high"], dtype="float64")
    low, high = (pairs[name].mask(tested, joint[name]) for name in ("ratio_low", "ratio_high"))
    return pairs.assign(ratio_low=low, ratio_high=high)


def count_differences(pairs: pd.DataFrame) -> str:
    """Return in a sentence how many ratios were tested, and how many differences remain; empty where none was."""
    tested = pairs[pairs["p_value"].notna()]
    if tested.empty:
        return ""
    compared = f"{len(tested)} ratios are compared" if len(tested) > 1 else "1 ratio is compared"
    found = int((tested["p_value"] < 1 - CONFIDENCE).sum())
    if not found:
        return f"{compared}; no difference is shown."
    remaining = int((tested["adjusted_verdict"] != NO_DIFFERENCE).sum())
    remain = "difference remains" if found == 1 else "differences remain"
    return f"{compared}; after Holm's adjustment {remaining} of {found} {remain}."


def _name_direction(ratio: Estimate) -> str:
    return "slower" if ratio.center > 1 else "faster"
