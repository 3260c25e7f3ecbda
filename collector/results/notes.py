"""Merge the notes that the verdicts on a cell's repeats carry."""

import re
from collections.abc import Iterable


def merge_notes(notes: Iterable[str]) -> str | None:
    """Return the notes, each once, with `; ` between them; None without any.

    Notes that differ in their numbers only are one: the first is taken. Every repeat's own numbers are in its row.
    """
    kept: dict[str, str] = {}
    for note in notes:
        kept.setdefault(re.sub(r"\d+(\.\d+)?", "#", note), note)
    return "; ".join(kept.values()) or None
