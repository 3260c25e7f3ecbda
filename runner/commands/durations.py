"""Durations as options take them: `90`, `90s`, `15m`, `8h`, `2d`, `12w`."""

import re
from collections.abc import Callable

from bench.errors import UserError

SECONDS_PER_UNIT = {"": 1.0, "s": 1.0, "m": 60.0, "h": 3600.0, "d": 86_400.0, "w": 604_800.0}
MAX_SECONDS = 1e9
"""Thirty years; a longer time is a slip."""
DURATION = "TIME"
"""What help shows for a duration."""


def parse_duration(option: str, text: str) -> float:
    """Return the seconds of a duration; UserError where it is none, or not above 0. A bare number is seconds."""
    found = re.fullmatch(r"(\d+(?:\.\d+)?)([smhdw]?)", text, re.ASCII)
    seconds = float(found[1]) * SECONDS_PER_UNIT[found[2]] if found else 0.0
    if not 0 < seconds <= MAX_SECONDS:
        raise UserError(f"{option} {text}: expected a time above 0, such as 90m, 8h or 2d (a bare number is seconds)")
    return seconds


def make_duration_parser(option: str) -> Callable[[str | float], float]:
    """Return what typer reads the values of an option with; a default is a number of seconds already."""
    return lambda value: value if isinstance(value, float) else parse_duration(option, str(value))
