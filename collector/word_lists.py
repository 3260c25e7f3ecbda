"""Put the first of many texts into words, for whoever prints them: the collector, and the runner on a cluster."""

from collections.abc import Sequence


def join_some(texts: Sequence[str], most: int, *, separator: str = ", ") -> str:
    """Return the first texts, and how many more there are than `most`: `a, b and 1,000 more`."""
    shown = separator.join(texts[:most])
    return f"{shown} and {len(texts) - most:,} more" if len(texts) > most else shown
