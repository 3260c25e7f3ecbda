"""Keep what a run's documents say as a table in its store: one Parquet file a kind, `tables/TABLE/RUN_ID.parquet`.

A file is written whole and follows from the run's documents, and from the rows that it had of raw results which were
removed on purpose (`store.raw_removals`). Of several commands that write at once the last one's file stays; what it
lacks is read by the next command.
"""

import io
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq

from bench.schema import InvalidDocumentError
from bench.store import MAX_DOCUMENT_BYTES, TABLES_PREFIX, KeyMissing, Store, StoredObject, StoreError, UnreadableObject
from bench.store.documents import index_removed_results, read_raw_removals
from collector.results.documents import Kind
from collector.results.frames import ATTEMPTS, Columns, Row, compute_version, make_schema

VERSION_KEY = b"benchmatrix"
"""Of the metadata of a file: which version of the columns it has."""
MIN_NEW_DOCUMENTS = 256
"""Fewer are read anew each time, in about 0.1 s: no reason for a command that only reads to write into a store."""
NUM_PYTHON_ROWS = 512
"""Rows as Python objects take ten times the room of the same rows in Arrow."""


class DamagedTableError(Exception):
    """A table of a run cannot be read; its rows are made anew from the documents."""


@dataclass(frozen=True, kw_only=True)
class SkippedDocument:
    """A key under the run that does not count, and why, in one line."""

    key: str
    reason: str
    is_unread: bool = False
    """Whether the store does not give it at present, so that nobody knows what it says."""


@dataclass(kw_only=True)
class RunTable:
    """The documents of one kind of a run, as rows."""

    store: Store
    kind: Kind
    run_id: str
    rows: pa.Table
    """One for each document that counts, by the documents' keys."""
    skipped: list[SkippedDocument] = field(default_factory=list)
    notices: list[str] = field(default_factory=list)

    def skip(self, key: str, reason: str, *, is_unread: bool = False) -> None:
        self.skipped.append(SkippedDocument(key=key, reason=reason, is_unread=is_unread))


def table_key(table: str, run_id: str) -> str:
    return f"{TABLES_PREFIX}/{table}/{run_id}.parquet"


def read_table(store: Store, table: str, run_id: str) -> tuple[pa.Table, bool]:
    """Return a run's table with the present columns, and whether this version of the tool wrote it.

    Without a file the table is empty. Raise DamagedTableError where it cannot be read.
    """
    key, schema = table_key(table, run_id), make_schema(table)
    try:
        # Not a file object of Python: Arrow's threads would read from it, and now and then end the process at its exit
        # (https://github.com/apache/arrow/issues/34314, 50482).
        file = pq.ParquetFile(pa.BufferReader(store.get(key)), page_checksum_verification=True)
        found = file.read(use_threads=False)
        if found.num_rows and "step_seconds" not in found.column_names and table == ATTEMPTS:
            raise ValueError("its steps lie in a table of their own, as an earlier version of the tool wrote it")
        is_current = (found.schema.metadata or {}).get(VERSION_KEY) == compute_version().encode()
        columns = [
            found[name].cast(kind) if name in found.column_names else pa.nulls(found.num_rows, kind)
            for name, kind in zip(schema.names, schema.types, strict=True)
        ]
        return pa.Table.from_arrays(columns, schema=schema), is_current
    except KeyMissing:
        return schema.empty_table(), True
    except UnreadableObject as error:
        raise DamagedTableError(f"{key}: {error}") from error
    except (pa.ArrowException, OSError, ValueError, KeyError) as error:
        raise DamagedTableError(f"{key}: no whole table: {' '.join(str(error).split())[:200]}") from error


def write_parquet(rows: pa.Table, file: Any) -> None:
    """Write rows as Parquet. Floats have no dictionary: measured values hardly ever repeat, files grow by it."""
    dictionaries = [
        column.name
        for column in rows.schema
        if not (pa.types.is_floating(column.type) or pa.types.is_list(column.type))
    ]
    pq.write_table(rows, file, compression="zstd", use_dictionary=dictionaries, write_page_checksum=True)


def read_current(store: Store, run_id: str) -> pa.Table:
    """Return the rows of a run's results that this version of the tool wrote; StoreError."""
    try:
        rows, is_current = read_table(store, ATTEMPTS, run_id)
    except DamagedTableError:
        is_current = False
    return rows if is_current else make_schema(ATTEMPTS).empty_table()


def update_table(store: Store, kind: Kind, run_id: str, *, writes: bool = False) -> RunTable:
    """Return the documents of a kind after those that are new were read; StoreError where the store cannot be read.

    `writes`: write fewer than MIN_NEW_DOCUMENTS too.
    """
    damage, is_current = "", False
    found = RunTable(store=store, kind=kind, run_id=run_id, rows=make_schema(kind.table).empty_table())
    try:
        found.rows, is_current = read_table(store, kind.table, run_id)
    except DamagedTableError as error:
        damage = str(error)
    objects, keys = _list_documents(found), found.rows["key"].to_pylist()
    removed = _find_removed(found, objects) if damage or not set(keys) <= objects.keys() else {}
    versions = removed | ({key: stored.version for key, stored in objects.items()} if is_current else {})
    kept = [
        versions.get(key) == version
        for key, version in zip(keys, found.rows["object_version"].to_pylist(), strict=True)
    ]
    known = {key for key, is_kept in zip(keys, kept, strict=True) if is_kept}
    new = {key: stored for key, stored in objects.items() if key not in known}
    if all(kept) and not new and not damage:
        return found
    lost = removed.keys() - known if damage else set()
    found.notices += [f"{damage}; its documents are read anew"] if damage else []
    if lost:
        found.notices.append(
            f"{run_id}: {len(lost):,} results have no row that can be read, and their raw results were removed: put "
            "the file that cannot be read back from a copy of the store; until then it stays as it is"
        )
    read, num_gone = _read_documents(found, new)
    rows = pa.concat_tables([found.rows.filter(np.array(kept, dtype=np.bool_)), read])
    found.rows = rows.unify_dictionaries().sort_by("key")
    is_changed = read.num_rows > 0 or not all(kept) or not is_current
    # A document that is gone since it was listed may have been removed by `clean`, as the rows of another command hold
    # it: those stay.
    may_write = not lost and not num_gone
    if is_changed and may_write and (writes or damage or read.num_rows >= MIN_NEW_DOCUMENTS):
        _write(found)
    return found


def _list_documents(found: RunTable) -> dict[str, StoredObject]:
    objects = {}
    for stored in found.store.list_objects(found.kind.find_prefix(found.run_id)):
        if found.kind.parse_key(stored.key) is not None:
            objects[stored.key] = stored
        else:
            reason = stored.problem or f"the key is not one of a {found.kind.noun}"
            found.skip(stored.key, reason, is_unread=bool(stored.problem))
    return objects


def _find_removed(found: RunTable, objects: Mapping[str, StoredObject]) -> dict[str, str]:
    """Return, by key, the version that each raw result had which was removed on purpose and is not there again."""
    if found.kind.table != ATTEMPTS:
        return {}
    removed = index_removed_results(read_raw_removals(found.store, found.run_id))
    return {key: result.version for key, result in removed.items() if key not in objects}


def _convert(name: str, rows: list[Row]) -> pa.RecordBatch:
    schema = make_schema(name)
    columns = []
    for one in schema:
        values = [row.get(one.name) for row in rows]
        if one.type == pa.float64():  # Arrow takes no integer above 2**53 for one, and some drivers report such
            values = [None if value is None else float(value) for value in values]
        columns.append(pa.array(values, type=one.type))
    return pa.RecordBatch.from_arrays(columns, schema=schema)


def _read_documents(found: RunTable, new: Mapping[str, StoredObject]) -> tuple[pa.Table, int]:
    """Return the rows of new documents, and how many documents were gone; those that do not count are skipped."""
    kind, rows = found.kind, list[Row]()
    batches = []
    present = {}
    for key, stored in new.items():
        if stored.problem:
            found.skip(key, stored.problem, is_unread=True)
        elif stored.num_bytes > MAX_DOCUMENT_BYTES:
            most = f"a {kind.noun} has at most {MAX_DOCUMENT_BYTES:,}"
            found.skip(key, f"too large: {stored.num_bytes:,} bytes, {most}")
        else:
            present[key] = stored
    num_found = 0
    for key, data in found.store.get_listed(present):
        num_found += 1
        if isinstance(data, UnreadableObject):  # it may be readable tomorrow
            found.skip(key, f"cannot be read: {data}", is_unread=True)
            continue
        parsed, stored = kind.parse_key(key), present[key]
        assert parsed is not None  # as it was listed
        try:
            row = kind.describe(data, parsed)
        except InvalidDocumentError as error:
            found.skip(key, str(error))
            continue
        rows.append(row | {"key": key, "object_version": stored.version, "num_bytes": stored.num_bytes})
        if len(rows) == NUM_PYTHON_ROWS:
            batches.append(_convert(kind.table, rows))
            rows.clear()
    table = pa.Table.from_batches([*batches, _convert(kind.table, rows)], make_schema(kind.table))
    return table, len(present) - num_found


def to_frame(rows: pa.Table, columns: Columns) -> pd.DataFrame:
    """Return rows as a data frame of these columns, as `make_frame` makes it of the same values."""
    nullable = {pa.int64(): pd.Int64Dtype(), pa.bool_(): pd.BooleanDtype()}
    frame: pd.DataFrame = rows.select([*columns]).to_pandas(types_mapper=nullable.get)
    return frame.astype(dict(columns))


def _write(found: RunTable) -> None:
    """Write the table into the store; one that takes none is no error."""
    file = io.BytesIO()
    write_parquet(found.rows.replace_schema_metadata({VERSION_KEY: compute_version()}), file)
    try:
        found.store.put(table_key(found.kind.table, found.run_id), file.getvalue(), retry_seconds=0)
    except StoreError as error:
        found.notices.append(f"{error}; the tables cannot be written there: the next command reads the results anew")
