"""Make the results of a run, one row per planned repeat, from the attempts that count."""

from typing import Any

import numpy as np
import pandas as pd

from bench.schema import Run
from collector.results.attempts import OrderedAttempts
from collector.results.cells import take_field
from collector.results.frames import CELL_COLUMNS, MISSING_REASON, RESULT_COLUMNS
from collector.results.placements import PLACEMENT_COLUMNS, find_cpu_manager_policies
from collector.results.statuses import MISSING, UNREADABLE
from collector.results.unread import UnreadRecords


def tabulate_repeats(
    run: Run, attempts: pd.DataFrame, ordered: OrderedAttempts, placements: pd.DataFrame, unread: UnreadRecords
) -> pd.DataFrame:
    """Return one row per planned repeat with the columns RESULT_COLUMNS.

    `attempts`: the table of attempts, to whose rows `ordered` refers. `placements`: the table of placements. `unread`:
    the records that the store does not give.
    """
    plan = _tabulate_plan(run).assign(num_attempts=ordered.num_attempts)
    chosen = attempts.reindex(np.where(ordered.counted < 0, len(attempts), ordered.counted)).reset_index(drop=True)
    placed = _place(chosen, placements)
    found = {
        name: plan[name] if name in plan else pd.Series((placed if name in placed else chosen)[name], dtype=dtype)
        for name, dtype in RESULT_COLUMNS.items()
    }
    frame = pd.DataFrame(found)
    is_absent = ordered.counted < 0
    frame.loc[is_absent, ["status", "error_message"]] = MISSING, MISSING_REASON
    for place in np.flatnonzero(is_absent) if unread else ():
        reason = unread.explain(run.run_id, frame["cell_id"][place], frame["repeat"][place])
        if reason is not None:
            frame.loc[place, ["status", "error_message"]] = UNREADABLE, reason
    return frame


def _tabulate_plan(run: Run) -> pd.DataFrame:
    cells: dict[str, Any] = {
        name: pd.Series([take_field(plan.cell, name) for plan in run.cells], dtype=dtype)
        for name, dtype in CELL_COLUMNS.items()
    }
    cells["cell_id"] = pd.Series([plan.cell.cell_id for plan in run.cells], dtype="str")
    repeats = [plan.repeats for plan in run.cells]
    plan = pd.DataFrame(cells).loc[np.repeat(np.arange(len(repeats)), repeats)].reset_index(drop=True)
    numbers = pd.Series([number for count in repeats for number in range(1, count + 1)], dtype="int64")
    return plan.assign(run_id=pd.Series([run.run_id] * len(plan), dtype="str"), repeat=numbers)


def _place(chosen: pd.DataFrame, placements: pd.DataFrame) -> pd.DataFrame:
    """Return PLACEMENT_COLUMNS of the chosen attempts, each missing where the attempt has no placement."""
    keys = chosen["key"].str.replace("/results/", "/placements/", n=1, regex=False)
    placed = placements.set_index("key").reindex(keys).reset_index(drop=True)
    columns = [placed["cpu_request_cores"], placed["num_cpus"], placed["qos_class"], chosen["num_visible_cores"]]
    policies = find_cpu_manager_policies(*(column.astype(object).where(column.notna(), None) for column in columns))
    return placed.assign(cpu_manager_policy=pd.Series(policies, dtype="str"))[list(PLACEMENT_COLUMNS)]
