"""What a listing says of an object, and how large one of each kind may be."""

from dataclasses import dataclass
from datetime import UTC, datetime

from bench.store.keys import TABLES_PREFIX, find_key_problem

# All documents but the plan describe one attempt, one change or one removal. A Result has 5 KB, with ten thousand
# steps 300 KB, with 250,000 and their times on the device 12 MB; the harness stops long before.
MAX_DOCUMENT_BYTES = 16 * 2**20
# The plan of a run has all its cells: 60 MB for 100,000 of them.
MAX_PLAN_BYTES = 128 * 2**20
# The rows of 8,192 results and of their steps (collector.results.dataset.compaction) have a few dozen MB.
MAX_TABLE_BYTES = 256 * 2**20
EPOCH = datetime.fromtimestamp(0, UTC)


@dataclass(frozen=True, kw_only=True, slots=True)
class StoredObject:
    """One entry of a listing."""

    key: str
    num_bytes: int
    version: str
    """Differs between two objects of one key: the server's ETag; in a directory times and size."""
    modified_at: datetime | None
    problem: str = ""
    """Why it cannot be read, in words: of links that lead nowhere. Empty: it can be."""

    @classmethod
    def of_server(cls, key: str, size: int, tag: str | None, modified_at: datetime) -> "StoredObject":
        return cls(
            key=key,
            num_bytes=size,
            version=tag or f"{modified_at.isoformat()}-{size}",
            modified_at=keep_possible_time(modified_at),
            problem=find_key_problem(key),
        )


def keep_possible_time(time: datetime) -> datetime | None:
    """Return a time, None for one that stands for none: servers write 1970 or the year 1 where they know no time."""
    return time if time > EPOCH else None


def find_limit(key: str) -> int:
    """Return how many bytes the object with this key may have."""
    if key.startswith(f"{TABLES_PREFIX}/"):
        return MAX_TABLE_BYTES
    return MAX_PLAN_BYTES if key.endswith("/run.json") else MAX_DOCUMENT_BYTES
