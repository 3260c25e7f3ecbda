"""Merge small parts into larger ones, and delete parts whose rows are in others once nobody can be reading them."""

from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from datetime import UTC, datetime, timedelta

import pyarrow as pa

from bench.store import StoreError
from collector.results.dataset.columns import ENVIRONMENTS, QUARANTINE, make_schema
from collector.results.dataset.documents import OTHER_TABLES
from collector.results.dataset.parts import Part, PartContent
from collector.results.dataset.places import Places

# Each part costs a request per command: 32 take 0.1 s from a local server and 1 to 3 s from a bucket far away.
MAX_SMALL_PARTS = 32
SMALL_PART_ROWS = 2048
MERGED_ROWS = 8192
# How long after it was replaced a part stays for whoever listed it before and reads it now, with DuckDB for example.
GRACE = timedelta(hours=1)


def drop_replaced(contents: Sequence[PartContent]) -> list[PartContent]:
    """Return the parts whose rows are not in another one of them."""
    replaced = {part_id for content in contents for part_id in content.replaces}
    return [content for content in contents if content.part.part_id not in replaced]


def compact_parts(places: Places, contents: Sequence[PartContent]) -> list[PartContent]:
    """Return parts of the same rows, in fewer files where there were more than MAX_SMALL_PARTS small ones.

    A merged part names those that it replaces; who sees it leaves them out, and who does not still has them. Two
    collectors that merge the same parts at once leave two that hold the same rows. Replaced parts are deleted by a
    later collection, GRACE after they were replaced by the store's clock and this machine's.
    """
    small = [
        content
        for content in contents
        if content.part.store is not None and content.part.is_current and content.rows.num_rows < SMALL_PART_ROWS
    ]
    if len(small) <= MAX_SMALL_PARTS:
        return list(contents)
    merged = [_merge(places, group) for group in _group(small)]
    small_ids = {content.part.part_id for content in small}
    return [*(content for content in contents if content.part.part_id not in small_ids), *merged]


def _group(contents: Sequence[PartContent]) -> Iterator[list[PartContent]]:
    group: list[PartContent] = []
    for content in contents:
        group.append(content)
        if sum(found.rows.num_rows for found in group) >= MERGED_ROWS:
            yield group
            group = []
    if group:
        yield group


def _merge(places: Places, group: Sequence[PartContent]) -> PartContent:
    first = group[0].part
    names = {name for content in group for name in content.other_tables}
    tables = {first.table: pa.concat_tables([content.rows for content in group]).sort_by("key")}
    for name in sorted(names):
        found = [content.part.read(name) for content in group if name in content.other_tables]
        tables[name] = _drop_duplicates(pa.concat_tables([make_schema(name).empty_table(), *found]), name)
    return places.write(first.table, first.run_id, tables, [content.part.part_id for content in group])


def _drop_duplicates(rows: pa.Table, table: str) -> pa.Table:
    if table != ENVIRONMENTS:
        return rows.sort_by("key")
    first: dict[str, int] = {}
    for index, document in enumerate(rows["environment_document"].to_pylist()):
        first.setdefault(document, index)
    return rows.take(list(first.values()))


def delete_replaced(parts: Iterable[Part], contents: Sequence[PartContent]) -> None:
    """Delete the parts that one of `contents` replaced more than GRACE ago. Where that is refused, they stay unused."""
    now = datetime.now(UTC)
    replaced = {
        part_id
        for content in contents
        if content.part.modified_at is not None and now - content.part.modified_at > GRACE
        for part_id in content.replaces
    }
    for part in parts:
        if part.part_id in replaced and part.store is not None:
            # The table that names the documents first: without it the others are seen by nobody.
            for table in (part.table, *OTHER_TABLES[part.table], QUARANTINE):
                with suppress(StoreError):
                    part.store.delete(part.key_of(table))
