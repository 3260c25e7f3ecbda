"""Say how much longer one side of a ratio of times takes, with as many digits as its interval has to say.

There is one direction: the side that takes longer is named. Below twice the time the amount is in percent, from there
on in multiples.
"""

import math
from collections.abc import Sequence

from collector.statistics import Estimate
from collector.units import NUM_DIGITS, NUM_TIME_DIGITS, format_significant

TWICE = 2.0
MAX_DECIMALS = 6
"""Of a percentage or a ratio: a nanosecond in a millisecond."""
LONG_NUMBER = 1e5
"""From here on digits after the point say nothing."""
MAX_TIME_DIGITS = 7
"""Of step times: with more, nobody reads them."""
NO_INTERVAL_WORDS = "no interval"


def describe_longer(ratio: Estimate) -> str:
    """Return `21 % longer` or `8.42 times as long` of a ratio of times above 1."""
    return f"{format_longer(ratio)[0]} {'% longer' if is_percent(ratio) else 'times as long'}"


def describe_longer_share(share: float) -> str:
    """Return how much longer one takes that another takes `share` less time than: of 0.15 `18 % longer`."""
    ratio = 1 / (1 - share)
    return f"{100 * (ratio - 1):.0f} % longer" if ratio < TWICE else f"{format_significant(ratio)} times as long"


def quote_longer(ratio: Estimate, num_intervals: int) -> str:
    """Return `21 % longer (20 to 23)`, with the interval that holds together with `num_intervals` - 1 others."""
    _, *ends = format_longer(ratio, num_intervals)
    if not ends:
        return f"{describe_longer(ratio)} ({NO_INTERVAL_WORDS})"
    return f"{describe_longer(ratio)} ({' to '.join(ends)})"


def is_percent(ratio: Estimate) -> bool:
    """Return whether an amount of time is said in percent."""
    return ratio.center < TWICE


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


def choose_time_digits(first: float, second: float, ratio: Estimate) -> int:
    """Return with how many significant digits two times stand beside their ratio: it is found in them.

    `ratio`: of the slower one over the faster one. Who divides the times as they are written gets its three digits, and
    the words of `describe_longer`, to one of the last digit; at least NUM_TIME_DIGITS, as the times have elsewhere.
    """
    for num_digits in range(NUM_TIME_DIGITS, MAX_TIME_DIGITS + 1):
        slower, faster = sorted((_round(first, num_digits), _round(second, num_digits)), reverse=True)
        if _reads_alike(slower / faster, ratio):
            return num_digits
    return NUM_TIME_DIGITS


def _reads_alike(quotient: float, ratio: Estimate) -> bool:
    """Return whether a quotient is what is written of a ratio, to one of the last digit."""
    written = [(quotient, format_significant(ratio.center))]
    if is_percent(ratio):
        written.append((100 * (quotient - 1), format_longer(ratio)[0]))
    return all(abs(value - number) <= unit for value, text in written for number, unit in [_read(text)])


def _read(text: str) -> tuple[float, float]:
    """Return a number as it is written, and one of its last digit."""
    plain = text.replace(",", "").replace("−", "-")
    return float(plain), 10.0 ** -len(plain.partition(".")[2])


def _round(value: float, num_digits: int) -> float:
    return float(f"{value:.{num_digits - 1}e}")


def format_ratios(low: float, high: float) -> tuple[str, str]:
    """Return the ends of an interval of a ratio with three significant digits, or more where they would read alike."""
    return format_ratio(low, low, high), format_ratio(high, low, high)


def format_ratio(ratio: float, low: float, high: float) -> str:
    """Return a ratio with as many digits as the ends of its interval have: it reads as lying between them."""
    least = 2 - math.floor(math.log10(low)) if low > 0 else 2
    decimals = max(least, choose_decimals(math.sqrt(low * high), low, high, nothing=1.0))
    return format_significant(ratio) if decimals == least else _format(ratio, min(decimals, MAX_DECIMALS))


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
