"""Documents that several commands read: the plans of runs, and which of their raw results were removed on purpose."""

from collections.abc import Iterable

from bench.errors import UserError
from bench.schema import InvalidDocumentError, RawRemoval, RemovedResult, Run, read_raw_removal, read_run
from bench.store.errors import UnreadableObject
from bench.store.keys import raw_removals_prefix, result_key, run_key
from bench.store.store import Store


def read_runs(store: Store, run_ids: Iterable[str]) -> tuple[list[Run], dict[str, str]]:
    """Return these runs in this order; for each run.json that is missing or cannot be read the reason, by run id."""
    ids_by_key = {run_key(run_id): run_id for run_id in run_ids}
    plans: dict[str, Run | str] = dict.fromkeys(ids_by_key.values(), "there is none")
    for key, data in store.get_listed(ids_by_key):
        plans[ids_by_key[key]] = _read_plan(data, ids_by_key[key])
    runs = [plan for plan in plans.values() if isinstance(plan, Run)]
    return runs, {run_id: reason for run_id, reason in plans.items() if isinstance(reason, str)}


def _read_plan(data: bytes | UnreadableObject, run_id: str) -> Run | str:
    if isinstance(data, UnreadableObject):  # one plan that is too large is no reason not to read the others
        return str(data)
    try:
        run = read_run(data)
    except InvalidDocumentError as error:
        return str(error)
    return run if run.run_id == run_id else f"it is of the run '{run.run_id}'"


def read_raw_removals(store: Store, run_id: str) -> list[RawRemoval]:
    """Return the documents that say which raw results of a run were removed, the oldest first.

    Raise UserError if one cannot be read: what it names would be measured again.
    """
    removals: list[RawRemoval] = []
    for key, data in store.get_listed(store.list_keys(raw_removals_prefix(run_id))):
        if isinstance(data, UnreadableObject):
            raise data
        try:
            removals.append(read_raw_removal(data))
        except InvalidDocumentError as error:
            raise UserError(
                f"{store.url}/{key}: which results were removed cannot be read ({error}); "
                "use the version of benchmatrix that wrote it"
            ) from error
    return sorted(removals, key=lambda removal: removal.at)


def index_removed_results(removals: Iterable[RawRemoval]) -> dict[str, RemovedResult]:
    """Return the removed results by the keys that they had; of one that several removals name, the latest."""
    return {
        result_key(removal.run_id, removed.cell_id, removed.repeat, removed.attempt): removed
        for removal in removals
        for removed in removal.results
    }
