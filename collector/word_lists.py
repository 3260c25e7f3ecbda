"""Put the first of many texts into words, for whoever prints them: the collector, and the runner on a cluster."""

from collections.abc import Iterable, Sequence


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
