"""Say what changed in the environment of cells between two nights."""

from collections.abc import Sequence

from bench.schema import NightChange
from collector.nights.series import Facts, Nights

MAX_LENGTH = 300
"""Of one side of a change: the names of many nodes are cut."""


def describe_changes(nights: Nights, rows: Sequence[int], first: int) -> tuple[NightChange, ...]:
    """Return what differs between the newest night and the last one before `first` that the series have.

    Of several series all values together. A fact that only one of the nights has recorded differs too: it was, or is,
    unknown.
    """
    before: Facts = {}
    after: Facts = {}
    for row in rows:
        earlier = [facts for facts in nights.facts[row][:first] if facts]
        if earlier:
            _add(before, earlier[-1])
            _add(after, nights.facts[row][-1])
    return tuple(
        NightChange(what=what, before=_cut(before.get(what)), after=_cut(after.get(what)))
        for what in sorted({*before, *after})
        if before.get(what) != after.get(what)
    )


def _add(total: Facts, facts: Facts) -> None:
    for name, text in facts.items():
        values = {value for known in (total.get(name), text) if known for value in known.split(", ")}
        total[name] = ", ".join(sorted(values)) or None


def _cut(text: str | None) -> str | None:
    return text if text is None or len(text) <= MAX_LENGTH else text[: MAX_LENGTH - 1] + "…"
