"""Notes the digest of a part's file within the file, and refuses a file that does not fit it.

`benchmatrix clean` deletes raw results because their rows are in the data set: a bit that turned there would change a
figure that nothing else holds. Parquet's own checksums are of pages alone, and a turned bit in a column's name reads as
a part of an older version, without the column.
"""

import hashlib
import json
import secrets
from collections.abc import Mapping

METADATA_KEY = b"benchmatrix"
"""Of what a file says of its batch, in the metadata of its schema."""
DIGEST_FIELD = "sha256"
_NUM_DIGITS = 64
_BLANK = b"0" * _NUM_DIGITS


class DamagedPartError(Exception):
    """A file of the data set cannot be read: it is no whole Parquet file, or its other tables are gone."""


def make_digest_room() -> str:
    """Return what stands in the place of a digest until the file is written; no text of a result can be the same."""
    return secrets.token_hex(_NUM_DIGITS // 2)


def fill_digest(data: bytes, room: str) -> bytes:
    """Return a file with its digest in the place of `room`."""
    digest = _compute_digest(data, room.encode())
    return data.replace(room.encode(), digest.encode(), 1)


def check_digest(data: bytes, metadata: Mapping[bytes, bytes], key: str) -> None:
    """Raise DamagedPartError if a file says that its content was another one; files of earlier versions say nothing.

    `metadata`: the file's own. That of its schema is a copy in base64, in which no digest was filled in.
    """
    try:
        digest = json.loads(metadata[METADATA_KEY])[DIGEST_FIELD]
    except (KeyError, TypeError, ValueError):
        return
    if not isinstance(digest, str) or len(digest) != _NUM_DIGITS or _compute_digest(data, digest.encode()) != digest:
        raise DamagedPartError(f"{key}: is not what was written, by its SHA-256")


def _compute_digest(data: bytes, room: bytes) -> str:
    """Return the SHA-256 of a file as if zeros stood where its own digest does."""
    before, found, after = data.partition(room)
    computed = hashlib.sha256(before)
    computed.update(_BLANK if found else b"")
    computed.update(after)
    return computed.hexdigest()
