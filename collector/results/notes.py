"""Merge the notes that the verdicts on a cell's repeats carry."""

import re
from collections import defaultdict
from collections.abc import Iterable

SEPARATOR = "; "
# A number that stands alone, with its sign and unit: not the digits of a GPU's UUID.
LEVELS = re.compile(r"steps on two levels, (?P<shares>.*): the mean of the steps counts")
"""What a measuring process says of its own steps (`bench.verdicts.series`), which knows no other repeat."""
NUMBER = re.compile(r"(?<![\w-])[+-]?\d+(\.\d+)?(?=[\s%,;)]|$)")


def merge_notes(notes: Iterable[str], num_repeats: int, num_by_mean: int = 0) -> str | None:
    """Return the notes, each once, with `; ` between them and how many of the repeats have it; None without any.

    `notes`: of the repeats that have some, one or more each, joined so. Notes that differ in their numbers only are
    one, with the numbers of the first; every repeat's own numbers are in its row. A note that all have alike stands
    as it is. `num_by_mean`: the repeats that the mean of their steps stands for, which the note on levels says.
    """
    found: defaultdict[str, list[str]] = defaultdict(list)
    for joined in notes:
        in_repeat: dict[str, str] = {}
        for note in joined.split(SEPARATOR):
            in_repeat.setdefault(NUMBER.sub("#", note), note)
        for pattern, note in in_repeat.items():
            found[pattern].append(note)
    return SEPARATOR.join(_count_note(alike, num_repeats, num_by_mean) for alike in found.values()) or None


def _count_note(alike: list[str], num_repeats: int, num_by_mean: int) -> str:
    levels = LEVELS.fullmatch(alike[0])
    if levels and num_repeats > 1:
        return _describe_levels(levels["shares"], len(alike), num_repeats, max(num_by_mean, len(alike)))
    differs = len(set(alike)) > 1
    if len(alike) == num_repeats and not differs:
        return alike[0]
    return f"{alike[0]} ({len(alike)} of {num_repeats} repeats{', figures of the first' if differs else ''})"


def _describe_levels(shares: str, number: int, num_repeats: int, num_by_mean: int) -> str:
    """Return in how many repeats the steps jump, and that the mean stands for these and for the others alike."""
    whom = f"all {num_repeats}" if num_by_mean == num_repeats else f"{num_by_mean}"
    return (
        f"steps on two levels in {number} of {num_repeats} repeats, {shares}{' in the first of them' * (number > 1)}: "
        f"the mean of the steps stands for {whom}"
    )
