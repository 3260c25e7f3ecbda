"""Select the rows of parts that count: of the documents that the store holds, each once, as they are now."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import accumulate

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
    """The rows of one table that count, in the order of the parts."""

    rows: pa.Table
    part_numbers: IntArray
    """Of each row, which of `parts` it is from."""
    parts: Sequence[Part]


def select_rows(store: Store, run_id: str, table: RunTable) -> SelectedRows:
    """Return the rows of documents that the store holds as they were when they were read.

    A row whose document is gone or was replaced does not count, unless it was removed on purpose and the row is of the
    version that was removed. Of several rows of one document the first counts, in the order of the parts: the present
    version's, then by name. `table` has no rows any more: those of 100,000 results would not fit in twice.
    """
    found: dict[str, int] = {}
    gone: dict[tuple[str, str], int] = {}
    contents = sorted(table.contents, key=lambda content: (not content.part.is_current, content.part.part_id))
    sizes = [content.rows.num_rows for content in contents]
    for start, content in zip(accumulate(sizes, initial=0), contents, strict=False):
        keys, versions = (content.rows[name].to_pylist() for name in ("key", "object_version"))
        for index, (key, version) in enumerate(zip(keys, versions, strict=True), start):
            stored = table.objects.get(key)
            if stored is not None and stored.version == version:
                found.setdefault(stored.key, index)  # the listing's string: `key` is a second one
            elif stored is None:
                gone.setdefault((key, version), index)
    if gone:
        removed = find_removed_versions(store, run_id)
        found |= {key: index for (key, version), index in gone.items() if removed.get(key) == version}
    parts, schema = [content.part for content in contents], make_schema(table.kind.table)
    rows = pa.concat_tables(
        [schema.empty_table(), *(content.rows.replace_schema_metadata(None) for content in contents)]
    )
    part_numbers = np.repeat(np.arange(len(contents)), sizes)
    table.contents = [replace(content, rows=schema.empty_table()) for content in table.contents]
    if len(found) < rows.num_rows:
        indices = np.array(sorted(found.values()), dtype=np.int64)
        rows, part_numbers = rows.take(pa.array(indices)), part_numbers[indices]
    return SelectedRows(rows=rows, part_numbers=part_numbers, parts=parts)
