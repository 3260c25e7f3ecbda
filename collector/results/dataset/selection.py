"""Select the rows of parts that count: of the documents that the store holds, each once, as they are now."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from bench.store import Store
from collector.results.dataset.columns import make_schema
from collector.results.dataset.parts import Part
from collector.results.dataset.removed import find_removed_versions
from collector.results.dataset.update import RunTable

IntArray = npt.NDArray[np.int64]


@dataclass(frozen=True, kw_only=True)
class SelectedRows:
    """The rows of one table that count, in the order of their keys."""

    rows: pa.Table
    part_numbers: IntArray
    """Of each row, which of `parts` it is from."""
    parts: Sequence[Part]


def select_rows(store: Store, run_id: str, table: RunTable) -> SelectedRows:
    """Return the rows of documents that the store holds as they were when they were read.

    A row whose document is gone or was replaced does not count, unless it was removed on purpose and the row is of the
    version that was removed. Of several rows of one document the first counts, in the order of the parts: the present
    version's, then by name.
    """
    found: dict[str, tuple[int, int]] = {}
    gone: dict[tuple[str, str], tuple[int, int]] = {}
    contents = sorted(table.contents, key=lambda content: (not content.part.is_current, content.part.part_id))
    for number, content in enumerate(contents):
        keys, versions = (content.rows[name].to_pylist() for name in ("key", "object_version"))
        for index, (key, version) in enumerate(zip(keys, versions, strict=True)):
            stored = table.objects.get(key)
            if stored is not None and stored.version == version:
                found.setdefault(key, (number, index))
            elif stored is None:
                gone.setdefault((key, version), (number, index))
    if gone:
        removed = find_removed_versions(store, run_id)
        found |= {key: place for (key, version), place in gone.items() if removed.get(key) == version}
    return _take(table, [content.rows for content in contents], [content.part for content in contents], found)


def _take(
    table: RunTable, tables: Sequence[pa.Table], parts: Sequence[Part], found: dict[str, tuple[int, int]]
) -> SelectedRows:
    places = np.array([found[key] for key in sorted(found)], dtype=np.int64).reshape(-1, 2)
    starts = np.cumsum([0, *(rows.num_rows for rows in tables)])
    schema = make_schema(table.kind.table)
    rows = pa.concat_tables([schema.empty_table(), *(found.replace_schema_metadata(None) for found in tables)])
    indices = starts[places[:, 0]] + places[:, 1]
    is_all = len(indices) == rows.num_rows and bool((np.diff(indices) == 1).all())
    return SelectedRows(rows=rows if is_all else rows.take(indices), part_numbers=places[:, 0], parts=parts)
