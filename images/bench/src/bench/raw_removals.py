"""Reads which raw results of a run were removed on purpose, for everybody who would take them for missing."""

from bench.errors import UserError
from bench.schema import InvalidDocumentError, RawRemoval, RemovedResult, read_raw_removal
from bench.store import KeyMissing, Store, raw_removals_prefix, result_key


def read_raw_removals(store: Store, run_id: str) -> list[RawRemoval]:
    """Return what says which raw results of the run were removed, the oldest first.

    Raise UserError if one cannot be read: its repeats would be measured again.
    """
    found = []
    try:
        for key, data in store.get_many(store.list_keys(raw_removals_prefix(run_id))):
            found.append(_read(store, key, data, run_id))
    except KeyMissing as error:
        raise UserError(f"{error}: it was listed a moment ago; somebody deletes from this store, try again") from error
    return sorted(found, key=lambda removal: removal.at)


def index_removed_results(removals: list[RawRemoval]) -> dict[str, RemovedResult]:
    """Return the removed results by the keys that they had; of one that several removals name, the latest."""
    return {
        result_key(removal.run_id, removed.cell_id, removed.repeat, removed.attempt): removed
        for removal in removals
        for removed in removal.results
    }


def _read(store: Store, key: str, data: bytes, run_id: str) -> RawRemoval:
    try:
        removal = read_raw_removal(data)
    except InvalidDocumentError as error:
        raise UserError(
            f"{store.url}/{key}: which results were removed cannot be read ({error}); "
            "use the version of benchmatrix that wrote it"
        ) from error
    if removal.run_id != run_id:
        raise UserError(f"{store.url}/{key}: it is of the run '{removal.run_id}'; was its folder renamed or copied?")
    return removal
