"""Choose the pairs of a comparison that a sentence may rest on, and group them."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

import pandas as pd

from collector.answers.ratios import JudgedRatio, find_span
from collector.comparisons import Comparison
from collector.labels import label_shared
from collector.machines import SIDES, is_confounded
from collector.ratio_verdicts import NO_DIFFERENCE
from collector.results.cells import select_alone
from collector.results.frames import Row, list_rows
from collector.results.intervals import read_estimate

MACHINE_COLUMNS = [f"{name}_{side}" for name in ("machines", "num_machines") for side in SIDES]
"""What `is_confounded` reads of a pair."""


@dataclass(frozen=True, kw_only=True)
class Pair:
    """A pair of cells with its ratio."""

    row: Row
    """A row of `compare_cells`."""
    judged: JudgedRatio


def list_usable_pairs(pairs: pd.DataFrame, comparison: Comparison) -> list[Pair]:
    """Return the pairs whose ratio says something of what is compared, in the order of the table.

    Both cells had their device to themselves and a repeat under sound conditions, the ratio has an interval, and
    `find_confounded` does not hold.
    """
    rows = select_usable(pairs, comparison)
    return [
        Pair(row=row, judged=_read_judged(row, name))
        for row, name in zip(list_rows(rows), label_shared(rows), strict=True)
    ]


def select_usable(pairs: pd.DataFrame, comparison: Comparison) -> pd.DataFrame:
    """Return the rows of the pairs of `list_usable_pairs`."""
    sound = (pairs["num_sound_subject"] > 0) & (pairs["num_sound_reference"] > 0)
    return select_alone(pairs[pairs["log_standard_error"].notna() & sound & ~find_confounded(pairs, comparison)])


def find_confounded(pairs: pd.DataFrame, comparison: Comparison) -> "pd.Series[bool]":
    """Return which pairs with a ratio are confounded (`collector.machines.is_confounded`)."""
    rows = pairs.loc[pairs["ratio"].notna(), MACHINE_COLUMNS]
    found = [is_confounded(row, comparison.field) for row in list_rows(rows)]
    return pd.Series(found, index=rows.index, dtype=bool).reindex(pairs.index, fill_value=False)


def group_pairs(pairs: Iterable[Pair], name: Callable[[Row], str]) -> dict[str, list[Pair]]:
    """Return the pairs by the name of their group, in the order in which groups first occur."""
    groups: dict[str, list[Pair]] = {}
    for pair in pairs:
        groups.setdefault(name(pair.row), []).append(pair)
    return groups


def sort_groups(groups: dict[str, list[Pair]]) -> list[tuple[str, list[Pair]]]:
    """Return the groups in which a difference was shown, the one with the most pairs first."""
    shown = [item for item in groups.items() if any(pair.judged.is_different for pair in item[1])]
    return sorted(shown, key=lambda item: -len(item[1]))


def take_judged(pairs: Sequence[Pair]) -> list[JudgedRatio]:
    """Return the judged ratio of each pair."""
    return [pair.judged for pair in pairs]


def _read_judged(row: Row, name: str) -> JudgedRatio:
    verdict = row["adjusted_verdict"]
    return JudgedRatio(
        name=name,
        ratio=read_estimate(row, center="ratio"),
        is_different=not pd.isna(verdict) and verdict != NO_DIFFERENCE,
        scope=row["scope"],
        machines=frozenset(row[f"machines_{side}"] for side in SIDES),
        num_repeats=find_span(row[f"num_counted_{side}"] for side in SIDES),
    )
