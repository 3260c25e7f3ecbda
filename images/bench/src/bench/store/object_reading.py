"""Reads the bytes of one object, and no more of it than an object of its kind can have.

Whoever writes to a store can put anything in an object's place: a pipe that never ends, a terabyte of nothing.
"""

import errno
from pathlib import Path
from typing import TYPE_CHECKING

from bench.foreign_files import FileProblem, ForeignFileError, read_foreign_file
from bench.store.keys import TABLES_PREFIX
from bench.store.store_errors import UnreadableObject

if TYPE_CHECKING:
    from obstore.store import ObjectStore

# All documents but the plan describe one attempt, one change or one removal. A Result has 5 KB, with ten thousand
# steps 300 KB, with 250,000 and their times on the device 12 MB; the harness stops long before.
MAX_DOCUMENT_BYTES = 16 * 2**20
# The plan of a run has all its cells: 60 MB for 100,000 of them.
MAX_PLAN_BYTES = 128 * 2**20
# The rows of 8,192 results and of their steps (collector.results.dataset.compaction) have a few dozen MB.
MAX_TABLE_BYTES = 256 * 2**20


def find_limit(key: str) -> int:
    """Return how many bytes the object with this key may have."""
    if key.startswith(f"{TABLES_PREFIX}/"):
        return MAX_TABLE_BYTES
    return MAX_PLAN_BYTES if key.endswith("/run.json") else MAX_DOCUMENT_BYTES


def read_object(store: "ObjectStore", directory: Path | None, key: str) -> bytes:
    """Return an object's bytes. Raise FileNotFoundError where there is none, UnreadableObject, or obstore's errors.

    `directory`: that of a `file://` store, whose files are read without the store library, which would wait at a pipe.
    """
    limit = find_limit(key)
    if directory is not None:
        return _read_file(directory, key, limit)
    answer = store.get(key)
    num_bytes = answer.meta["size"]  # what the server says: it is asked before memory is taken for it
    if num_bytes > limit:
        raise UnreadableObject(f"'{key}' has {num_bytes:,} bytes, expected at most {limit:,}")
    return bytes(answer.bytes())


def _read_file(directory: Path, key: str, limit: int) -> bytes:
    try:
        return read_foreign_file(directory / key, max_bytes=limit)
    except ForeignFileError as error:
        if error.problem in (FileProblem.MISSING, FileProblem.DIRECTORY):  # a bucket has no object of a folder's name
            raise FileNotFoundError(key) from None
        if error.number == errno.ENOTDIR:  # a file where the store needs a folder: all below it is out of reach
            raise NotADirectoryError(errno.ENOTDIR, f"{error} (os error {errno.ENOTDIR})") from None
        raise UnreadableObject(f"'{key}' {error}") from None
