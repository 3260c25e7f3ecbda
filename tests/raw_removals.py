"""Make the documents that say which raw results of a run were removed."""

from collections.abc import Iterable, Mapping
from typing import Any

from bench.schema import RawRemoval, RemovedResult, Result
from bench.store import result_key
from factories import START


def make_raw_removal(
    results: Iterable[Result], *, versions: Mapping[str, str] | None = None, **overrides: Any
) -> RawRemoval:
    """Return the record of a removal of these results of one run, whose objects had these `versions` by key."""
    results = list(results)
    removed = tuple(
        RemovedResult(
            cell_id=result.cell_id,
            repeat=result.repeat,
            attempt=result.attempt,
            status=result.status,
            attempt_seconds=(result.finished_at - result.started_at).total_seconds(),
            num_bytes=len(result.to_json()),
            version=(versions or {}).get(result_key(result.run_id, result.cell_id, result.repeat, result.attempt), "1"),
        )
        for result in results
    )
    fields: dict[str, Any] = {
        "run_id": results[0].run_id,
        "at": START,
        "tool_version": "0.1.0",
        "policy": "--raw-older-than 90d",
        "results": removed,
    }
    return RawRemoval(**(fields | overrides))
