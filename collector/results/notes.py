"""Merge the notes that the verdicts on a cell's repeats carry."""

import re
from collections.abc import Iterable

SEPARATOR = "; "
# A number that stands alone, with its unit: not the digits of a GPU's UUID.
NUMBER = re.compile(r"(?<![\w-])\d+(\.\d+)?(?=[\s%,;)]|$)")


def merge_notes(notes: Iterable[str]) -> str | None:
    """Return the notes, each once, with `; ` between them; None without any. `notes`: one or more each, joined so.

    Notes that differ in their numbers only are one: the first is taken. Every repeat's own numbers are in its row.
    """
    kept: dict[str, str] = {}
    for note in (one for joined in notes for one in joined.split(SEPARATOR)):
        kept.setdefault(NUMBER.sub("#", note), note)
    return SEPARATOR.join(kept.values()) or None
