"""Hold what the report says of one thing to know before trusting a run."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

import pandas as pd

from collector.analysis import Analysis

State = Literal["good", "beware", "unknown"]
MAX_NAMED = 2
"""Things that a line names."""
MEANINGS: Mapping[State, str] = {"beware": "beware", "unknown": "not known", "good": "nothing against it"}
"""Each state in words, the doubts first."""


@dataclass(frozen=True, kw_only=True)
class TrustLine:
    """One thing to know before trusting the figures."""

    title: str
    text: str
    state: State
    doubt: str
    """What to beware of or what is not known, in a few words for the page's header; not used of a good line."""
    anchor: str = ""
    """The id of the part of the report that has more; empty: none has."""

    @property
    def sign(self) -> str:
        """The sign of its state."""
        return {"good": "✓", "beware": "!", "unknown": "?"}[self.state]

    @property
    def meaning(self) -> str:
        """The state in words."""
        return MEANINGS[self.state]


def select_ok(analysis: Analysis) -> pd.DataFrame:
    """Return the rows of the repeats that ended ok."""
    results = analysis.collection.results
    return results[results["status"] == "ok"]


def join_sentences(*texts: str) -> str:
    """Return the texts as sentences, each with a capital letter and a full stop; an empty one is none."""
    return " ".join(f"{text[:1].upper()}{text[1:]}." for text in texts if text)
