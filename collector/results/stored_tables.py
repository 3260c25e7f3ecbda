"""Keep what a run's documents say as tables in its store: one Parquet file a table, `tables/TABLE/RUN_ID.parquet`.

A file is written whole and follows from the run's documents, and from the rows that it had of raw results which were
removed on purpose (`store.raw_removals`). Of several commands that write at once the last one's files stay; what they
lack is read by the next command.
"""

import io
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from bench.schema import InvalidDocumentError
from bench.store import (
    MAX_DOCUMENT_BYTES,
    TABLES_PREFIX,
    KeyMissing,
    Store,
    StoredObject,
    StoreError,
    UnreadableObject,
)
from bench.store.documents import index_removed_results, read_raw_removals
from collector.results.documents import Kind
from collector.results.frames import ATTEMPTS, ENVIRONMENTS, STEPS, TENANTS, Columns, Row, compute_version, make_schema

VERSION_KEY = b"benchmatrix"
"""Of the metadata of a file: which version of the columns it has."""
LARGE_DOCUMENT_BYTES = 2**18
"""Larger ones are read one at a time, so that what was read ahead stays small."""
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
class RunTables:
    """The documents of one kind of a run, as rows."""

    store: Store
    kind: Kind
    run_id: str
    objects: Mapping[str, StoredObject] = field(default_factory=dict)
    """What the store lists, by key."""
    tables: dict[str, pa.Table] = field(default_factory=dict)
    """Those in memory; the others are in the store."""
    skipped: list[SkippedDocument] = field(default_factory=list)
    notices: list[str] = field(default_factory=list)

    def skip(self, key: str, reason: str, *, is_unread: bool = False) -> None:
        self.skipped.append(SkippedDocument(key=key, reason=reason, is_unread=is_unread))

    @property
    def rows(self) -> pa.Table:
        """A row for each document that counts."""
        return self.tables[self.kind.table]

    def read(self, table: str) -> pa.Table:
        """Return the rows of one of the kind's other tables; some may be of documents that do not count."""
        if table not in self.tables:
            self.tables[table] = read_table(self.store, table, self.run_id)[0]
        return self.tables[table]


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


def find_whole(attempts: pa.Table, others: Mapping[str, pa.Table]) -> npt.NDArray[np.bool_]:
    """Return which results have all that belongs to them in the other tables: steps, tenants, environment."""
    keys = attempts["key"].to_pylist()
    held = {name: set(zip(*_name(others[name]), strict=True)) for name in (STEPS, TENANTS)}
    environments = {None, *others[ENVIRONMENTS]["environment_document"].to_pylist()}
    columns = (attempts[name].to_pylist() for name in ("object_version", "status", "tenants", "environment_document"))
    return np.array(
        [
            (status != "ok" or (key, version) in held[STEPS])
            and ((tenants or 1) < 2 or status != "ok" or (key, version) in held[TENANTS])
            and environment in environments
            for key, version, status, tenants, environment in zip(keys, *columns, strict=True)
        ],
        dtype=np.bool_,
    )


def read_whole(store: Store, run_id: str) -> pa.Table:
    """Return the rows of a run's results that this version wrote with all that belongs to them; StoreError."""
    found, is_current, damages = _read_tables(store, run_id, (ATTEMPTS, STEPS, ENVIRONMENTS, TENANTS))
    if damages or not is_current:
        return make_schema(ATTEMPTS).empty_table()
    return found[ATTEMPTS].filter(pa.array(find_whole(found[ATTEMPTS], found)))


def _name(rows: pa.Table) -> tuple[list[str], list[str]]:
    return rows["key"].to_pylist(), rows["object_version"].to_pylist()


def update_tables(store: Store, kind: Kind, run_id: str, *, writes: bool = False, rebuilds: bool = False) -> RunTables:
    """Return the documents of a kind after those that are new were read; StoreError where the store cannot be read.

    `writes`: write fewer than MIN_NEW_DOCUMENTS too. `rebuilds`: read all documents anew.
    """
    found = RunTables(store=store, kind=kind, run_id=run_id)
    found.objects = _list_documents(found)
    old, is_current, damages = _read_tables(store, run_id, kind.tables[:1])
    rows = old[kind.table]
    keys = set(rows["key"].to_pylist())
    removed = _find_removed(found) if damages or not keys <= found.objects.keys() else {}
    kept = _find_kept(rows, found.objects, removed, is_usable=is_current and not rebuilds)
    if kept.all() and not rebuilds and not damages and found.objects.keys() <= keys:
        found.tables = old
        return found
    others, _, further = _read_tables(store, run_id, kind.tables[1:])
    damages += further
    if kind.table == ATTEMPTS:
        kept &= find_whole(rows, others)
    known = set(rows["key"].filter(pa.array(kept)).to_pylist())
    removed = removed or (_find_removed(found) if damages else {})
    lost = removed.keys() - known
    found.notices = [f"{reason}; its documents are read anew" for reason in damages]
    may_write = not (damages and lost)
    if not may_write:
        found.notices.append(
            f"{run_id}: {len(lost):,} results have no row that can be read, and their raw results were removed: put "
            "the files that cannot be read back from a copy of the store; until then they stay as they are"
        )
    new = {key: stored for key, stored in found.objects.items() if key not in known}
    for key, stored in new.items():
        if stored.problem:
            found.skip(key, stored.problem, is_unread=True)
    batch, num_gone = _read_documents(found, {key: stored for key, stored in new.items() if not stored.problem})
    num_read = batch[kind.table].num_rows
    found.tables = _join(old | others, kept, batch, kind)
    is_changed = num_read > 0 or not kept.all() or rebuilds or not is_current
    # A document that is gone since it was listed may have been removed by `clean`, as the rows of another command hold
    # it: those stay.
    may_write = may_write and not num_gone
    if is_changed and may_write and (writes or rebuilds or damages or num_read >= MIN_NEW_DOCUMENTS):
        _write(found)
    return found


def _list_documents(found: RunTables) -> dict[str, StoredObject]:
    objects = {}
    for stored in found.store.list_objects(found.kind.find_prefix(found.run_id)):
        if found.kind.parse_key(stored.key) is not None:
            objects[stored.key] = stored
        else:
            reason = stored.problem or f"the key is not one of a {found.kind.noun}"
            found.skip(stored.key, reason, is_unread=bool(stored.problem))
    return objects


def _read_tables(store: Store, run_id: str, names: tuple[str, ...]) -> tuple[dict[str, pa.Table], bool, list[str]]:
    """Return tables of the store, whether this version wrote all of them, and why others cannot be read: empty here."""
    tables, is_current, damages = {name: make_schema(name).empty_table() for name in names}, True, []
    for name in names:
        try:
            tables[name], is_own = read_table(store, name, run_id)
            is_current = is_current and is_own
        except DamagedTableError as error:
            damages.append(str(error))
    return tables, is_current, damages


def _find_removed(found: RunTables) -> dict[str, str]:
    """Return, by key, the version that each raw result had which was removed on purpose and is not there again."""
    if found.kind.table != ATTEMPTS:
        return {}
    removed = index_removed_results(read_raw_removals(found.store, found.run_id))
    return {key: result.version for key, result in removed.items() if key not in found.objects}


def _find_kept(
    rows: pa.Table, objects: Mapping[str, StoredObject], removed: Mapping[str, str], *, is_usable: bool
) -> npt.NDArray[np.bool_]:
    return np.array(
        [
            removed.get(key) == version
            if (stored := objects.get(key)) is None
            else is_usable and stored.version == version
            for key, version in zip(*_name(rows), strict=True)
        ],
        dtype=np.bool_,
    )


def _convert(name: str, rows: list[Row]) -> pa.RecordBatch:
    schema = make_schema(name)
    columns = [_make_column([row.get(one.name) for row in rows], one.type) for one in schema]
    return pa.RecordBatch.from_arrays(columns, schema=schema)


def _make_column(values: list[Any], kind: pa.DataType) -> pa.Array:
    try:
        return pa.array(values, type=kind)
    except pa.ArrowInvalid:
        if kind != pa.float64():
            raise
        # Arrow takes no integer above 2**53 for a float; documents have larger ones where a driver reports nonsense.
        return pa.array([None if value is None else float(value) for value in values], type=kind)


def _read_documents(found: RunTables, new: Mapping[str, StoredObject]) -> tuple[dict[str, pa.Table], int]:
    """Return the rows of new documents, and how many documents were gone; those that do not count are skipped."""
    kind, num_found = found.kind, 0
    rows: dict[str, list[Row]] = {name: [] for name in kind.tables}
    batches: dict[str, list[pa.RecordBatch]] = {name: [] for name in kind.tables}
    for stored, data in _get_documents(found.store, new):
        key = kind.parse_key(stored.key)
        assert key is not None  # as it was listed
        num_found += 1
        if isinstance(data, UnreadableObject):  # it may be readable tomorrow
            found.skip(stored.key, f"cannot be read: {data}", is_unread=True)
        elif stored.num_bytes > MAX_DOCUMENT_BYTES:
            most = f"a {kind.noun} has at most {MAX_DOCUMENT_BYTES:,}"
            found.skip(stored.key, f"too large: {stored.num_bytes:,} bytes, {most}")
        else:
            try:
                described = kind.describe(data, key)
            except InvalidDocumentError as error:
                found.skip(stored.key, str(error))
                continue
            document = {"key": stored.key, "object_version": stored.version, "num_bytes": stored.num_bytes}
            for name, own in described.items():
                rows[name] += [row | document for row in own]
            if len(rows[kind.table]) == NUM_PYTHON_ROWS:
                for name, own in rows.items():
                    batches[name].append(_convert(name, own))
                    own.clear()
    tables = {
        name: pa.Table.from_batches([*batches[name], _convert(name, own)], make_schema(name))
        for name, own in rows.items()
    }
    return tables, len(new) - num_found


def _get_documents(
    store: Store, new: Mapping[str, StoredObject]
) -> Iterator[tuple[StoredObject, bytes | UnreadableObject]]:
    """Yield each document that is there with its bytes, the large ones last; StoreError where none can be read."""
    yield from ((stored, b"") for stored in new.values() if stored.num_bytes > MAX_DOCUMENT_BYTES)
    sizes = {key: stored.num_bytes for key, stored in new.items() if stored.num_bytes <= MAX_DOCUMENT_BYTES}
    small = [key for key, size in sizes.items() if size <= LARGE_DOCUMENT_BYTES]
    large = [key for key, size in sizes.items() if size > LARGE_DOCUMENT_BYTES]
    for keys, num_parallel in ((small, 16), (large, 1)):
        for key, data in store.get_listed(keys, num_parallel=num_parallel) if keys else ():
            yield new[key], data


def to_frame(rows: pa.Table, columns: Columns) -> pd.DataFrame:
    """Return rows as a data frame of these columns, as `make_frame` makes it of the same values."""
    nullable = {pa.int64(): pd.Int64Dtype(), pa.bool_(): pd.BooleanDtype()}
    return pd.DataFrame(
        {
            name: pd.Series(
                rows[name].to_pandas(types_mapper=nullable.get if dtype in ("Int64", "boolean") else None), dtype=dtype
            )
            for name, dtype in columns.items()
        }
    )


def _join(
    old: Mapping[str, pa.Table], kept: npt.NDArray[np.bool_], batch: Mapping[str, pa.Table], kind: Kind
) -> dict[str, pa.Table]:
    """Return the tables of the kept rows of the first one and of the new documents, sorted by the documents' keys."""
    rows = old[kind.table].filter(pa.array(kept))
    documents = pc.binary_join_element_wise(rows["key"], rows["object_version"], "\n")
    tables = {kind.table: pa.concat_tables([rows, batch[kind.table]]).sort_by("key")}
    for name in kind.tables[1:]:
        own = old[name]
        if name == ENVIRONMENTS:
            own = pa.concat_tables([own, batch[name]])
            texts = own["environment_document"].to_pylist()
            used = set(tables[kind.table]["environment_document"].to_pylist())
            first = {text: place for place, text in reversed(list(enumerate(texts))) if text in used}
            tables[name] = own.take(pa.array(sorted(first.values()), pa.int64()))
        else:
            is_kept = pc.is_in(pc.binary_join_element_wise(own["key"], own["object_version"], "\n"), documents)
            by = [("key", "ascending"), ("tenant", "ascending")]
            tables[name] = pa.concat_tables([own.filter(is_kept), batch[name]]).sort_by(by)
    return tables


def _write(found: RunTables) -> None:
    """Write the tables into the store, the one that names the documents last; a store that takes none is no error."""
    for name in reversed(found.kind.tables):
        file = io.BytesIO()
        write_parquet(found.tables[name].replace_schema_metadata({VERSION_KEY: compute_version()}), file)
        try:
            found.store.put_with_short_retries(table_key(name, found.run_id), file.getvalue())
        except StoreError as error:
            found.notices.append(
                f"{error}; the tables cannot be written there: the next command reads the results anew"
            )
            return
