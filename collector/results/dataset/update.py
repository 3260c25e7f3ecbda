"""Bring a run's part of the data set up to date: read the documents that no part names yet, and write them as parts.

What is new is the listing minus what the parts name, by key and version of the object. Any number of collectors can do
it at once: parts have names of their own and never change, and of rows that two of them wrote, readers take one.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

import pyarrow as pa

from bench.foreign_files import show_bytes
from bench.schema import InvalidDocumentError
from bench.signatures.signed_store import UnverifiedObject
from bench.store import (
    MAX_DOCUMENT_BYTES,
    KeyMissing,
    Store,
    StoredObject,
    StoreError,
    StoreUnreachable,
    StoreUntrusted,
    find_digest,
    is_digest_of,
)
from collector.results.collection import SkippedDocument
from collector.results.dataset.batches import Batch
from collector.results.dataset.columns import ATTEMPTS, QUARANTINE
from collector.results.dataset.compaction import compact_parts, delete_replaced, drop_replaced
from collector.results.dataset.digests import DamagedPartError
from collector.results.dataset.documents import Kind
from collector.results.dataset.parts import Part, PartContent, hold_part, list_parts, read_contents
from collector.results.dataset.places import Places
from collector.results.dataset.removed import (
    count_lost_rows,
    find_removed_versions,
    holds_removed_rows,
    keep_removed_rows,
)

# Larger ones are read one at a time, so that what was read ahead stays small.
LARGE_DOCUMENT_BYTES = 2**18
# Of raw JSON, which is the more compact form of long series: a part is a few MB then, and the memory stays bounded.
BATCH_BYTES = 32 * 2**20
# Fewer are read anew each time, in about 0.1 s: a part of its own is not worth it. `collect` writes them.
MIN_PART_DOCUMENTS = 256


@dataclass(kw_only=True)
class RunTable:
    """The documents of one kind of a run as the data set has them now."""

    kind: Kind
    contents: list[PartContent]
    objects: Mapping[str, StoredObject]
    """What the store lists, by key: only rows of these objects count."""
    skipped: list[SkippedDocument] = field(default_factory=list)
    """Keys that are none of a document, and documents that cannot be read at present: in no part."""


def update_table(
    places: Places, store: Store, kind: Kind, run_id: str, *, writes_all: bool = False, rebuilds: bool = False
) -> RunTable:
    """Return the documents of a kind after those that are new were read; StoreError where the store cannot be read.

    Where reading ends early, what was read is written: the next collection goes on from there. `writes_all`: write
    fewer than MIN_PART_DOCUMENTS too. `rebuilds`: read all documents anew, and replace the parts that there are; the
    rows of those that were removed on purpose stay, those of another version of the tool as that version wrote them. A
    part that cannot be read and may have the only rows of such results is not replaced.
    """
    contents, damaged = _read_parts(places, kind.table, run_id)
    damaged = _select_replaceable(places, store, kind, run_id, contents, damaged)
    table = RunTable(kind=kind, contents=[] if rebuilds else contents, objects={})
    table.objects = _list_documents(store, kind, run_id, table)
    known = _find_known(table)
    new = {
        key: stored for key, stored in table.objects.items() if key not in known and not _skip_unreadable(stored, table)
    }
    del known
    reader = _Reader(places=places, store=store, kind=kind, run_id=run_id, table=table)
    reader.read(new, set() if rebuilds else damaged, writes_all=writes_all or rebuilds)
    if rebuilds:
        # After the reading: `clean` may have removed documents meanwhile, and says which before it removes them.
        removed = find_removed_versions(store, run_id)
        is_kept = [not found.part.is_current and holds_removed_rows(found, removed) for found in contents]
        replaced = [found for found, kept in zip(contents, is_kept, strict=True) if not kept]
        table.contents += [found for found, kept in zip(contents, is_kept, strict=True) if kept]
        table.contents += keep_removed_rows(places, replaced, removed)
        _replace(places, table, run_id, {found.part.part_id for found in replaced} | damaged)
    table.contents = compact_parts(places, table.contents)
    return table


def _read_parts(places: Places, table: str, run_id: str) -> tuple[list[PartContent], set[str]]:
    """Return the parts that count, and the ids of those that cannot be read: their documents are read anew.

    A part of another version of the tool that cannot be read is neither: that version may be able to, and it may have
    the only rows of results that were removed. Parts that others replaced a while ago are deleted.
    """
    contents: list[PartContent] = []
    damaged: dict[str, Part] = {}
    reasons: dict[str, str] = {}
    num_foreign = 0
    for store in places.stores:
        parts = list_parts(store, table, run_id)
        for part, found in zip(parts, read_contents(parts), strict=True):
            if not isinstance(found, DamagedPartError):
                contents.append(found)
            elif part.is_current:
                damaged[part.part_id], reasons[part.part_id] = part, str(found)
            else:
                num_foreign += 1
    if num_foreign:
        is_one = num_foreign == 1
        places.notices.append(
            f"{num_foreign:,} {'file' if is_one else 'files'} of the tables of {run_id} {'is' if is_one else 'are'} of "
            "another version of benchmatrix, which this one cannot read; what is there stays as it is"
        )
    delete_replaced([*(content.part for content in contents), *damaged.values()], contents)
    kept = drop_replaced(contents)
    replaced = {part_id for content in contents for part_id in content.replaces}
    unread = damaged.keys() - replaced
    places.notices += [f"{reasons[part_id]}; its documents are read anew" for part_id in sorted(unread)]
    return kept, unread


def _select_replaceable(
    places: Places, store: Store, kind: Kind, run_id: str, contents: list[PartContent], damaged: set[str]
) -> set[str]:
    """Return which of the damaged parts may be replaced: none where they may have the only rows of removed results."""
    num_lost = count_lost_rows(store, run_id, contents) if damaged and kind.table == ATTEMPTS else 0
    if not num_lost:
        return damaged
    places.notices.append(
        f"{run_id}: {num_lost:,} results have no row that can be read, and their raw results were removed: put the "
        "files that cannot be read back from a copy of the store; until then they stay as they are"
    )
    return set()


def _replace(places: Places, table: RunTable, run_id: str, replaced: set[str]) -> None:
    """Write an empty part that replaces others: until then they count, so that an interruption loses nothing."""
    if replaced:
        batch = Batch(table.kind.table, run_id)
        table.contents.append(places.write(table.kind.table, run_id, batch.take_tables(), replaced))


def _list_documents(store: Store, kind: Kind, run_id: str, table: RunTable) -> dict[str, StoredObject]:
    objects = {}
    for stored in store.list_objects(kind.find_prefix(run_id)):
        if kind.parse_key(stored.key) is not None:
            objects[stored.key] = stored
        else:
            reason = stored.problem or f"the key is not one of a {kind.noun}"
            table.skipped.append(
                SkippedDocument(key=show_bytes(stored.key), reason=reason, is_unread=bool(stored.problem))
            )
    return objects


def _find_known(table: RunTable) -> set[str]:
    """Return the keys of the objects that parts of this version of the tool name as they are now."""
    known: set[str] = set()
    for content in table.contents:
        if content.part.is_current:
            tables = [content.rows]
            if QUARANTINE in content.other_tables:
                tables.append(content.part.read(QUARANTINE))
            for rows in tables:
                for key, version in zip(*(rows[name].to_pylist() for name in ("key", "object_version")), strict=True):
                    stored = table.objects.get(key)
                    if stored is not None and stored.version == version:
                        known.add(stored.key)  # the listing's string: `key` is a second one
    return known


def _skip_unreadable(stored: StoredObject, table: RunTable) -> bool:
    """Return whether a document cannot be read as its listing says; it is named then."""
    if stored.problem:
        table.skipped.append(SkippedDocument(key=stored.key, reason=stored.problem, is_unread=True))
    return bool(stored.problem)


@dataclass(kw_only=True)
class _Reader:
    """Reads new documents into batches, and has each batch written when it is full."""

    places: Places
    store: Store
    kind: Kind
    run_id: str
    table: RunTable

    def read(self, new: Mapping[str, StoredObject], replaced: set[str], *, writes_all: bool) -> None:
        is_written = writes_all or bool(replaced) or len(new) >= MIN_PART_DOCUMENTS
        batch = Batch(self.kind.table, self.run_id)
        try:
            for stored, data in self._get(new):
                self._add(batch, stored, data)
                if batch.num_bytes >= BATCH_BYTES and is_written:
                    self.table.contents.append(self.places.write(self.kind.table, self.run_id, batch.take_tables()))
                    batch = Batch(self.kind.table, self.run_id)
                    pa.default_memory_pool().release_unused()
        except StoreError:
            if batch.num_documents:
                self.places.write(self.kind.table, self.run_id, batch.take_tables())
            raise
        if is_written and (batch.num_documents or replaced):
            content = self.places.write(self.kind.table, self.run_id, batch.take_tables(), replaced)
        elif batch.num_documents:
            content = hold_part(self.kind.table, self.run_id, batch.take_tables())
        else:
            return
        self.table.contents.append(content)

    def _get(self, new: Mapping[str, StoredObject]) -> Iterator[tuple[StoredObject, bytes | StoreError]]:
        """Yield each document that is still there, the large ones last; StoreError where none can be read."""
        large = [key for key, stored in new.items() if stored.num_bytes > LARGE_DOCUMENT_BYTES]
        small = [key for key, stored in new.items() if stored.num_bytes <= LARGE_DOCUMENT_BYTES]
        readable = [key for key in large if new[key].num_bytes <= MAX_DOCUMENT_BYTES]
        for key in sorted(set(large) - set(readable)):
            yield new[key], b""
        for keys, num_parallel in ((small, 16), (readable, 1)):
            for key, data in self.store.try_many(keys, num_parallel=num_parallel) if keys else ():
                if isinstance(data, StoreUnreachable | StoreUntrusted):
                    raise data
                if not isinstance(data, KeyMissing):
                    yield new[key], data

    def _add(self, batch: Batch, stored: StoredObject, data: bytes | StoreError) -> None:
        key = self.kind.parse_key(stored.key)
        if isinstance(data, UnverifiedObject):
            self.table.skipped.append(
                SkippedDocument(key=stored.key, reason=data.reason, signature_problem=data.problem)
            )
        elif isinstance(data, StoreError):  # it may be readable tomorrow
            self._skip(stored, f"cannot be read: {data}")
        elif stored.num_bytes > MAX_DOCUMENT_BYTES:
            reason = f"too large: {stored.num_bytes:,} bytes, a {self.kind.noun} has at most {MAX_DOCUMENT_BYTES:,}"
            batch.quarantine(stored, reason)
        elif key is not None:
            try:
                batch.add(stored, self.kind.describe(data, key))
            except InvalidDocumentError as error:
                if find_digest(stored.version) is None or is_digest_of(stored.version, data):
                    batch.quarantine(stored, str(error))
                else:  # perhaps another object's answer, and right the next time
                    self._skip(stored, str(error))

    def _skip(self, stored: StoredObject, reason: str) -> None:
        """Name a document that cannot be read at present."""
        self.table.skipped.append(SkippedDocument(key=stored.key, reason=reason, is_unread=True))


def list_quarantined(table: RunTable) -> list[SkippedDocument]:
    """Return the documents that parts of this version of the tool name as damaged, as far as they are as they were."""
    found = {}
    for content in table.contents:
        if content.part.is_current and QUARANTINE in content.other_tables:
            rows: pa.Table = content.part.read(QUARANTINE)
            for row in rows.select(["key", "object_version", "reason"]).to_pylist():
                stored = table.objects.get(row["key"])
                if stored is not None and stored.version == row["object_version"]:
                    found[row["key"]] = SkippedDocument(key=row["key"], reason=row["reason"])
    return list(found.values())
