"""Make the results of a run, one row per planned repeat, from the rows of the attempts that count."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc

from bench.schema import PlannedCell
from collector.results.attempts import IntArray, OrderedAttempts
from collector.results.cells import take_field
from collector.results.frames import CELL_COLUMNS, MISSING_REASON, RESULT_COLUMNS
from collector.results.placements import PLACEMENT_COLUMNS, find_cpu_manager_policies
from collector.results.statuses import MISSING, UNREADABLE
from collector.results.unread import UnreadRecords

COLUMNS_UNTIL_RELEASE = 16
"""How many columns are converted until their memory is given back, which takes some milliseconds."""
SHARED_ROWS = 8192
NULLABLE = {pa.int64(): pd.Int64Dtype(), pa.bool_(): pd.BooleanDtype()}


def tabulate_repeats(
    run_id: str,
    planned: Sequence[PlannedCell],
    attempts: dict[str, pa.ChunkedArray],
    ordered: OrderedAttempts,
    related: "Mapping[str, pd.Series[Any]]",
    placements: pa.Table,
    unread: UnreadRecords,
) -> pd.DataFrame:
    """Return one row per planned repeat with the columns RESULT_COLUMNS.

    `attempts`: the columns of the table of attempts, to whose rows `ordered` refers; each is taken out of it when it is
    converted. `related`: columns that follow from all attempts of the run, by repeat. `placements`: rows of the table
    of placements, as many as attempts count. `unread`: the records that the store does not give.
    """
    columns = _tabulate_plan(run_id, planned) | {"num_attempts": pd.Series(ordered.num_attempts, dtype="int64")}
    chosen = pa.array(ordered.counted, mask=ordered.counted < 0)
    placed = _place(attempts, chosen, placements)
    for name in set(attempts) - (RESULT_COLUMNS.keys() - columns.keys() - related.keys()):
        del attempts[name]
    for number, (name, dtype) in enumerate(RESULT_COLUMNS.items()):
        if number % COLUMNS_UNTIL_RELEASE == 0:
            pa.default_memory_pool().release_unused()
        if name in columns:
            continue
        if name in related:
            columns[name] = related[name]
        elif name in PLACEMENT_COLUMNS:
            columns[name] = placed[name]
        else:
            columns[name] = _share_text(convert_column(attempts.pop(name).take(chosen), dtype))
    _explain_absence(run_id, columns, np.flatnonzero(ordered.counted < 0), unread)
    shared = {name: _share_text(columns.pop(name)) for name in RESULT_COLUMNS}
    return pd.DataFrame(shared, copy=False)


def _explain_absence(
    run_id: str, columns: "dict[str, pd.Series[Any]]", places: IntArray, unread: UnreadRecords
) -> None:
    """Set status and reason of the repeats without an attempt that counts, at these places."""
    cell_ids, repeats = columns["cell_id"], columns["repeat"]
    reasons = [unread.explain(run_id, cell_ids[place], repeats[place]) for place in places] if unread else []
    known = dict(zip(places, reasons, strict=False))
    for name, absent in (("status", MISSING), ("error_message", MISSING_REASON)):
        if len(places):
            columns[name] = columns[name].copy()
            columns[name].iloc[places] = absent
    for place, reason in known.items():
        if reason is not None:
            columns["status"].iloc[place], columns["error_message"].iloc[place] = UNREADABLE, reason


def convert_column(column: pa.ChunkedArray, dtype: str) -> "pd.Series[Any]":
    """Return an Arrow column as a Series of this dtype, as `make_frame` makes it of the same values."""
    types_mapper = NULLABLE.get if dtype in ("Int64", "boolean") else None
    return pd.Series(column.to_pandas(types_mapper=types_mapper), dtype=dtype)


def _share_text(column: "pd.Series[Any]") -> "pd.Series[Any]":
    """Return a column; where it is of texts that are all the same, many rows share one piece of memory.

    So are most texts of a run: names of machines, versions, notes, and what is missing. In 100,000 results they take
    80 MB otherwise.
    """
    size = len(column)
    if size <= SHARED_ROWS or not isinstance(column.dtype, pd.StringDtype) or column.nunique(dropna=False) > 1:
        return column
    text = None if pd.isna(column.iloc[0]) else column.iloc[0]
    piece = pa.array([text] * SHARED_ROWS, pa.large_string())
    pieces = [piece] * (size // SHARED_ROWS) + [piece.slice(0, size % SHARED_ROWS)]
    array = pd.arrays.ArrowStringArray(pa.chunked_array(pieces), dtype=column.dtype)  # type: ignore[call-arg] # in 3.0
    return pd.Series(array)


def _tabulate_plan(run_id: str, planned: Sequence[PlannedCell]) -> dict[str, "pd.Series[Any]"]:
    repeats = [plan.repeats for plan in planned]
    columns = {
        name: pd.Series([take_field(plan.cell, name) for plan in planned], dtype=dtype)
        .repeat(repeats)
        .reset_index(drop=True)
        for name, dtype in CELL_COLUMNS.items()
    }
    columns["cell_id"] = pd.Series([plan.cell.cell_id for plan in planned], dtype="str").repeat(repeats)
    numbers = [number for count in repeats for number in range(1, count + 1)]
    return columns | {
        "run_id": pd.Series([run_id], dtype="str").repeat(len(numbers)).reset_index(drop=True),
        "cell_id": columns["cell_id"].reset_index(drop=True),
        "repeat": pd.Series(numbers, dtype="int64"),
    }


def _place(
    attempts: Mapping[str, pa.ChunkedArray], chosen: pa.Array, placements: pa.Table
) -> dict[str, "pd.Series[Any]"]:
    """Return PLACEMENT_COLUMNS of the chosen attempts, each missing where the attempt has no placement."""
    if not placements.num_rows:
        return {name: pd.Series([None] * len(chosen), dtype=dtype) for name, dtype in PLACEMENT_COLUMNS.items()}
    names = pc.replace_substring(attempts["key"].take(chosen), "/results/", "/placements/", max_replacements=1)
    places = pc.index_in(names, value_set=placements["key"].combine_chunks())
    placed = {
        name: convert_column(placements[name].take(places), dtype)
        for name, dtype in PLACEMENT_COLUMNS.items()
        if name != "cpu_manager_policy"
    }
    policies = find_cpu_manager_policies(
        placements["cpu_request_cores"].take(places).to_pylist(),
        placements["num_cpus"].take(places).to_pylist(),
        placements["qos_class"].take(places).to_pylist(),
        attempts["num_visible_cores"].take(chosen).to_pylist(),
    )
    return placed | {"cpu_manager_policy": pd.Series(policies, dtype="str")}


def select_counted(ordered: OrderedAttempts) -> IntArray:
    """Return the rows of the attempts that count, in the order of the plan."""
    return ordered.counted[ordered.counted >= 0]
