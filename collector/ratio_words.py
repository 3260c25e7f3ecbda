"""Write ratios, their intervals and amounts of time, and judge the ratios of a table together: one verdict each.

A ratio has three digits after the point between half and twice, and else three significant digits; a percentage, which
is a ratio less 1, one digit after the point below a hundred and else none. That is so whatever the interval is: a
ratio reads alike in every answer, table and plot. Only what would read as no difference, and ends of an interval that
would read alike, have more digits.

There is one direction: the side that takes longer is named. Below twice the time the amount is in percent, from there
on in multiples.
"""

import math
from collections.abc import Sequence

import pandas as pd

from collector.results.frames import Row
from collector.statistics import Estimate, judge_together
from collector.units import NUM_DIGITS, count_decimals, format_significant

HALF, TWICE = 0.5, 2.0
NEAR_DECIMALS = 3
"""Digits after the point of a ratio between HALF and TWICE."""
MAX_DECIMALS = 6
"""Of a percentage or a ratio: a nanosecond in a millisecond."""
LONG_NUMBER, SHORT_NUMBER = 1e5, 1e-5
"""From here on digits after the point say nothing, and below no number of them reads well."""
NO_DIFFERENCE = "no difference shown"
UNDECIDED = "undecided"
"""The decision on a ratio of which no difference is shown."""


def format_ratio(ratio: float) -> str:
    """Return `0.842`, `1.034`, `8.42`, `22.8`."""
    return _write([(ratio, _count_decimals(ratio, is_near=HALF < ratio < TWICE))], nothing=1.0)[0]


def format_ratios(low: float, high: float) -> tuple[str, str]:
    """Return the ends of an interval of ratios; both have NEAR_DECIMALS if they lie between HALF and TWICE."""
    is_near = low > HALF and high < TWICE
    texts = _write([(end, _count_decimals(end, is_near=is_near)) for end in (low, high)], nothing=1.0)
    return texts[0], texts[1]


def format_percent(share: float) -> str:
    """Return a share in percent without the sign: `0.9`, `17.9`, `106`."""
    return _write([_scale_share(share)], nothing=0.0)[0]


def describe_longer(ratio: Estimate) -> str:
    """Return `21.0 % longer` or `8.42 times as long` of a ratio of times above 1."""
    if ratio.center < TWICE:
        return f"{format_percent(ratio.center - 1)} % longer"
    return f"{format_ratio(ratio.center)} times as long"


def quote_longer(ratio: Estimate, num_intervals: int) -> str:
    """Return the interval of a ratio of times above 1, one of so many together: `4.0 to 22.1 %`, `2.91 to 3.40 times`.

    Empty without an interval, and of equal times.
    """
    interval = ratio.find_joint_interval(num_intervals)
    if interval is None or ratio.center <= 1:
        return ""
    if ratio.center < TWICE:
        return f"{' to '.join(_write([_scale_share(end - 1) for end in interval], nothing=0.0))} %"
    return f"{' to '.join(format_ratios(*interval))} times"


def _count_decimals(ratio: float, *, is_near: bool) -> int:
    return NEAR_DECIMALS if is_near or not ratio or not math.isfinite(ratio) else count_decimals(ratio, NUM_DIGITS)


def _scale_share(share: float) -> tuple[float, int]:
    """Return a share in percent, and how many digits after the point it has."""
    return 100 * share, 1 if abs(share) < 1 else 0


def _write(numbers: Sequence[tuple[float, int]], *, nothing: float) -> list[str]:
    """Return each value with its number of digits after the point, or with some more.

    They have more where a value that is not `nothing` would read as if it were, and where several would read alike. If
    no number of digits up to MAX_DECIMALS mends that, they have their own.
    """
    for more in range(MAX_DECIMALS):
        texts = [_format(value, decimals + more) for value, decimals in numbers]
        reads_as_nothing = any(round(value, decimals + more) == nothing != value for value, decimals in numbers)
        if len(set(texts)) == len(texts) and not reads_as_nothing:
            return texts
    return [_format(value, decimals) for value, decimals in numbers]


def _format(value: float, decimals: int) -> str:
    is_extreme = abs(value) >= LONG_NUMBER or 0 < abs(value) < SHORT_NUMBER
    text = format_significant(value) if is_extreme else f"{value:,.{decimals}f}"
    return text.replace("-", "−", 1) if text.startswith("-") else text


def judge_rows(rows: Sequence[Row]) -> list[Row]:
    """Return the rows of one table with `joint_low`, `joint_high`, `p_adjusted` and `decision` if tested.

    `rows`: those with a `p_value` were tested, and have the `estimate` that it is of and its `direction`, which is the
    decision where the joint interval excludes 1; elsewhere it is UNDECIDED.
    """
    judged = [dict(row) for row in rows]
    tested = [row for row in judged if row.get("p_value") is not None]
    for row, one in zip(tested, judge_together([row["estimate"] for row in tested]), strict=True):
        row |= one._asdict() | {"decision": row["direction"] if one.is_different else UNDECIDED}
    return judged


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
    verdicts = pairs.loc[pairs["p_value"].notna(), "decision"]
    number = int((verdicts != UNDECIDED).sum())
    if len(verdicts) < 2:
        return "" if verdicts.empty else f"1 ratio was tested: {'it differs from 1' if number else NO_DIFFERENCE}."
    differ = "differs" if number == 1 else "differ"
    return f"{len(verdicts):,} ratios were tested together, {number:,} of them {differ}."
