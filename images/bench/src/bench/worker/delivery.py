"""Delivers a record to the store, or writes it to the log as one marked line where the store cannot be reached.

The volumes of a pod that has ended cannot be read, but its log can until the pod is deleted: the runner takes the line
from there and stores it.
"""

import base64
import sys
import tempfile
import time
import zlib
from contextlib import suppress
from pathlib import Path

from bench.errors import EXIT_NOT_OK, EXIT_OK, EXIT_RESULT_IN_LOG
from bench.store import Store, StoreError

MARK = "BENCH_RESULT"
LAST_SECONDS = 5.0
"""Time kept before the deadline for writing the record to the log."""


def deliver(store: Store, key: str, data: bytes, *, is_ok: bool, deadline: float, spare: Path | None = None) -> int:
    """Store a record, or write it elsewhere when `deadline` (of time.monotonic) is near; return the exit code.

    It then goes to the file `spare`, which is given where there is no container, and otherwise to the log.
    """
    try:
        store.put(key, data, retry_seconds=deadline - LAST_SECONDS - time.monotonic())
    except StoreError as error:
        is_spared = spare is not None and _write_spare(spare, data)
        place = f"lies in {spare}" if is_spared else "follows in the log"
        print(f"error: {error}; the record {place}", file=sys.stderr, flush=True)
        if not is_spared:
            print(mark_record(data), file=sys.stderr, flush=True)
        return EXIT_RESULT_IN_LOG
    return EXIT_OK if is_ok else EXIT_NOT_OK


def find_spare(key: str) -> Path:
    """Return the file that takes a record of this key on a machine whose store cannot be written."""
    return Path(tempfile.gettempdir()) / f"benchmatrix-{key.replace('/', '-')}"


def _write_spare(spare: Path, data: bytes) -> bool:
    """Return whether the file could be made: there is none yet, and no link of somebody else."""
    try:
        with spare.open("xb") as file:
            file.write(data)
    except OSError:
        return False
    return True


def mark_record(data: bytes) -> str:
    """Return the line that carries a record through a log: the mark, the checksum, the compressed bytes as Base64."""
    packed = zlib.compress(data, 9)
    return f"{MARK} {zlib.crc32(packed):08x} {base64.b64encode(packed).decode()}"


def find_marked_record(log: str) -> bytes | None:
    """Return the last undamaged record in a log; None where there is none."""
    for line in reversed(log.split("\n")):
        words = line.split()
        if len(words) != 3 or words[0] != MARK:
            continue
        with suppress(ValueError, zlib.error):
            packed = base64.b64decode(words[2], validate=True)
            if f"{zlib.crc32(packed):08x}" == words[1]:
                return zlib.decompress(packed)
    return None
