"""Write ratios, their intervals and amounts of time, and decide with how many digits: nothing else does.

A ratio has three digits after the point between half and twice, and else three significant digits; a percentage, which
is a ratio less 1, one digit after the point below a hundred and else none. That is so whatever the interval is: a
ratio reads alike in every answer, table and plot. Only what would read as no difference, and ends of an interval that
would read alike, have more digits.

There is one direction: the side that takes longer is named. Below twice the time the amount is in percent, from there
on in multiples.
"""

import math
from collections.abc import Sequence

from collector.statistics import Estimate
from collector.units import NUM_DIGITS, NUM_TIME_DIGITS, count_decimals, format_significant

HALF, TWICE = 0.5, 2.0
NEAR_DECIMALS = 3
"""Digits after the point of a ratio between HALF and TWICE."""
MAX_DECIMALS = 6
"""Of a percentage or a ratio: a nanosecond in a millisecond."""
LONG_NUMBER, SHORT_NUMBER = 1e5, 1e-5
"""From here on digits after the point say nothing, and below no number of them reads well."""
MAX_TIME_DIGITS = 7
"""Of step times: with more, nobody reads them."""
NO_INTERVAL_WORDS = "no interval"


def format_ratio(ratio: float) -> str:
    """Return `0.842`, `1.034`, `8.42`, `22.8`."""
    (text,) = _write([(ratio, _count_ratio_decimals(ratio))], nothing=1.0)
    return text


def format_ratios(low: float, high: float) -> tuple[str, str]:
    """Return the ends of an interval of ratios."""
    written_low, written_high = _write(_scale_ratios(low, high), nothing=1.0)
    return written_low, written_high


def format_percent(share: float) -> str:
    """Return a share in percent without the sign: `0.9`, `17.9`, `106`."""
    (text,) = _write([_scale_share(share)], nothing=0.0)
    return text


def describe_longer(ratio: Estimate) -> str:
    """Return `21.0 % longer` or `8.42 times as long` of a ratio of times above 1."""
    return f"{format_longer(ratio)[0]} {'% longer' if is_percent(ratio) else 'times as long'}"


def is_percent(ratio: Estimate) -> bool:
    """Return whether an amount of time is said in percent."""
    return ratio.center < TWICE


def format_longer(ratio: Estimate, num_intervals: int = 1) -> tuple[str, ...]:
    """Return a ratio of times and the ends of its interval, in percent above 1 or from TWICE on as multiples.

    Without an interval, and of equal times, the ratio alone.
    """
    center = format_percent(ratio.center - 1) if is_percent(ratio) else format_ratio(ratio.center)
    interval = ratio.find_joint_interval(num_intervals)
    if interval is None or ratio.center <= 1:
        return (center,)
    low, high = interval
    if is_percent(ratio):
        return (center, *_write([_scale_share(low - 1), _scale_share(high - 1)], nothing=0.0, apart_from=center))
    return (center, *_write(_scale_ratios(low, high), nothing=1.0, apart_from=center))


def choose_time_digits(first: float, second: float, ratio: Estimate) -> int:
    """Return with how many significant digits two times stand beside their ratio: it is found in them.

    `ratio`: of the slower one over the faster one. Who divides the times as they are written gets the words of
    `describe_longer`, to one of the last digit; at least NUM_TIME_DIGITS, as the times have elsewhere.
    """
    amount, is_in_percent = format_longer(ratio)[0], is_percent(ratio)
    written, unit = _read(amount)
    for num_digits in range(NUM_TIME_DIGITS, MAX_TIME_DIGITS + 1):
        slower, faster = sorted((_round(first, num_digits), _round(second, num_digits)), reverse=True)
        quotient = 100 * (slower / faster - 1) if is_in_percent else slower / faster
        if abs(quotient - written) <= unit:
            return num_digits
    return NUM_TIME_DIGITS


def _read(text: str) -> tuple[float, float]:
    """Parse a number as this module writes it; return it, and the value of one in its last digit."""
    plain = text.replace(",", "").replace("−", "-")
    return float(plain), 10.0 ** -len(plain.partition(".")[2])


def _round(value: float, num_digits: int) -> float:
    return float(f"{value:.{num_digits - 1}e}")


def _count_ratio_decimals(ratio: float) -> int:
    return NEAR_DECIMALS if HALF < ratio < TWICE else _count_significant_decimals(ratio)


def _count_significant_decimals(ratio: float) -> int:
    return count_decimals(ratio, NUM_DIGITS) if ratio and math.isfinite(ratio) else NEAR_DECIMALS


def _scale_ratios(low: float, high: float) -> list[tuple[float, int]]:
    """Return the ends of an interval with their digits after the point.

    Both have those of a ratio between HALF and TWICE if they lie there, else both three significant digits.
    """
    is_near = low > HALF and high < TWICE
    return [(end, NEAR_DECIMALS if is_near else _count_significant_decimals(end)) for end in (low, high)]


def _scale_share(share: float) -> tuple[float, int]:
    """Return a share in percent, and how many digits after the point it has."""
    percent = 100 * share
    return percent, 1 if abs(percent) < 100 else 0


def _write(numbers: Sequence[tuple[float, int]], *, nothing: float, apart_from: str = "") -> list[str]:
    """Return each value with its number of digits after the point, or with some more.

    They have more where a value that is not `nothing` would read as if it were, where several would read alike, or one
    as `apart_from`. If no number of digits up to MAX_DECIMALS mends that, they have their own.
    """
    for more in range(MAX_DECIMALS):
        texts = [_format(value, decimals + more) for value, decimals in numbers]
        reads_as_nothing = any(round(value, decimals + more) == nothing != value for value, decimals in numbers)
        if len({apart_from, *texts}) == len(texts) + 1 and not reads_as_nothing:
            return texts
    return [_format(value, decimals) for value, decimals in numbers]


def _format(value: float, decimals: int) -> str:
    is_extreme = abs(value) >= LONG_NUMBER or 0 < abs(value) < SHORT_NUMBER
    text = format_significant(value) if is_extreme else f"{value:,.{decimals}f}"
    return text.replace("-", "−", 1) if text.startswith("-") else text
