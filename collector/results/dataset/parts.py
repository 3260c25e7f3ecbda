"""Write and read parts: immutable Parquet files of one batch of documents, each table of it in a file of its own.

`tables/TABLE/RUN_ID/VERSION.ID.parquet`. The part of the table that names the documents (`attempts`, ...) is written
last: it makes the batch count, so whatever a killed collector left before it is seen by nobody.
"""

import io
import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any
from uuid import uuid4

import pyarrow as pa
import pyarrow.parquet as pq

from bench.foreign_json import decode_object
from bench.store import TABLES_PREFIX, KeyMissing, Store, StoreError, UnreadableObject
from collector.foreign_parquet import ForeignParquetError, ParquetLimits, read_foreign_parquet
from collector.results.dataset.columns import FORMER_NAMES, TABLE_COLUMNS, align_table, compute_version
from collector.results.dataset.digests import (
    DIGEST_FIELD,
    METADATA_KEY,
    DamagedPartError,
    check_digest,
    fill_digest,
    make_digest_room,
)
from collector.results.dataset.row_bounds import find_fault
from collector.results.dataset.shared_values import share_values
from collector.results.parquet_files import choose_dictionary_columns

PART_NAME = re.compile(r"(?P<version>[0-9]+-[0-9a-f]{8})\.(?P<part_id>[0-9a-f]{32})\.parquet")
ROW_GROUP_ROWS = 8192
LIMITS = ParquetLimits(max_rows=2**20, max_bytes=192 * 2**20)
"""Of one file. A merged part has at most some ten thousand documents with 64 tenants each, and its step times are those
of 300 MB of JSON (BATCH_BYTES), which writes 20 bytes for what takes 8."""


@dataclass(frozen=True, kw_only=True)
class Part:
    """One batch of rows of a table that names documents, and where the batch's other tables are."""

    store: Store | None
    """None: the batch could not be written, and `tables` holds it."""
    table: str
    run_id: str
    version: str
    part_id: str
    modified_at: datetime | None = None
    tables: Mapping[str, pa.Table] = field(default_factory=dict, repr=False)

    @property
    def is_current(self) -> bool:
        """Whether this version of the tool wrote it, or one that reads results in the same way."""
        return self.version == compute_version()

    def key_of(self, table: str) -> str:
        """Return the key of one of the batch's tables."""
        return f"{TABLES_PREFIX}/{table}/{self.run_id}/{self.version}.{self.part_id}.parquet"

    def read(self, table: str, columns: Sequence[str] | None = None) -> pa.Table:
        """Return one of the batch's tables, or some of its columns.

        DamagedPartError where it cannot be read, KeyMissing where it is gone.
        """
        if self.store is None:
            return self.tables[table].select(list(columns or self.tables[table].column_names))
        return parse_rows(self.store.get(self.key_of(table)), self.key_of(table), table, columns)


@dataclass(frozen=True, kw_only=True)
class PartContent:
    """The rows of a part, and what its file says about the batch."""

    part: Part
    rows: pa.Table
    other_tables: tuple[str, ...] = ()
    """The batch's tables that have rows."""
    replaces: tuple[str, ...] = ()
    """The ids of the parts whose rows are in this batch: they do not count beside it."""


def list_parts(store: Store, table: str, run_id: str) -> list[Part]:
    """Return the parts of a run's table that are in a store, those of the present version first, else by name."""
    parts = []
    for found in store.list_objects(f"{TABLES_PREFIX}/{table}/{run_id}"):
        match = PART_NAME.fullmatch(found.key.rpartition("/")[2])
        if match is not None and not found.problem:
            named: dict[str, Any] = match.groupdict()
            parts.append(Part(store=store, table=table, run_id=run_id, modified_at=found.modified_at, **named))
    return sorted(parts, key=lambda part: (not part.is_current, part.version, part.part_id))


def read_contents(parts: Sequence[Part]) -> Iterator[PartContent | DamagedPartError]:
    """Yield the rows of the parts of one table in their order, or why one cannot be read; raise KeyMissing, StoreError.

    The parts are of one store.
    """
    if not parts or parts[0].store is None:
        return
    keys = [part.key_of(part.table) for part in parts]
    found = dict(parts[0].store.get_listed(keys))
    if gone := next((key for key in keys if key not in found), None):
        raise KeyMissing(f"store {parts[0].store.url}: no object '{gone}'")
    for part, key in zip(parts, keys, strict=True):
        try:
            data = found.pop(key)
            if isinstance(data, UnreadableObject):
                raise DamagedPartError(str(data))
            rows = parse_rows(data, key, part.table)
            said = decode_object((pq.read_schema(pa.BufferReader(data)).metadata or {})[METADATA_KEY])
            others, replaces = (tuple(map(str, said[name])) for name in ("other_tables", "replaces"))
            yield PartContent(part=part, rows=rows, other_tables=others, replaces=replaces)
        except DamagedPartError as error:
            yield error
        except (KeyError, TypeError, ValueError) as error:
            yield DamagedPartError(f"{key}: its metadata cannot be read: {error}")


def parse_rows(data: bytes, key: str, table: str, columns: Sequence[str] | None = None) -> pa.Table:
    """Return the rows in a Parquet file of a table, with the present columns, or these of them.

    DamagedPartError where it holds none.
    """
    try:
        wanted = tuple(TABLE_COLUMNS[table] if columns is None else columns)
        former = tuple(FORMER_NAMES[name] for name in wanted if name in FORMER_NAMES)
        found = read_foreign_parquet(data, LIMITS, wanted + former)
        check_digest(data, pq.read_metadata(pa.BufferReader(data)).metadata or {}, key)
        found.validate(full=True)  # a text that is no UTF-8 would fail where it is first looked at
        rows = align_table(found, table, columns)
    except ForeignParquetError as error:
        raise DamagedPartError(f"{key}: {error}") from error
    except (pa.ArrowException, OSError, ValueError) as error:
        raise DamagedPartError(f"{key}: a column of another type: {' '.join(str(error).split())[:200]}") from error
    if fault := find_fault(rows, table):
        raise DamagedPartError(f"{key}: {fault}")
    return rows


def write_part(
    store: Store, table: str, run_id: str, tables: Mapping[str, pa.Table], replaces: Iterable[str] = ()
) -> PartContent:
    """Write a batch under a name that nobody else can take, and return it; StoreError where it cannot be written.

    `tables`: the rows of `table`, which names the documents, and of the batch's other tables. `replaces`: the ids of
    the parts whose rows are in this one.
    """
    part = Part(store=store, table=table, run_id=run_id, version=compute_version(), part_id=uuid4().hex)
    others = tuple(name for name, rows in tables.items() if name != table and rows.num_rows)
    said: dict[str, Any] = {"other_tables": others, "replaces": sorted(replaces)}
    names = (*others, table)
    for number, name in enumerate(names):
        try:
            store.put_with_short_retries(part.key_of(name), _write_file(tables[name], said))
        except StoreError:
            for written in names[:number]:  # seen by nobody without the last one, and perhaps the disk is full
                with suppress(StoreError):
                    store.delete(part.key_of(written))
            raise
    rows = share_values(tables[table])
    return PartContent(part=part, rows=rows, other_tables=others, replaces=tuple(said["replaces"]))


def _write_file(table: pa.Table, said: Mapping[str, Any]) -> bytes:
    room = make_digest_room()
    rows = table.replace_schema_metadata({METADATA_KEY: json.dumps({**said, DIGEST_FIELD: room}).encode()})
    file = io.BytesIO()
    dictionaries = choose_dictionary_columns(rows.schema)
    pq.write_table(rows, file, compression="zstd", row_group_size=ROW_GROUP_ROWS, use_dictionary=dictionaries)
    return fill_digest(file.getvalue(), room)


def hold_part(table: str, run_id: str, tables: Mapping[str, pa.Table]) -> PartContent:
    """Return a batch that is in memory only."""
    part = Part(
        store=None, table=table, run_id=run_id, version=compute_version(), part_id=uuid4().hex, tables=dict(tables)
    )
    others = tuple(name for name, rows in tables.items() if name != table and rows.num_rows)
    return PartContent(part=part, rows=tables[table], other_tables=others)
