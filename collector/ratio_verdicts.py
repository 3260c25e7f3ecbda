"""Put the ratios of a comparison into words: one verdict each, which allows for how many of them are looked at."""

from collections.abc import Sequence

import pandas as pd

from collector.ratio_words import describe_longer
from collector.results.frames import Row
from collector.statistics import Estimate, adjust_p_value, invert_estimate
from collector.units import format_significant

NO_DIFFERENCE = "no difference shown"
MACHINES_DIFFER = "no verdict: the machines differ, by how much is not known"
NO_INTERVAL = "no verdict: one repeat counts, no interval"


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
    return f"{subject} is {name_direction(ratio)}"


def name_direction(ratio: Estimate) -> str:
    """Return `slower` or `faster`, where `ratio` is the time of what is judged over the other's."""
    return "slower" if ratio.center > 1 else "faster"


def adjust_verdicts(rows: Sequence[Row]) -> list[Row]:
    """Return the rows of one table with `joint_low`, `joint_high`, `p_adjusted` and `adjusted_verdict` if tested.

    `rows`: those with a `p_value` were tested, and have the `estimate` that it is of and its `direction`. The joint
    interval holds together with those of all tested rows. Where it excludes 1, the direction is the adjusted verdict;
    elsewhere no difference is shown, and their `verdict`, if they have one, says so too: a pair has one verdict.
    """
    tested = [index for index, row in enumerate(rows) if row.get("p_value") is not None]
    adjusted = [dict(row) for row in rows]
    for index in tested:
        row, estimate = adjusted[index], rows[index]["estimate"]
        row["joint_low"], row["joint_high"] = estimate.find_joint_interval(len(tested))
        row["p_adjusted"] = adjust_p_value(row["p_value"], len(tested))
        is_shown = estimate.excludes_one(len(tested))
        row["adjusted_verdict"] = row["direction"] if is_shown else NO_DIFFERENCE
        if not is_shown and "verdict" in row:
            row["verdict"] = NO_DIFFERENCE
    return adjusted


def count_tested(pairs: pd.DataFrame) -> int:
    """Return how many ratios of a comparison were tested together."""
    return int(pairs["p_value"].notna().sum())


def take_joint_intervals(pairs: pd.DataFrame) -> pd.DataFrame:
    """Return the pairs with the intervals that their verdicts rest on as `ratio_low` and `ratio_high`.

    Those of tested ratios hold together; a ratio that was not tested has its own.
    """
    joint = {f"ratio_{end}": pairs[f"joint_{end}"].fillna(pairs[f"ratio_{end}"]) for end in ("low", "high")}
    return pairs.assign(**joint)


def count_differences(pairs: pd.DataFrame) -> str:
    """Return in a sentence how many ratios were tested, and how many of them differ; empty where none was."""
    verdicts = pairs.loc[pairs["p_value"].notna(), "adjusted_verdict"]
    if verdicts.empty:
        return ""
    number = int((verdicts != NO_DIFFERENCE).sum())
    if len(verdicts) == 1:
        return f"1 ratio was tested: {'it differs from 1' if number else NO_DIFFERENCE}."
    differ = "differs" if number == 1 else "differ"
    return f"{len(verdicts):,} ratios were tested together, {number:,} of them {differ}."
