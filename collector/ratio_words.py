"""Write ratios, their intervals and amounts of time, and judge the ratios of a table together: one verdict each.

A ratio has three digits after the point between 1 and twice, and else three significant digits; a percentage, which is
a ratio less 1, one digit after the point below a hundred and else none. Only what would read as no difference has more.
The side that takes longer is named: below twice the time with an amount in percent, from there on in multiples.
"""

from collections.abc import Sequence

import pandas as pd

from collector.results.frames import Row
from collector.statistics import Estimate, judge_together
from collector.units import NUM_DIGITS, format_significant

HALF, TWICE = 0.5, 2.0
MAX_DIGITS = 8
"""Of a ratio: a nanosecond in a tenth of a second."""
NO_DIFFERENCE = "no difference shown"
UNDECIDED = "undecided"
"""The decision on a ratio of which no difference is shown."""


def format_ratio(ratio: float, *, is_near: bool = True) -> str:
    """Return `0.842`, `1.034`, `8.42`, `22.8`; `is_near`: whether the others beside it are between HALF and TWICE."""
    num_digits = NUM_DIGITS + (is_near and 1 <= ratio < TWICE)
    texts = (format_significant(ratio, number) for number in range(num_digits, MAX_DIGITS))
    return next((text for text in texts if text.strip("0") != "1."), format_significant(ratio, num_digits))


def format_ratios(low: float, high: float) -> str:
    """Return the ends of an interval of ratios: `0.813 to 1.029`."""
    is_near = low > HALF and high < TWICE
    return f"{format_ratio(low, is_near=is_near)} to {format_ratio(high, is_near=is_near)}"


def format_percent(share: float) -> str:
    """Return a share in percent without the sign: `0.9`, `17.9`, `106`."""
    text = f"{100 * share:,.{1 if abs(share) < 1 else 0}f}"
    if share and not text.strip("-0."):
        text = format_significant(100 * share, 1)
    return text.replace("-", "−", 1) if text.startswith("-") else text


def describe_longer(ratio: Estimate) -> str:
    """Return `21.0 % longer` or `8.42 times as long` for a ratio of times above 1."""
    if ratio.center < TWICE:
        return f"{format_percent(ratio.center - 1)} % longer"
    return f"{format_ratio(ratio.center)} times as long"


def quote_longer(ratio: float, low: float, high: float) -> str:
    """Return the interval of a ratio of times, of the slower over the faster: `4.0 to 22.1 %`, `2.91 to 3.40 times`.

    Empty without an interval, and of equal times.
    """
    if pd.isna(low) or ratio == 1:
        return ""
    if ratio < 1:
        ratio, low, high = 1 / ratio, 1 / high, 1 / low
    if ratio < TWICE:
        return f"{format_percent(low - 1)} to {format_percent(high - 1)} %"
    return f"{format_ratios(low, high)} times"


def judge_rows(rows: Sequence[Row], above: str, below: str) -> list[Row]:
    """Return the rows of one table with `joint_low`, `joint_high`, `p_value`, `p_adjusted` and `decision` if tested.

    `rows`: those with an `estimate` are tested. The decision is `above` or `below` where a difference from 1 is shown,
    and else UNDECIDED.
    """
    judged = [dict(row) for row in rows]
    tested = [row for row in judged if "estimate" in row]
    words = {"above": above, "below": below}
    for row, one in zip(tested, judge_together([row["estimate"] for row in tested]), strict=True):
        row |= one._asdict() | {"decision": words.get(one.verdict, UNDECIDED)}
    return judged


def take_joint_intervals(pairs: pd.DataFrame) -> pd.DataFrame:
    """Return the pairs with the intervals that their verdicts rest on as `ratio_low` and `ratio_high`.

    Those of tested ratios hold together; a ratio that was not tested has its own.
    """
    joint = {f"ratio_{end}": pairs[f"joint_{end}"].fillna(pairs[f"ratio_{end}"]) for end in ("low", "high")}
    return pairs.assign(**joint)


def count_differences(pairs: pd.DataFrame) -> str:
    """Return in a sentence how many ratios were tested, and how many of them differ; empty where none was."""
    verdicts = pairs.loc[pairs["p_value"].notna(), "decision"]
    number = int((verdicts != UNDECIDED).sum())
    if len(verdicts) < 2:
        return "" if verdicts.empty else f"1 ratio was tested: {'it differs from 1' if number else NO_DIFFERENCE}."
    differ = "differs" if number == 1 else "differ"
    return f"{len(verdicts):,} ratios were tested together, {number:,} of them {differ}."
