"""Checks rows of the data set as documents are checked: a file of it may be by anybody who can write to the store."""

from collections.abc import Iterator, Mapping
from datetime import datetime
from typing import Any, get_args

import pyarrow as pa
import pyarrow.compute as pc

from bench.registry import FRAMEWORKS, MODELS, Device, Mode, Phase
from bench.schema import MAX_AMOUNT, FailureKind, Precision, Sharing, Status, Verdict, bound_time
from collector.results.dataset.columns import ATTEMPTS, TABLE_COLUMNS, TENANTS

WORDS: Mapping[str, frozenset[str]] = {
    "model": frozenset(MODELS),
    "framework": frozenset(FRAMEWORKS),
    "host_framework": frozenset(FRAMEWORKS),
    "device": frozenset(get_args(Device)),
    "phase": frozenset(get_args(Phase)),
    "precision": frozenset(get_args(Precision)),
    "mode": frozenset(get_args(Mode)),
    "sharing": frozenset(get_args(Sharing)),
    "status": frozenset(get_args(Status)),
    "verdict": frozenset(get_args(Verdict)),
    "error_kind": frozenset(get_args(FailureKind)),
    "summarized_by": frozenset({"median", "mean"}),
    "written_by": frozenset({"bench", "runner"}),
}
"""What columns of this name may say in the rows of results and tenants."""
LARGEST_INTEGER = 2**62
"""In any column but these: the sum of two fits 64 bits, and documents have narrower bounds."""
ANY_INTEGER = frozenset({"flops_per_step", "least_flops_per_step", "exit_code"})
"""Columns in which a document may have any integer that fits 64 bits."""
REQUIRED = (
    *("key", "object_version", "run_id", "cell_id", "repeat", "attempt", "tenant"),
    *("warmup_step_seconds", "step_seconds", "document"),
)


def find_fault(rows: pa.Table, table: str) -> str | None:
    """Return what in the rows of a table no document could have said; None if nothing is."""
    return next(_list_faults(rows, table), None)


def _list_faults(rows: pa.Table, table: str) -> Iterator[str]:
    for name, column in zip(rows.column_names, rows.columns, strict=True):
        if column.null_count and (name in REQUIRED or _is_always_there(table, name)):
            yield f"a row without {name}"
        if column.null_count < len(column) and (fault := _find_fault_in_values(column, name, table)):
            yield f"{name} has {fault}"


def _find_fault_in_values(column: pa.ChunkedArray, name: str, table: str) -> str | None:
    if pa.types.is_floating(column.type):
        return None if _is_within(column, MAX_AMOUNT) else f"a value beyond {MAX_AMOUNT:g}"
    if pa.types.is_integer(column.type):
        is_right = name in ANY_INTEGER or _is_within(column, LARGEST_INTEGER)
        return None if is_right else f"a value beyond {LARGEST_INTEGER}"
    if pa.types.is_timestamp(column.type):
        return None if _are_times(column) else "a time that no document can hold"
    if pa.types.is_list(column.type):
        values = pa.chunked_array([chunk.flatten() for chunk in column.chunks], column.type.value_type)
        is_right = not values.null_count and _is_within(values, MAX_AMOUNT)
        return None if is_right else f"a value beyond {MAX_AMOUNT:g}, or none"
    if name in WORDS and table in (ATTEMPTS, TENANTS) and not _are_words(column, WORDS[name]):
        return "a word that no document has"
    return None


def _is_always_there(table: str, name: str) -> bool:
    """Return whether every row of the table has the column, as every cell has: its type has no missing value."""
    return table == ATTEMPTS and (
        TABLE_COLUMNS[table].get(name) == "int64" or name in ("status", "framework", "device")
    )


def _is_within(values: pa.ChunkedArray, limit: float) -> bool:
    """Return whether all values are between minus and plus `limit`; missing ones are, and NaN as mean of no steps."""
    found: Mapping[str, Any] = pc.min_max(values).as_py()
    return found["min"] is None or (-limit <= found["min"] and found["max"] <= limit)


def _are_times(column: pa.ChunkedArray) -> bool:
    try:
        ends: tuple[datetime, ...] = tuple(pc.min_max(column).as_py().values())
    except (ValueError, OverflowError):
        return False
    return all(bound_time(end) == end for end in ends)


def _are_words(column: pa.ChunkedArray, words: frozenset[str]) -> bool:
    known = pa.array([*words, None], pa.string())
    return bool(pc.all(pc.is_in(column, value_set=known)).as_py())
