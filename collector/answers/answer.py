"""The sentences that a run is summed up in, and the rules that they come from."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Literal

from collector.analysis import Analysis

Kind = Literal["finding", "unknown"]


@dataclass(frozen=True, kw_only=True)
class Basis:
    """On what the ratios of a sentence were measured."""

    scope: str
    """The machines in words: `one card`, `2 machines`."""
    machines: frozenset[str]
    """The same by name: `one card` of two sentences need not be the same card."""
    num_repeats: tuple[int, int]
    """The fewest and the most repeats that count on a side."""


@dataclass(frozen=True, kw_only=True)
class Figures:
    """All figures that those of a sentence were judged together with, as those of a table of the report."""

    name: str
    """What they are: `ratios of frameworks`."""
    number: int
    are_tested: bool = True
    """Whether a difference is stated where an interval excludes 1; the intervals hold together in any case."""
    are_ratios: bool = True
    """Whether each has two sides, whose spreads may differ; a cost has one."""


@dataclass(frozen=True, kw_only=True)
class Answer:
    """One sentence, or a few, that the data of a run carry."""

    rule: str
    """The id of the rule that it comes from."""
    text: str
    """Plain text; every figure is in it, with its interval where it has one. What it rests on is in it only where most
    other findings rest on something else."""
    anchor: str
    """The id of the table or section of the report that has the figures, without `#`; empty: none has."""
    kind: Kind
    is_on_terminal: bool = True
    """Whether the end of `run` says it too."""
    basis: str = ""
    """What its ratios rest on: machines, repeats, and how many were judged together; empty where it has none."""
    title: str = ""
    """What it is about, in a word or two; empty where it is about other sentences."""


@dataclass(frozen=True, kw_only=True)
class Said:
    """What a rule says of a run."""

    text: str
    anchor: str
    basis: Basis | None = None
    """None where nothing is to say of it, or the text says it."""
    figures: Figures | None = None
    """None where the text quotes no interval of several."""


@dataclass(frozen=True, kw_only=True)
class Rule:
    """What is said of a run, and only if what holds; docs/report.md has a table of these."""

    id: str
    title: str
    """What its sentences are about, in a word or two: a reader looks for it."""
    kind: Kind
    says: str
    """What its sentences say."""
    only_if: str
    """What has to hold for one to appear."""
    order: str
    """In which order its sentences come, where there can be several."""
    is_on_terminal: bool = True
    """Whether the end of `run` says it too; the report has all."""
    find: Callable[[Analysis], Sequence[Said]]
    """Return all its sentences for a run, the first to be shown first."""
