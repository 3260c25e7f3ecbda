"""Reads the bytes of one object, and no more of it than an object of its kind can have.

Whoever writes to a store can put anything in an object's place: a pipe that never ends, a terabyte of nothing. And what
is between it and here can cut an answer or mix it up with another one.
"""

import errno
import functools
import stat
from pathlib import Path
from typing import TYPE_CHECKING

from bench.foreign_files import FileProblem, ForeignFileError, read_foreign_file
from bench.store.entity_tags import EntityTags
from bench.store.keys import TABLES_PREFIX
from bench.store.obstore_calls import repeat_cut
from bench.store.store_errors import StoreUnreachable, UnreadableObject

if TYPE_CHECKING:
    from obstore.store import ObjectStore

# All documents but the plan describe one attempt, one change or one removal. A Result has 5 KB, with ten thousand
# steps 300 KB, with 250,000 and their times on the device 12 MB; the harness stops long before.
MAX_DOCUMENT_BYTES = 16 * 2**20
# The plan of a run has all its cells: 60 MB for 100,000 of them.
MAX_PLAN_BYTES = 128 * 2**20
# The step times of a run (collector.results.dataset.tables): those of 10,000 results have 20 to 40 MB.
MAX_TABLE_BYTES = 256 * 2**20
# Of one object, where the answers do not fit what they say of themselves: one wrong answer is an accident, five in a
# row are a server that nothing can be read from.
MAX_READS = 5


def find_limit(key: str) -> int:
    """Return how many bytes the object with this key may have."""
    if key.startswith(f"{TABLES_PREFIX}/"):
        return MAX_TABLE_BYTES
    return MAX_PLAN_BYTES if key.endswith("/run.json") else MAX_DOCUMENT_BYTES


def read_object(store: "ObjectStore", directory: Path | None, key: str, tags: EntityTags) -> bytes:
    """Return an object's bytes. Raise FileNotFoundError where there is none, UnreadableObject, or obstore's errors.

    `directory`: that of a `file://` store, whose files are read without the store library, which would wait at a pipe.
    `tags`: what is known of the server's ETags. An answer that does not fit its ETag is asked for again: it is taken
    when a second one is the same. StoreUnreachable where no two of MAX_READS are.
    """
    limit = find_limit(key)
    if directory is not None:
        return _read_file(directory, key, limit)
    seen: list[bytes] = []
    for _ in range(MAX_READS):
        data, tag = repeat_cut(functools.partial(_read_answer, store, key, limit))
        if data is not None and tags.fit(tag, data):
            return data
        if data is not None and data in seen:
            tags.note_misfit()
            return data
        seen += [] if data is None else [data]
    raise StoreUnreachable(f"the server's answers for '{key}' differ from each other and from their ETag; try again")


def check_held(store: "ObjectStore", directory: Path | None, key: str) -> None:
    """Raise FileNotFoundError where there is no object of this key, or obstore's errors, without reading it.

    `directory`: that of a `file://` store, where the store library would open the file and wait at a pipe. What is no
    file counts as an object: whoever reads it is told what it is.
    """
    if directory is None:
        store.head(key)
    elif stat.S_ISDIR((directory / key).stat().st_mode):  # a bucket has no object of a folder's name
        raise FileNotFoundError(key)


def _read_answer(store: "ObjectStore", key: str, limit: int) -> tuple[bytes | None, str | None]:
    """Return what the server answers for an object, None where it is not as long as it says, and its ETag."""
    answer = store.get(key)
    num_bytes = answer.meta["size"]  # what the server says: it is asked before memory is taken for it
    if num_bytes > limit:
        raise UnreadableObject(f"'{key}' has {num_bytes:,} bytes, expected at most {limit:,}")
    data = bytes(answer.bytes())
    # object_store resumes an answer that was cut, and a server that ignores its range sends all of it once more:
    # https://github.com/apache/arrow-rs-object-store/pull/609
    return (data if len(data) == num_bytes else None), answer.meta["e_tag"]


def _read_file(directory: Path, key: str, limit: int) -> bytes:
    try:
        return read_foreign_file(directory / key, max_bytes=limit)
    except ForeignFileError as error:
        if error.problem in (FileProblem.MISSING, FileProblem.DIRECTORY):  # a bucket has no object of a folder's name
            raise FileNotFoundError(key) from None
        if error.number == errno.ENOTDIR:  # a file where the store needs a folder: all below it is out of reach
            raise NotADirectoryError(errno.ENOTDIR, f"{error} (os error {errno.ENOTDIR})") from None
        raise UnreadableObject(f"'{key}' {error}") from None
