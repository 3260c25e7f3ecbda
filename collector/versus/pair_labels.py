"""Name the pairs of a comparison: what both cells share once, and of each cell what only it is."""

from collections.abc import Sequence, Set
from typing import Any

from collector.labels import label_shared
from collector.results.frames import CELL_COLUMNS, make_frame
from collector.versus.descriptions import label_cells
from collector.versus.pairing import Pairing

Rows = Sequence[dict[str, Any]]

WORKLOAD_FIELDS = frozenset({"model", "phase", "batch_size", "input_size"})
"""Without one of them, the name of what a cell does has a gap."""


def label_pairs(pairing: Pairing, free: Set[str]) -> list[str]:
    """Return the names of the pairs: what both cells share. In the fields that are `free` they may differ."""
    cells = [(a[0], b[0]) for a, b in pairing.pairs]
    differing = {name for name in free if any(a[name] != b[name] for a, b in cells)}
    if differing & WORKLOAD_FIELDS:
        return _label_by_common_parts(pairing)
    shared = {name: dtype for name, dtype in CELL_COLUMNS.items() if name not in differing}
    return label_shared(make_frame([a for a, _ in cells], shared))


def _label_by_common_parts(pairing: Pairing) -> list[str]:
    """Return what the names of both cells have in common; both names where that does not tell the pairs apart."""
    names = [label_cells([pair[side] for pair in pairing.pairs]) for side in (0, 1)]
    both = list(zip(*names, strict=True))
    common = [_find_common_parts(a, b) for a, b in both]
    is_enough = all(common) and len(set(common)) == len(common)
    return common if is_enough else [f"{a} / {b}" for a, b in both]


def _find_common_parts(one: str, other: str) -> str:
    """Return the parts of one name that the other has too: `infer, CPU, 224 px` of cells of two models.

    The first part (model and phase) and the last (framework and mode) are of several words, which are compared singly.
    """
    parts, others = one.split(", "), other.split(", ")
    kept = [part for part in parts[1:-1] if part in others[1:-1]]
    first, last = (_find_common_words(parts[end], others[end]) for end in (0, -1))
    return ", ".join(filter(None, [first, *kept, last]))


def _find_common_words(one: str, other: str) -> str:
    others = other.split()
    return " ".join(word for word in one.split() if word in others)
