"""Reads the plans of the runs of a store, several at a time, and says which cannot be read."""

from collections.abc import Iterable
from datetime import UTC, datetime, timedelta

from bench.schema import InvalidDocumentError, Run, read_run
from bench.store import KeyMissing, Store, StoreError, UnreadableObject, run_key

NUM_PARALLEL_READS = 32
CLOCK_TOLERANCE = timedelta(days=1)
"""A run that began later than this from now was stamped by a clock that is wrong."""


def read_runs(store: Store, run_ids: Iterable[str]) -> tuple[list[Run], dict[str, str]]:
    """Return these runs in this order, and for each run.json that is missing or cannot be read the reason, by run id.

    Raise StoreError if the store cannot be used.
    """
    ids_by_key = {run_key(run_id): run_id for run_id in run_ids}
    found: dict[str, Run | str] = {}
    for key, data in store.try_many(ids_by_key, num_parallel=NUM_PARALLEL_READS):
        found[key] = _read(data, ids_by_key[key])
    in_order = {run_id: found[key] for key, run_id in ids_by_key.items()}
    runs = [run for run in in_order.values() if isinstance(run, Run)]
    return runs, {run_id: reason for run_id, reason in in_order.items() if isinstance(reason, str)}


def find_future_runs(runs: Iterable[Run]) -> dict[str, str]:
    """Return the runs that began in the future, by run id with what is wrong of them, in words."""
    latest = datetime.now(UTC) + CLOCK_TOLERANCE
    return {
        run.run_id: f"began on {run.created_at:%Y-%m-%d}, which is to come: a clock was or is wrong"
        for run in runs
        if run.created_at > latest
    }


def _read(data: bytes | KeyMissing | StoreError, run_id: str) -> Run | str:
    if isinstance(data, KeyMissing):
        return "there is none"
    if isinstance(data, UnreadableObject):  # a pipe in the place of one plan is no reason not to read the others
        return str(data)
    if isinstance(data, StoreError):
        raise data
    try:
        run = read_run(data)
    except InvalidDocumentError as error:
        return str(error)
    return run if run.run_id == run_id else f"it is of the run '{run.run_id}'"
