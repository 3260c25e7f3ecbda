"""Judge figures whose repeats do not scatter: the most of each side, against what repeats and identical runs differ by.

Peak memory is of this kind. Repeats of a cell are mostly equal to the byte; where they differ, cuDNN's search took
another workspace, or the allocator another block. No interval of Student's t describes that.
"""

import math
from collections import defaultdict
from collections.abc import Hashable, Iterable, Sequence
from itertools import pairwise
from typing import Any

from collector.versus.metrics import Metric
from collector.versus.sides import CellSide
from collector.versus.verdicts import Decision

Row = dict[str, Any]


def measure_range(a: CellSide, b: CellSide, identical: float) -> float:
    """Return the log of the largest factor between repeats of one side, at least `identical`."""
    return max(identical, *(math.log(max(side.values) / min(side.values)) for side in (a, b)))


def compare_most(a: CellSide, b: CellSide, log_floor: float) -> tuple[float, Decision]:
    """Return the ratio of the largest values, B over A, and the verdict: it is the same up to the floor."""
    ratio = max(b.values) / max(a.values)
    if abs(math.log(ratio)) <= log_floor:
        return ratio, "same"
    return ratio, "worse" if ratio > 1 else "better"


def find_identical_ranges(rows: Iterable[tuple[Hashable, Row]], metric: Metric) -> dict[str, float]:
    """Return by device the log of the largest factor between successive identical runs; a device without any is 0.

    `rows`: repeats that count, each with what must be equal for runs to be identical.
    """
    most: defaultdict[Hashable, dict[tuple[Any, str], float]] = defaultdict(dict)
    devices: dict[Hashable, str] = {}
    for kind, row in rows:
        value = metric.read(row)
        if not value:
            continue
        run = (row["run_started"], row["run_id"])
        most[kind][run] = max(most[kind].get(run, 0.0), value)
        devices[kind] = row["device"]
    found: dict[str, float] = dict.fromkeys(devices.values(), 0.0)
    for kind, values in most.items():
        found[devices[kind]] = max(found[devices[kind]], _find_largest_factor([values[run] for run in sorted(values)]))
    return found


def _find_largest_factor(values: Sequence[float]) -> float:
    return max((abs(math.log(after / before)) for before, after in pairwise(values)), default=0.0)
