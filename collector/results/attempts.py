"""Order the attempts of a run's repeats, and choose the one of each that counts."""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import groupby

import numpy as np
import numpy.typing as npt
import pandas as pd

from bench.schema import EARLIEST, LATEST, PlannedCell
from collector.results.collection import SkippedDocument

IntArray = npt.NDArray[np.int64]
UNDISTURBED, CONTAMINATED, FAILED = range(3)
"""How an attempt ended; of the attempts at a repeat, one of the first kind that there is counts."""

UNSET_CLOCKS = tuple(int(end.timestamp()) * 1_000_000 for end in (EARLIEST, LATEST))
"""Microseconds since 1970 to which times are moved of clocks that were never set."""


@dataclass(frozen=True, kw_only=True)
class OrderedAttempts:
    """Says by row numbers which attempt of each planned repeat counts, and in which order all attempts are read.

    The earliest attempt counts that ended ok and was not contaminated; without one, the earliest that ended ok; without
    one, the latest. How an attempt ended and what others did meanwhile decides, never how long its steps took. When an
    attempt started whose machine's clock was not set is not known: it is ordered after the others, and is not the
    latest where there is another.
    """

    order: IntArray
    """The rows of all attempts: repeat by repeat in the order of the plan, and within a repeat first the attempt that
    counts, then the others in the order in which they started."""
    counted: IntArray
    """For each planned repeat, the row of the attempt that counts; -1 if there is none."""
    num_attempts: IntArray
    """For each planned repeat, how many attempts there are."""
    num_contaminated: int
    """Repeats of which every attempt that ended ok was disturbed by others."""


def order_attempts(rows: pd.DataFrame, planned: Sequence[PlannedCell]) -> tuple[OrderedAttempts, list[SkippedDocument]]:
    starts = np.cumsum([0, *(plan.repeats for plan in planned)])
    plans = {plan.cell.cell_id: (int(start), plan.repeats) for plan, start in zip(planned, starts[:-1], strict=True)}
    columns = [rows[name].to_list() for name in ("cell_id", "repeat", "attempt")]
    ranks = _rank_attempts(rows)
    started = rows["started_at"].astype("int64").to_list()  # microseconds
    sortable, skipped = [], []
    for index, (cell_id, repeat, attempt) in enumerate(zip(*columns, strict=True)):
        start, repeats = plans.get(cell_id, (0, 0))
        if repeat > repeats:
            reason = _explain_unplanned(cell_id, repeat, repeats)
            skipped.append(SkippedDocument(key=rows["key"][index], reason=reason))
        else:
            at = (started[index] in UNSET_CLOCKS, started[index])
            sortable.append((start + repeat - 1, at, attempt, ranks[index], index))
    order: list[int] = []
    counted = np.full(int(starts[-1]), -1, dtype=np.int64)
    num_attempts = np.zeros(int(starts[-1]), dtype=np.int64)
    num_contaminated = 0
    for place, group in groupby(sorted(sortable), key=lambda item: item[0]):
        found = list(group)
        best = min(item[3] for item in found)
        latest = [item for item in found if not item[1][0]] or found
        first = latest[-1] if best == FAILED else next(item for item in found if item[3] == best)
        order += [first[4], *(item[4] for item in found if item is not first)]
        counted[place], num_attempts[place] = first[4], len(found)
        num_contaminated += best == CONTAMINATED
    ordered = OrderedAttempts(
        order=np.array(order, dtype=np.int64),
        counted=counted,
        num_attempts=num_attempts,
        num_contaminated=num_contaminated,
    )
    return ordered, skipped


def _rank_attempts(rows: pd.DataFrame) -> list[int]:
    """Return for each attempt how it ended.

    Others disturbed it where any reason of its verdict is `contaminated`: graver ones, as `over-peak`, are judged by
    step times, which must not decide which attempt counts.
    """
    columns = [rows[name].fillna("").to_list() for name in ("status", "verdict", "fault_verdicts")]
    ranks = []
    for status, verdict, faults in zip(*columns, strict=True):
        is_contaminated = verdict == "contaminated" or "contaminated" in faults.split()
        ranks.append((CONTAMINATED if is_contaminated else UNDISTURBED) if status == "ok" else FAILED)
    return ranks


def _explain_unplanned(cell_id: str, repeat: int, repeats: int) -> str:
    if not repeats:
        return f"cell '{cell_id}' is not in the run's plan"
    return f"repeat {repeat} of a cell that was planned with {repeats}"
