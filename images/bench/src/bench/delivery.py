"""Delivers a Result to the store, or writes it to the log as one marked line where the store cannot be reached.

The volumes of a pod that has ended cannot be read, but its log can until the pod is deleted: the runner takes the line
from there and stores it.
"""

import base64
import random
import sys
import time
import zlib
from collections.abc import Callable
from dataclasses import dataclass

from bench.exit_codes import EXIT_NOT_OK, EXIT_OK, EXIT_RESULT_IN_LOG
from bench.schema import Result
from bench.store import MAX_DOCUMENT_BYTES, Store, StoreError, result_key

MARK = "BENCH_RESULT"
MIN_WAIT_SECONDS, MAX_WAIT_SECONDS = 0.5, 15.0
MAX_MARKS = 1000
"""In one log: the runner asks for its last lines only, so more is a log that somebody made up."""
LAST_SECONDS = 5.0
"""Time kept before the deadline for writing the record to the log."""


@dataclass(frozen=True, kw_only=True)
class Delivery:
    """Stores a record as `encode` writes it under the key that `find_key` gives, and retries until a deadline."""

    store: Store
    find_key: Callable[[Result], str] = lambda result: result_key(
        result.run_id, result.cell_id, result.repeat, result.attempt
    )
    encode: Callable[[Result], bytes] = Result.to_json

    def deliver(self, result: Result, *, deadline: float) -> int:
        """Try to store the record until `deadline` (of time.monotonic) is near, then log it; return the exit code."""
        key = self.find_key(result)
        data = self.encode(result)
        wait = MIN_WAIT_SECONDS
        while True:
            try:
                self.store.put_with_short_retries(key, data)
                return EXIT_OK if result.status == "ok" else EXIT_NOT_OK
            except StoreError as error:
                if time.monotonic() + wait > deadline - LAST_SECONDS:
                    print(f"error: {error}; the record follows in the log", file=sys.stderr, flush=True)
                    print(mark_record(data), file=sys.stderr, flush=True)
                    return EXIT_RESULT_IN_LOG
                print(f"waiting for the store: {error}", file=sys.stderr, flush=True)
            time.sleep(wait * random.uniform(0.5, 1.0))
            wait = min(2 * wait, MAX_WAIT_SECONDS)


def mark_record(data: bytes) -> str:
    """Return the line that carries a record through a log: the mark, the checksum, the compressed bytes as Base64."""
    packed = zlib.compress(data, 9)
    return f"{MARK} {zlib.crc32(packed):08x} {base64.b64encode(packed).decode()}"


def _unpack(packed: bytes) -> bytes:
    """Return the bytes of a record; ValueError for more than one can have: a line of a log can unfold to gigabytes."""
    unpacking = zlib.decompressobj()
    data = unpacking.decompress(packed, MAX_DOCUMENT_BYTES)
    if not unpacking.eof:
        raise ValueError("cut off, or too large")
    return data


def find_marked_record(log: str) -> bytes | None:
    """Return the last undamaged record in a log; None where there is none.

    The log is looked through from its end, mark by mark: a hostile one has millions of lines, and a list of them would
    take ten times its memory.
    """
    end, num_tried = len(log), 0
    while (start := log.rfind(MARK, 0, end)) >= 0 and num_tried < MAX_MARKS:
        words = log[start:end].partition("\n")[0].split(maxsplit=3)
        end, num_tried = start, num_tried + 1
        is_line = start == 0 or not log[start - 1 : start].splitlines()[0]
        if not is_line or len(words) != 3 or words[0] != MARK:
            continue
        try:
            packed = base64.b64decode(words[2], validate=True)
            if f"{zlib.crc32(packed):08x}" == words[1]:
                return _unpack(packed)
        except (ValueError, zlib.error):
            continue
    return None
