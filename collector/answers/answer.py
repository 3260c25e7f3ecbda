"""The sentences that a run is summed up in, and the rules that they come from."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Literal

from collector.analysis import Analysis

Kind = Literal["finding", "unknown"]


@dataclass(frozen=True, kw_only=True)
class Answer:
    """One sentence, or a few, that the data of a run carry."""

    rule: str
    """The id of the rule that it comes from."""
    text: str
    """Plain text; every figure is in it, with its interval where it has one."""
    anchor: str
    """The id of the table or section of the report that has the figures, without `#`; empty: none has."""
    kind: Kind


@dataclass(frozen=True, kw_only=True)
class Said:
    """What a rule says of a run."""

    text: str
    anchor: str


@dataclass(frozen=True, kw_only=True)
class Rule:
    """What is said of a run, and only if what holds; docs/report.md has a table of these."""

    id: str
    kind: Kind
    says: str
    """What its sentences say."""
    only_if: str
    """What has to hold for one to appear."""
    order: str
    """In which order its sentences come, where there can be several."""
    find: Callable[[Analysis], Sequence[Said]]
    """Return all its sentences for a run, the first to be shown first."""
