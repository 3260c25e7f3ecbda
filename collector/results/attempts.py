"""Choose the attempt of each planned repeat that counts, and make the results of a run from those."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import groupby

import numpy as np
import numpy.typing as npt
import pandas as pd

from bench.schema import EARLIEST, LATEST, PlannedCell, Run
from bench.store import parse_result_key
from collector.results.cell_repeats import CENTER_RATES, SOUND_VERDICTS
from collector.results.frames import (
    CELL_COLUMNS,
    MISSING,
    MISSING_REASON,
    PLACEMENT_COLUMNS,
    RESULT_COLUMNS,
    UNREADABLE,
    describe_cell,
    make_frame,
)
from collector.results.stored_tables import SkippedDocument

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
            reason = f"repeat {repeat} of a cell that was planned with {repeats}"
            reason = reason if repeats else f"cell '{cell_id}' is not in the run's plan"
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


Unread = dict[tuple[str, int], str]
"""By cell and repeat: why the store does not give a record at present."""


def find_unread(skipped: Iterable[SkippedDocument]) -> Unread:
    """Return those of the skipped documents that the store does not give."""
    found = [(parse_result_key(one.key), one.reason) for one in skipped if one.is_unread]
    return {(key.cell_id, key.repeat): reason for key, reason in found if key is not None}


def tabulate_repeats(
    run: Run, attempts: pd.DataFrame, ordered: OrderedAttempts, placements: pd.DataFrame, unread: Unread
) -> pd.DataFrame:
    """Return one row per planned repeat with the columns RESULT_COLUMNS.

    `attempts`: the table of attempts, to whose rows `ordered` refers. `placements`: the table of placements.
    """
    plan = _tabulate_plan(run).assign(num_attempts=ordered.num_attempts)
    chosen = attempts.reindex(np.where(ordered.counted < 0, len(attempts), ordered.counted)).reset_index(drop=True)
    keys = chosen["key"].str.replace("/results/", "/placements/", n=1, regex=False)
    placed = placements.set_index("key").reindex(keys).reset_index(drop=True)
    found = {
        name: plan[name]
        if name in plan
        else pd.Series((placed if name in PLACEMENT_COLUMNS else chosen)[name], dtype=dtype)
        for name, dtype in RESULT_COLUMNS.items()
    }
    frame = pd.DataFrame(found)
    is_absent = ordered.counted < 0
    frame.loc[is_absent, ["status", "error_message"]] = MISSING, MISSING_REASON
    for place in np.flatnonzero(is_absent) if unread else ():
        if reason := unread.get((frame["cell_id"][place], frame["repeat"][place])):
            frame.loc[place, ["status", "error_message"]] = UNREADABLE, reason
    return frame


def _tabulate_plan(run: Run) -> pd.DataFrame:
    cells = [describe_cell(plan.cell) | {"run_id": run.run_id, "cell_id": plan.cell.cell_id} for plan in run.cells]
    counts = [plan.repeats for plan in run.cells]
    plan = make_frame(cells, {"run_id": "str", "cell_id": "str", **CELL_COLUMNS})
    plan = plan.loc[np.repeat(np.arange(len(counts)), counts)].reset_index(drop=True)
    return plan.assign(repeat=np.array([number for count in counts for number in range(1, count + 1)], dtype=np.int64))


def unify_centers(rows: pd.DataFrame, counted: IntArray) -> pd.DataFrame:
    """Return the rows in which those at the places `counted` are summarised by one statistic for each cell.

    A measuring process knows its own steps alone, so of a cell on two levels it summarises some repeats by the mean and
    others, whose window saw one level, by the median. Compared with each other these differ by more than their speed. A
    repeat under faulty conditions, which enters no figure where there are others, changes none of these.
    """
    own = rows.iloc[counted]
    is_mean = own["summarized_by"] == "mean"
    on_levels = own.loc[is_mean & own["verdict"].isin(SOUND_VERDICTS), "cell_id"]
    is_changed = own["cell_id"].isin(on_levels) & (own["summarized_by"] == "median") & (own["mean_step_seconds"] > 0)
    changed = own.index[is_changed]
    if changed.empty:
        return rows
    rows = rows.copy()
    means = rows.loc[changed, "mean_step_seconds"]
    for name in CENTER_RATES:
        rows.loc[changed, name] *= rows.loc[changed, "center_step_seconds"] / means
    rows.loc[changed, "center_step_seconds"], rows.loc[changed, "summarized_by"] = means, "mean"
    return rows
