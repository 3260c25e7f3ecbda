"""Read lengths of time as users write them in options: `90s`, `45m`, `8h`, `2d`, `12w`; a bare number is seconds.

The only reader of such texts. Keys of YAML files need none: they are numbers whose unit is in the key's name.
"""

import re
from collections.abc import Callable

from bench.errors import UserError

SECONDS_PER_UNIT = {"": 1.0, "s": 1.0, "m": 60.0, "h": 3600.0, "d": 86_400.0, "w": 604_800.0}
DURATION = re.compile(r"(?P<number>[0-9]+(?:\.[0-9]*)?(?:e\+?[0-9]{1,2})?)(?P<unit>[smhdw]?)", re.ASCII)
EXAMPLES = ("90s", "45m", "8h", "2d", "12w")
MAX_SECONDS = 1e9
"""31 years: far from where dates overflow."""


def parse_duration(option: str, text: str, *, least: str = "") -> float:
    """Return the seconds of a length of time; UserError, which names the `option`, if it is none.

    `least`: the shortest that is taken, in the same words; empty: anything above 0.
    """
    seconds, shortest = _convert(text), _convert(least) if least else None
    if seconds is None or not (shortest or 0) <= seconds <= MAX_SECONDS or seconds == 0:
        bound = (
            "of at most 31 years" if (seconds or 0) > MAX_SECONDS else f"of at least {least}" if least else "above 0"
        )
        examples = [example for example in EXAMPLES if (_convert(example) or 0) >= (shortest or 0)]
        shown = f"{', '.join(examples[:-1])} or {examples[-1]}"
        raise UserError(f"{option} {text}: expected a time {bound}, such as {shown} (a bare number is seconds)")
    return seconds


def read_durations(option: str, *, least: str = "") -> Callable[[str | float], float]:
    """Return what reads the texts that an option is given; a default is seconds already."""

    def read(value: str | float) -> float:
        return parse_duration(option, str(value), least=least)

    return read


def _convert(text: str) -> float | None:
    """Return the seconds of the text; None if it is no length of time."""
    found = DURATION.fullmatch(text)
    return float(found["number"]) * SECONDS_PER_UNIT[found["unit"]] if found else None
