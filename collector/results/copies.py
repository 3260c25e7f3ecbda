"""Finds attempts of a run that have the step times of another; which of them count, `bench.copied_steps` says."""

from collections import defaultdict

import pyarrow as pa
import pyarrow.compute as pc

from bench.copied_steps import StepsRecord, find_copies
from collector.results.collection import COPY


def find_copied_attempts(attempts: pa.Table) -> dict[int, str]:
    """Return the rows of the table of attempts that do not count as they are copies, each with the reason."""
    series = pc.split_pattern(attempts["steps_digest"], " ").combine_chunks()  # one of each tenant
    digests = pc.list_flatten(series)
    if pc.count_distinct(digests).as_py() == len(digests):
        return {}  # as of nearly all runs, whose digests need not become Python's strings then
    groups: defaultdict[str, list[int]] = defaultdict(list)
    for index, digest in zip(pc.list_parent_indices(series).to_pylist(), digests.to_pylist(), strict=True):
        groups[digest].append(index)
    return {
        index: reason
        for rows in groups.values()
        if len(rows) > 1
        for index, reason in _explain_copies(attempts.select(["key", "cell_id", "started_at"]).take(rows), rows).items()
    }


def _explain_copies(found: pa.Table, rows: list[int]) -> dict[int, str]:
    """Return why these rows, which have the same steps, do not count: all of several cells, all but one of one cell."""
    keys, cell_ids, started = (column.to_pylist() for column in found.columns)
    alike = [
        StepsRecord(key=key, cell_id=cell_id, started_at=begin)
        for key, cell_id, begin in zip(keys, cell_ids, started, strict=True)
    ]
    copies = find_copies(alike)
    return {
        row: _explain(record, copies[record.key])
        for row, record in zip(rows, alike, strict=True)
        if record.key in copies
    }


def _explain(copy: StepsRecord, other: StepsRecord) -> str:
    """Return why a record does not count that has the steps of another."""
    if copy.cell_id == other.cell_id:
        return f"{COPY}its step times are those of {other.key}, to the last digit"
    return (
        f"{COPY}its step times are, to the last digit, those of another cell, {other.key}: which measured them is not "
        "known"
    )
