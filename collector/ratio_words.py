"""Say how much longer one side of a ratio of times takes, with as many digits as its interval has to say.

There is one direction: the side that takes longer is named. Below twice the time the amount is in percent, from there
on in multiples.
"""

import math
from collections.abc import Sequence

from collector.statistics import Estimate
from collector.units import NUM_DIGITS, format_significant

TWICE = 2.0
MAX_DECIMALS = 6
"""Of a percentage or a ratio: a nanosecond in a millisecond."""
LONG_NUMBER = 1e5
"""From here on digits after the point say nothing."""
NO_INTERVAL_WORDS = "no interval"


def describe_longer(ratio: Estimate) -> str:
    """Return `21 % longer` or `8.42 times as long` of a ratio of times above 1."""
    return f"{format_longer(ratio)[0]} {'% longer' if is_percent(ratio) else 'times as long'}"


def quote_longer(ratio: Estimate, num_intervals: int) -> str:
    """Return `21 % longer (20 to 23)`, with the interval that holds together with `num_intervals` - 1 others.

    A ratio may differ after Holm's adjustment, and that interval, which is a stricter criterion, hold 1: it says so.
    """
    _, *ends = format_longer(ratio, num_intervals)
    if not ends:
        return f"{describe_longer(ratio)} ({NO_INTERVAL_WORDS})"
    words = "" if excludes_one(ratio, num_intervals) else ", which holds no difference"
    return f"{describe_longer(ratio)} ({' to '.join(ends)}{words})"


def is_percent(ratio: Estimate) -> bool:
    """Return whether an amount of time is said in percent."""
    return ratio.center < TWICE


def excludes_one(ratio: Estimate, num_intervals: int) -> bool:
    """Return whether the interval that holds together with `num_intervals` - 1 others excludes 1."""
    interval = ratio.find_joint_interval(num_intervals)
    return interval is not None and not interval[0] <= 1 <= interval[1]


def format_longer(ratio: Estimate, num_intervals: int = 1) -> tuple[str, ...]:
    """Return a ratio of times and the ends of its interval, in percent above 1 or from TWICE on as multiples.

    The digits of the ratio are those that its interval alone has to say, NUM_DIGITS at most and a percentage to a
    tenth, so that it reads alike wherever it stands. The ends have more where they would read alike. Without an
    interval, the ratio alone with three significant digits.
    """
    own, joint = ratio.interval, ratio.find_joint_interval(num_intervals)
    center, nothing = (100 * (ratio.center - 1), 0.0) if is_percent(ratio) else (ratio.center, 1.0)
    if own is None or joint is None or center <= 0:
        return (format_significant(center),)
    decimals = choose_decimals(center, *_scale(own, ratio), nothing=nothing)
    rank = math.floor(math.log10(center))
    if is_percent(ratio):
        shown = min(decimals, max(1, 1 - rank))
    else:
        shown = max(0, NUM_DIGITS - 1 - rank)
        decimals = max(decimals, shown)
    ends = _scale(joint, ratio)
    finer = _tell_apart(ends, decimals, nothing=nothing)
    return (_format(center, shown), *(_format(end, finer) for end in ends))


def _scale(interval: tuple[float, float], ratio: Estimate) -> tuple[float, float]:
    low, high = interval
    return (100 * (low - 1), 100 * (high - 1)) if is_percent(ratio) else (low, high)


def format_ratios(low: float, high: float) -> tuple[str, str]:
    """Return the ends of an interval of a ratio with three significant digits, or more where they would read alike."""
    least = 2 - math.floor(math.log10(low)) if low > 0 else 2
    decimals = max(least, choose_decimals(math.sqrt(low * high), low, high, nothing=1.0))
    texts = [
        format_significant(value) if decimals == least else _format(value, min(decimals, MAX_DECIMALS))
        for value in (low, high)
    ]
    return texts[0], texts[1]


def choose_decimals(center: float, low: float, high: float, *, nothing: float) -> int:
    """Return how many digits after the point show the shorter arm of an interval, and tell its ends from `nothing`.

    `nothing`: the value that says that there is no difference.
    """
    arm = min(center - low, high - center)
    decimals = max(0, -math.floor(math.log10(arm))) if arm > 0 else MAX_DECIMALS
    return _tell_apart((low, high), min(decimals, MAX_DECIMALS), nothing=nothing)


def _tell_apart(ends: Sequence[float], decimals: int, *, nothing: float) -> int:
    """Return `decimals`, or as many more as it takes that no end which is not `nothing` reads as if it were."""
    while decimals < MAX_DECIMALS and any(round(end, decimals) == nothing != end for end in ends):
        decimals += 1
    return decimals


def _format(value: float, decimals: int) -> str:
    text = format_significant(value) if abs(value) >= LONG_NUMBER else f"{value:,.{decimals}f}"
    return text.replace("-", "−", 1) if text.startswith("-") else text
