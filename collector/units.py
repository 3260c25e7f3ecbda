"""Write numbers in the units of people, and lists in words. The only place that knows ms, MiB and GiB."""

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

NOT_THERE = "–"
NUM_DIGITS = 3
NUM_TIME_DIGITS = 4
"""Of step times that ratios are computed from: a ratio of two of them is off by a tenth of a percent at most."""
# Beyond these powers of ten a number is written as 1.23e+45: in full it would fill a column with zeros.
WRITTEN_IN_FULL = range(-9, 15)


@dataclass(frozen=True, kw_only=True)
class Unit:
    """A unit for people: `label`, and how many base units one of it is."""

    label: str
    size: float
    num_digits: int = NUM_DIGITS
    """With how many significant digits amounts in it are written where nothing else decides."""


MILLISECOND = Unit(label="ms", size=1e-3)
SECOND = Unit(label="s", size=1.0)
HOUR = Unit(label="h", size=3600.0)
MIB = Unit(label="MiB", size=2.0**20)
GIB = Unit(label="GiB", size=2.0**30)
THROUGHPUT = Unit(label="samples/s", size=1.0, num_digits=NUM_TIME_DIGITS)
TOKENS = Unit(label="tokens/s", size=1.0, num_digits=NUM_TIME_DIGITS)
TOKENS_PER_JOULE = Unit(label="tokens/s/W", size=1.0)
RATIO = Unit(label="", size=1.0)
PERCENT = Unit(label="%", size=0.01)
GFLOP = Unit(label="GFLOP", size=1e9)
GFLOPS = Unit(label="GFLOP/s", size=1e9)
TFLOPS = Unit(label="TFLOP/s", size=1e12)
GIGABYTES_PER_SECOND = Unit(label="GB/s", size=1e9)
JOULE = Unit(label="J", size=1.0)
WATT = Unit(label="W", size=1.0)
MEGAHERTZ = Unit(label="MHz", size=1.0)
CELSIUS = Unit(label="°C", size=1.0)
CORES = Unit(label="cores", size=1.0)


def choose_memory_unit(values: Iterable[float]) -> Unit:
    """Return GiB where the largest of `values` (bytes) is a tenth of one or more, else MiB: a column has one unit.

    A process with a framework holds more, so that the tables of all runs have its memory in GiB.
    """
    return GIB if max(values, default=0) >= GIB.size / 10 else MIB


def choose_rate_unit(values: Iterable[float]) -> Unit:
    """Return TFLOP/s where the largest of `values` (FLOP/s) is 1 TFLOP/s or more, else GFLOP/s."""
    return TFLOPS if max(values, default=0) >= TFLOPS.size else GFLOPS


def format_number(value: float | None, unit: Unit, num_digits: int | None = None) -> str:
    """Return `value` (base units) in `unit` without its label, with the unit's digits; a dash where there is none."""
    if value is None or math.isnan(value):
        return NOT_THERE
    return format_significant(value / unit.size, unit.num_digits if num_digits is None else num_digits)


def format_significant(value: float, num_digits: int = NUM_DIGITS) -> str:
    """Return `value` rounded to so many significant digits, thousands grouped: `0.870`, `35,100`, `1.00e+30`."""
    if value == 0:
        return "0"
    scientific = f"{value:.{num_digits - 1}e}"
    if not math.isfinite(rounded := float(scientific)) or _find_exponent(rounded) not in WRITTEN_IN_FULL:
        return scientific
    return f"{rounded:,.{max(0, num_digits - 1 - _find_exponent(rounded))}f}"


def _find_exponent(value: float) -> int:
    return math.floor(math.log10(abs(value)))


def format_interval(low: float | None, high: float | None, unit: Unit, num_digits: int | None = None) -> str:
    """Return `low to high` in `unit`; a dash where there is no interval."""
    if low is None or high is None or math.isnan(low) or math.isnan(high):
        return NOT_THERE
    return f"{format_number(low, unit, num_digits)} to {format_number(high, unit, num_digits)}"


def format_duration(seconds: float) -> str:
    """Return whole seconds in words: `41 s`, `4 min 12 s`, `2 h 5 min`."""
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    if hours:
        return f"{hours} h {minutes} min"
    return f"{minutes} min {rest} s" if minutes else f"{rest} s"


def join_some(texts: Sequence[str], most: int, *, separator: str = ", ") -> str:
    """Return the first texts, and how many more there are than `most`: `a, b and 1,000 more`."""
    shown = separator.join(texts[:most])
    return f"{shown} and {len(texts) - most:,} more" if len(texts) > most else shown


def count_things(count: int, singular: str) -> str:
    """Return `1 cell`, `2 cells`."""
    return f"{count:,} {singular}{'' if count == 1 else 's'}"


def join_words(words: Iterable[str]) -> str:
    """Return `a`, `a and b`, `a, b and c`; empty where there is none."""
    *others, last = [*words] or [""]
    return f"{', '.join(others)} and {last}" if others else last


def list_some(texts: Sequence[str], most: int) -> list[str]:
    """Return the first texts, and behind them how many more there are than `most`."""
    more = len(texts) - most
    return [*texts[:most], *([f"{more:,} more"] if more > 0 else [])]
