"""Pair the cells of two sides, name the pairs, and name the cells that have no partner, or more than one."""

from collections import defaultdict
from collections.abc import Sequence, Set
from dataclasses import dataclass, field
from typing import Any

from collector.labels import DEVICE_NAMES, FRAMEWORK_NAMES, add_labels, label_shared
from collector.results.cells import PROTOCOL_FIELDS
from collector.results.frames import CELL_COLUMNS, make_frame
from collector.versus.selections import describe_value

Row = dict[str, Any]
Rows = Sequence[Row]

MAX_NEAR_FIELDS = 2
"""Cells without a partner are near each other if they differ in so few fields: those are named beside them."""
MAX_NEAREST = 200
"""Of so many cells without a partner the nearest ones are looked for: each is held against all of the other side."""
WORKLOAD_FIELDS = frozenset({"model", "phase", "batch_size", "input_size"})
"""Without one of them, the name of what a cell does has a gap."""


@dataclass(frozen=True, kw_only=True)
class Ambiguity:
    """Cells of which one side has several that fit the same cells of the other."""

    side: str
    cells: Rows
    """A row of each."""
    fields: dict[str, tuple[str, ...]]
    """What they differ in, with its values."""


@dataclass(kw_only=True)
class Pairing:
    """Which cells of A and B belong together; each as the rows of its planned repeats."""

    pairs: list[tuple[Rows, Rows]] = field(default_factory=list)
    only_in_a: Sequence[Rows] = ()
    only_in_b: Sequence[Rows] = ()
    ambiguities: list[Ambiguity] = field(default_factory=list)


def pair_cells(rows_a: Rows, rows_b: Rows, free: Set[str]) -> Pairing:
    """Pair cells that are equal in every field but those that are `free`, in which the sides are said to differ.

    Cells whose protocol (how long was measured) is equal are paired first; of the others it may differ.
    """
    pairing = Pairing()
    left: list[dict[str, list[Row]]] = [{}, {}]
    for cells, rows in zip(left, (rows_a, rows_b), strict=True):
        for row in rows:
            cells.setdefault(row["cell_id"], []).append(row)
    fields = [name for name in CELL_COLUMNS if name not in free]
    for names in (fields, [name for name in fields if name not in PROTOCOL_FIELDS]):
        keyed: list[defaultdict[Any, list[str]]] = [defaultdict(list), defaultdict(list)]
        for found, cells in zip(keyed, left, strict=True):
            for cell_id, rows in cells.items():
                found[tuple(rows[0][name] for name in names)].append(cell_id)
        for key, ids_a in keyed[0].items():
            if key not in keyed[1]:
                continue
            taken = [[cells.pop(one) for one in ids] for cells, ids in zip(left, (ids_a, keyed[1][key]), strict=True)]
            if len(taken[0]) == len(taken[1]) == 1:
                pairing.pairs.append((taken[0][0], taken[1][0]))
                continue
            pairing.ambiguities += [
                _describe_ambiguity(side, [rows[0] for rows in several])
                for side, several in zip("AB", taken, strict=True)
                if len(several) > 1
            ]
    pairing.only_in_a, pairing.only_in_b = (list(cells.values()) for cells in left)
    return pairing


def _describe_ambiguity(side: str, cells: Rows) -> Ambiguity:
    names = [name for name in CELL_COLUMNS if len({cell[name] for cell in cells}) > 1]
    fields = {name: tuple(dict.fromkeys(describe_value(cell[name]) for cell in cells)) for name in names}
    return Ambiguity(side=side, cells=cells, fields=fields)


def describe_nearest(
    cells: Sequence[Rows], others: Sequence[Rows], other: str, free: Set[str] = frozenset()
) -> list[str]:
    """Return for each cell in which fields that are not `free` the first of the most similar `others` differs.

    An empty text where it differs in none, or in more than MAX_NEAR_FIELDS, and of cells after the MAX_NEAREST first.
    """
    names = [name for name in CELL_COLUMNS if name not in free]
    varying = [name for name in names if len({rows[0][name] for rows in (*cells, *others)}) > 1]
    described = [""] * len(cells)
    for place, rows in enumerate(cells[:MAX_NEAREST]):
        differing = ([name for name in varying if rows[0][name] != one[0][name]] for one in others)
        nearest, fields = min(enumerate(differing), key=lambda found: len(found[1]), default=(0, []))
        if len(fields) <= MAX_NEAR_FIELDS:
            described[place] = ", ".join(
                f"{name} is {describe_value(others[nearest][0][name])} in {other}" for name in fields
            )
    return described


def label_cells(cells: Sequence[Rows]) -> list[str]:
    """Return a label for each cell, given by rows of it."""
    if not cells:
        return []
    return [str(label) for label in add_labels(make_frame([rows[0] for rows in cells], CELL_COLUMNS))["label"]]


def label_pairs(pairing: Pairing, free: Set[str]) -> list[str]:
    """Return the names of the pairs: what both cells share. In the fields that are `free` they may differ.

    Both names where what they share does not tell the pairs apart.
    """
    cells = [(a[0], b[0]) for a, b in pairing.pairs]
    differing = {name for name in free if any(a[name] != b[name] for a, b in cells)}
    if not differing & WORKLOAD_FIELDS:
        shared = {name: dtype for name, dtype in CELL_COLUMNS.items() if name not in differing}
        return label_shared(make_frame([a for a, _ in cells], shared))
    both = list(zip(*(label_cells([pair[side] for pair in pairing.pairs]) for side in (0, 1)), strict=True))
    common = [", ".join(part for part in a.split(", ") if part in b.split(", ")) for a, b in both]
    return common if all(common) and len(set(common)) == len(common) else [f"{a} / {b}" for a, b in both]


def name_sides(a: Row, b: Row) -> tuple[str, str]:
    """Return the names of two cells by what differs: `PyTorch eager`, `JAX compiled`; `A`, `B` where nothing does."""
    differing = [name for name in CELL_COLUMNS if name not in PROTOCOL_FIELDS and a[name] != b[name]]
    first, second = (", ".join(_list_words(cell, differing)) for cell in (a, b))
    return (first, second) if differing else ("A", "B")


def _list_words(cell: Row, differing: Sequence[str]) -> list[str]:
    words = []
    for name in differing:
        value = describe_value(cell[name])
        if name == "framework":
            words.append(f"{FRAMEWORK_NAMES.get(value, value)} {cell['mode']}")
        elif name == "device":
            words.append(DEVICE_NAMES.get(value, value))
        elif name == "batch_size":
            words.append(f"batch {value}")
        elif name in ("precision", "phase", "model", "mode"):
            words += [] if name == "mode" and "framework" in differing else [value]
        else:
            words.append(f"{name} {value}")
    return words
