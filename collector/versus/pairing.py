"""Pair the cells of two sides, and name those that have no partner, or more than one."""

import itertools
from collections import defaultdict
from collections.abc import Callable, Sequence, Set
from dataclasses import dataclass, field
from operator import itemgetter
from typing import Any

from collector.results.cells import PROTOCOL_FIELDS
from collector.results.frames import CELL_COLUMNS
from collector.versus.selections import describe_value

Row = dict[str, Any]
Rows = Sequence[Row]
Key = tuple[Any, ...]
# Cells without a partner are near each other if they differ in so few fields: those are named beside them.
MAX_NEAR_FIELDS = 2


@dataclass(frozen=True, kw_only=True)
class Ambiguity:
    """Cells of which one side has several that fit the same cells of the other."""

    side: str
    cell_ids: tuple[str, ...]
    fields: dict[str, tuple[str, ...]]
    """What they differ in, with its values."""


@dataclass(kw_only=True)
class Pairing:
    """Which cells of A and B belong together; each as the rows of its planned repeats."""

    pairs: list[tuple[Rows, Rows]] = field(default_factory=list)
    only_in_a: Sequence[Rows] = ()
    only_in_b: Sequence[Rows] = ()
    ambiguities: list[Ambiguity] = field(default_factory=list)


def pair_cells(rows_a: Rows, rows_b: Rows, free: set[str]) -> Pairing:
    """Pair cells that are equal in every field but those that are `free`, in which the sides are said to differ.

    Cells whose protocol (how long was measured) is equal are paired first; of the others it may differ.
    """
    pairing = Pairing()
    left = [_group_cells(rows) for rows in (rows_a, rows_b)]
    fields = [name for name in CELL_COLUMNS if name not in free]
    for names in (fields, [name for name in fields if name not in PROTOCOL_FIELDS]):
        left = _match(left, lambda row, names=names: tuple(row[name] for name in names), pairing)  # type: ignore[misc]
    pairing.only_in_a, pairing.only_in_b = (list(cells.values()) for cells in left)
    return pairing


def describe_nearest(
    cells: Sequence[Rows], others: Sequence[Rows], other: str, free: Set[str] = frozenset()
) -> list[str]:
    """Return for each cell in which fields that are not `free` the most similar cell of the `other` side differs.

    An empty text where it differs in none, or in more than MAX_NEAR_FIELDS.
    """
    found = _find_nearest([rows[0] for rows in cells], [rows[0] for rows in others], free)
    return [
        ", ".join(f"{name} is {describe_value(others[near.index][0][name])} in {other}" for name in near.fields)
        if near is not None
        else ""
        for near in found
    ]


@dataclass(frozen=True, kw_only=True)
class _Near:
    """The first of the most similar cells of a side."""

    index: int
    fields: Key
    """What it differs in, in the order of CELL_COLUMNS."""


def _find_nearest(cells: Rows, others: Rows, free: Set[str]) -> list[_Near | None]:
    """Return for each cell the first of the most similar ones; None if all differ in more than MAX_NEAR_FIELDS.

    For each choice of fields that may differ, the cells are looked up by all the others: thousands of cells on each
    side have millions of pairs.
    """
    names = [name for name in CELL_COLUMNS if name not in free]
    varying = [name for name in names if len({row[name] for row in itertools.chain(cells, others)}) > 1]
    found: list[_Near | None] = [None] * len(cells)
    for count in range(MAX_NEAR_FIELDS + 1):
        left = [place for place, near in enumerate(found) if near is None]
        for fields in itertools.combinations(varying, count):
            make_key = _make_key_of([name for name in varying if name not in fields])
            first: dict[Any, int] = {}
            for index, row in enumerate(others):
                first.setdefault(make_key(row), index)
            for place in left:
                index = first.get(make_key(cells[place]), len(others))
                best = found[place]
                if index < (len(others) if best is None else best.index):
                    found[place] = _Near(index=index, fields=fields)
    return found


def _make_key_of(names: Sequence[str]) -> Callable[[Row], Any]:
    return itemgetter(*names) if names else lambda row: ()


def _group_cells(rows: Rows) -> dict[str, list[Row]]:
    cells: dict[str, list[Row]] = {}
    for row in rows:
        cells.setdefault(row["cell_id"], []).append(row)
    return cells


def _match(
    sides: list[dict[str, list[Row]]], make_key: Callable[[Row], Key], pairing: Pairing
) -> list[dict[str, list[Row]]]:
    """Add the pairs and ambiguities of one key to `pairing`, and return the cells that are left."""
    keyed: list[defaultdict[Key, list[str]]] = [defaultdict(list), defaultdict(list)]
    for found, cells in zip(keyed, sides, strict=True):
        for cell_id, rows in cells.items():
            found[make_key(rows[0])].append(cell_id)
    left = [dict(cells) for cells in sides]
    for key, ids_a in keyed[0].items():
        ids_b = keyed[1].get(key, [])
        if not ids_b:
            continue
        taken = [[cells.pop(cell_id) for cell_id in ids] for cells, ids in zip(left, (ids_a, ids_b), strict=True)]
        if len(ids_a) == len(ids_b) == 1:
            pairing.pairs.append((taken[0][0], taken[1][0]))
            continue
        for name, several in zip("AB", taken, strict=True):
            if len(several) > 1:
                pairing.ambiguities.append(_describe_ambiguity(name, [rows[0] for rows in several]))
    return left


def _describe_ambiguity(side: str, cells: Rows) -> Ambiguity:
    names = [name for name in CELL_COLUMNS if len({cell[name] for cell in cells}) > 1]
    return Ambiguity(
        side=side,
        cell_ids=tuple(cell["cell_id"] for cell in cells),
        fields={name: tuple(dict.fromkeys(describe_value(cell[name]) for cell in cells)) for name in names},
    )
