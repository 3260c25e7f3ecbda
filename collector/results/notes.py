"""Merge the notes that the verdicts on a cell's repeats carry."""

import re
from collections import defaultdict
from collections.abc import Iterable

SEPARATOR = "; "
# A number that stands alone, with its sign and unit: not the digits of a GPU's UUID.
NUMBER = re.compile(r"(?<![\w-])[+-]?\d+(\.\d+)?(?=[\s%,;)]|$)")


def merge_notes(notes: Iterable[str], num_repeats: int) -> str | None:
    """Return the notes, each once, with `; ` between them and how many of the repeats have it; None without any.

    `notes`: of the repeats that have some, one or more each, joined so. Notes that differ in their numbers only are
    one, with the numbers of the first; every repeat's own numbers are in its row. A note that all have alike stands
    as it is.
    """
    found: defaultdict[str, list[str]] = defaultdict(list)
    for joined in notes:
        in_repeat: dict[str, str] = {}
        for note in joined.split(SEPARATOR):
            in_repeat.setdefault(NUMBER.sub("#", note), note)
        for pattern, note in in_repeat.items():
            found[pattern].append(note)
    return SEPARATOR.join(_count_note(alike, num_repeats) for alike in found.values()) or None


def _count_note(alike: list[str], num_repeats: int) -> str:
    differs = len(set(alike)) > 1
    if len(alike) == num_repeats and not differs:
        return alike[0]
    return f"{alike[0]} ({len(alike)} of {num_repeats} repeats{', figures of the first' if differs else ''})"
