"""Gather rows of documents into batches of bounded size, as Arrow tables."""

from collections.abc import Mapping, Sequence
from typing import Any

import pyarrow as pa

from bench.store import StoredObject
from collector.results.dataset.columns import ENVIRONMENTS, QUARANTINE, make_schema
from collector.results.dataset.documents import OTHER_TABLES, Row, Rows

# Rows as Python objects take ten times the room of the same rows in Arrow.
NUM_PYTHON_ROWS = 512


class Batch:
    """The rows of documents of one kind that were read and not yet written."""

    def __init__(self, table: str, run_id: str) -> None:
        self.table = table
        self.num_bytes = 0
        self.num_documents = 0
        self._run_id = run_id
        self._rows: dict[str, list[Row]] = {name: [] for name in (table, *OTHER_TABLES[table], QUARANTINE)}
        self._tables: dict[str, list[pa.RecordBatch]] = {name: [] for name in self._rows}
        self._environments: set[str] = set()

    def add(self, stored: StoredObject, rows: Rows) -> None:
        """Add the rows of one document."""
        document = _name_object(stored)
        for name, found in rows.items():
            self._rows[name] += [row | document for row in found if name != ENVIRONMENTS or self._is_new(row)]
        self._count(stored)

    def quarantine(self, stored: StoredObject, reason: str) -> None:
        """Add one document that cannot count, and why."""
        self._rows[QUARANTINE].append(_name_object(stored) | {"run_id": self._run_id, "reason": reason})
        self._count(stored)

    def take_tables(self) -> Mapping[str, pa.Table]:
        """Return all rows by table, sorted by the documents' keys so that ranges of keys are near each other."""
        self._convert()
        tables = {}
        for name, batches in self._tables.items():
            found = pa.Table.from_batches(batches, schema=make_schema(name))
            tables[name] = found.sort_by("key") if "key" in found.column_names else found
        return tables

    def _count(self, stored: StoredObject) -> None:
        self.num_documents += 1
        self.num_bytes += stored.num_bytes
        if self.num_documents % NUM_PYTHON_ROWS == 0:
            self._convert()

    def _is_new(self, environment: Row) -> bool:
        """Return whether no document before had the row of this environment; it is noted."""
        is_new = environment["environment_document"] not in self._environments
        self._environments.add(environment["environment_document"])
        return is_new

    def _convert(self) -> None:
        for name, rows in self._rows.items():
            if rows:
                self._tables[name].append(_make_batch(name, rows))
                rows.clear()


def _name_object(stored: StoredObject) -> Row:
    return {"key": stored.key, "object_version": stored.version, "num_bytes": stored.num_bytes}


def _make_batch(table: str, rows: Sequence[Row]) -> pa.RecordBatch:
    schema = make_schema(table)
    columns = [_make_column([row.get(field.name) for row in rows], field.type) for field in schema]
    return pa.RecordBatch.from_arrays(columns, schema=schema)


def _make_column(values: list[Any], kind: pa.DataType) -> pa.Array:
    try:
        return pa.array(values, type=kind)
    except pa.ArrowInvalid:
        if kind != pa.float64():
            raise
        # Arrow takes no integer above 2**53 for a float; documents have larger ones where a driver reports nonsense.
        return pa.array([None if value is None else float(value) for value in values], type=kind)
