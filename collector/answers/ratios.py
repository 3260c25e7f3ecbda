"""Put many tested ratios into one sentence: how many differ from 1, and from where to where they go.

The two ends are chosen by their values among all ratios of their table. An interval of 95 % does not hold for a figure
that was chosen so; one that holds together with those of all other ratios of the table does, so these are quoted. By
the same intervals a ratio differs from 1, or is not shown to.
"""

from collections import Counter
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, replace

from collector.answers.answer import Basis, Figures, Said
from collector.answers.measured import FULL_NAMES, ShortNames
from collector.facts import join_words
from collector.ratio_verdicts import NO_DIFFERENCE
from collector.ratio_words import (
    format_percent,
    format_percents,
    format_ratio,
    format_ratios,
    quote_longer,
)
from collector.statistics import Estimate, invert_estimate
from collector.units import PERCENT, RATIO, Unit, format_interval, format_number

MAX_SCOPES = 3
"""Kinds of machines that a sentence names."""


@dataclass(frozen=True, kw_only=True)
class Family:
    """The ratios that are tested together, as those of one table of the report."""

    name: str
    """What they are ratios of: `frameworks`."""
    measure: str
    """What the ratio is called: `time ratio`, `speedup`; with an s at its end, several of them."""
    above: str
    """What is said of a ratio above 1: `slower`."""
    below: str
    size: int
    """How many ratios are tested."""
    unit: Unit = RATIO


@dataclass(frozen=True, kw_only=True)
class JudgedRatio:
    """One ratio that a sentence may count."""

    name: str
    """What was compared, as far as the sentence does not say it."""
    ratio: Estimate
    is_different: bool
    """Whether its interval together with those of its family excludes 1."""
    scope: str
    """On how many machines it rests."""
    machines: frozenset[str]
    """Those of both sides, by name."""
    num_repeats: tuple[int, int]
    """The fewest and the most repeats that count on a side."""


def find_span(counts: Iterable[int]) -> tuple[int, int]:
    """Return the smallest and the largest of the counts."""
    known = [int(count) for count in counts]
    return min(known), max(known)


def judge_ratios(estimates: Sequence[Estimate]) -> list[bool]:
    """Return which of a family's ratios differ from 1; each has an interval."""
    assert all(estimate.interval for estimate in estimates), "a ratio without an interval cannot be judged"
    return [estimate.excludes_one(len(estimates)) for estimate in estimates]


def say_ratios(
    opening: str,
    ratios: Sequence[JudgedRatio],
    family: Family,
    *,
    anchor: str,
    named: Collection[str] = (),
    names: ShortNames = FULL_NAMES,
) -> Said:
    """Return the sentence on some ratios of a family, of which at least one differs from 1.

    It says how many differ in which direction, and the ends of those that do. `named`: the parts of the ratios' names
    that the opening says; `names`: those that what was measured says.
    """
    counts = _count_directions(ratios, family) if len(ratios) > 1 else _name_direction(ratios[0], family)
    return Said(
        text=f"{opening}: {counts}; {_state_ends(shorten_all(ratios, names, named), family)}.",
        anchor=anchor,
        basis=find_basis(ratios),
        figures=Figures(name=f"ratios of {family.name}", number=family.size),
    )


@dataclass(frozen=True, kw_only=True)
class Side:
    """A side of a comparison that takes longer in some of its pairs."""

    name: str
    ratios: tuple[JudgedRatio, ...]
    """The time of this side over that of the other, of the pairs that differ so."""

    def choose_ends(self) -> list[JudgedRatio]:
        """Return the least and the most of the ratios; one where there is only one, or all are equal."""
        ends = [choose(self.ratios, key=lambda one: one.ratio.center) for choose in (min, max)]
        return ends if ends[0] is not ends[1] else ends[:1]


def find_sides(ratios: Sequence[JudgedRatio], family: Family) -> list[Side]:
    """Return the sides that take longer in some pairs, the one that does in more of them first."""
    above = tuple(one for one in ratios if one.is_different and one.ratio.center > 1)
    below = tuple(_invert(one) for one in ratios if one.is_different and one.ratio.center < 1)
    sides = [Side(name=family.above, ratios=above), Side(name=family.below, ratios=below)]
    return sorted((side for side in sides if side.ratios), key=lambda side: -len(side.ratios))


def say_times(opening: str, ratios: Sequence[JudgedRatio], family: Family, *, anchor: str) -> Said:
    """Return the sentences on ratios of times: which side takes longer in how many of them, and by how much.

    `family`: whose `above` and `below` are the sides that take longer where a ratio is above 1, and below. One at least
    differs from 1.
    """
    texts = [_say_side(side, len(ratios), family.size) for side in find_sides(ratios, family)]
    unshown = [one.name for one in ratios if not one.is_different]
    if unshown:
        texts.append(f"{NO_DIFFERENCE} in {unshown[0] if len(unshown) == 1 else f'{len(unshown):,}'}")
    return Said(
        text=f"{opening}: {'; '.join(texts)}.",
        anchor=anchor,
        basis=find_basis(ratios),
        figures=Figures(name=f"ratios of {family.name}", number=family.size),
    )


def _invert(one: JudgedRatio) -> JudgedRatio:
    return replace(one, ratio=invert_estimate(one.ratio))


def _say_side(side: Side, number: int, size: int) -> str:
    """Return how often a side takes longer, by the least and the most."""
    quoted = [f"{quote_longer(one.ratio, size)} in {one.name}" for one in side.choose_ends()]
    if len(side.ratios) == len(quoted):
        return f"{side.name} takes {join_words(quoted)}"
    span = f"from {quoted[0]} to {quoted[1]}" if len(quoted) > 1 else quoted[0]
    return f"{side.name} takes longer in {len(side.ratios):,} of {number:,} comparisons, {span}"


def find_basis(ratios: Sequence[JudgedRatio]) -> Basis:
    """Return the machines and the repeats that ratios rest on."""
    return Basis(
        scope=describe_scopes(ratios),
        machines=frozenset().union(*(one.machines for one in ratios)),
        num_repeats=find_span(count for one in ratios for count in one.num_repeats),
    )


def _state_ends(ratios: Sequence[JudgedRatio], family: Family) -> str:
    """Return the smallest and the largest of the ratios that differ, each with its interval."""
    different = [one for one in ratios if one.is_different]
    lowest, highest = (choose(different, key=lambda one: one.ratio.center) for choose in (min, max))
    if len(different) == 1:
        return f"{family.measure} {_quote(lowest, family)} for {lowest.name}"
    ends = [f"{_quote(one, family)} for {one.name}" for one in (lowest, highest)]
    return f"{family.measure}s from {ends[0]} to {ends[1]}"


def shorten_all(ratios: Iterable[JudgedRatio], names: ShortNames, named: Collection[str] = ()) -> list[JudgedRatio]:
    """Return the ratios under names without the parts that `names` and `named` say."""
    return [replace(one, name=names.shorten(one.name, named)) for one in ratios]


def describe_scopes(ratios: Iterable[JudgedRatio]) -> str:
    """Return the machines that ratios rest on, the most frequent first: `one card (5), 2 cards (3)`.

    Ratios of one card each may be of several cards; the words for one of them say so.
    """
    known = list(ratios)
    counts = Counter(one.scope for one in known).most_common()
    if len(counts) == 1:
        return counts[0][0] + (" each, not the same for all" if len({one.machines for one in known}) > 1 else "")
    others = sum(count for _, count in counts[MAX_SCOPES:])
    named = [f"{scope} ({count:,})" for scope, count in counts[:MAX_SCOPES]]
    return "; ".join([*named, *([f"others ({others:,})"] if others else [])])


def _count_directions(ratios: Sequence[JudgedRatio], family: Family) -> str:
    directions = Counter(_name_direction(one, family) for one in ratios if one.is_different)
    (word, count), *others = directions.most_common()
    num_open = sum(not one.is_different for one in ratios)
    parts = [f"{word} in {count:,} of {len(ratios):,} comparisons", *(f"{name} in {more:,}" for name, more in others)]
    return ", ".join([*parts, *([f"no difference shown in {num_open:,}"] if num_open else [])])


def _name_direction(one: JudgedRatio, family: Family) -> str:
    return family.above if one.ratio.center > 1 else family.below


def _quote(one: JudgedRatio, family: Family) -> str:
    return quote_jointly(one.ratio, family.size, family.unit)


def quote_jointly(estimate: Estimate, num_intervals: int, unit: Unit) -> str:
    """Return a figure with the interval that holds together with those of its family: `1.12 (1.05 to 1.20)`."""
    low, high = estimate.find_joint_interval(num_intervals) or (None, None)
    if low is None or high is None or unit not in (RATIO, PERCENT):
        return f"{format_number(estimate.center, unit)} ({format_interval(low, high, unit)})"
    if unit is PERCENT:
        return f"{format_percent(estimate.center)} % ({' to '.join(format_percents(low, high))})"
    return f"{format_ratio(estimate.center)} ({' to '.join(format_ratios(low, high))})"
