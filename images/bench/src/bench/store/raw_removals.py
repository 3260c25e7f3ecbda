"""Reads which raw results of a run were removed on purpose, for everybody who would take them for missing."""

from collections.abc import Iterable

from bench.errors import UserError
from bench.schema import InvalidDocumentError, RawRemoval, RemovedResult, read_raw_removal
from bench.store import Store, UnreadableObject, raw_removals_prefix, result_key


def read_raw_removals(store: Store, run_id: str) -> list[RawRemoval]:
    """Return what says which raw results of the run were removed, the oldest first.

    Raise UserError if one cannot be read: its repeats would be measured again.
    """
    removals: list[RawRemoval] = []
    keys = list(store.list_keys(raw_removals_prefix(run_id)))
    for key, data in store.get_listed(keys):
        if isinstance(data, UnreadableObject):
            raise data
        removals.append(_read(store, key, data, run_id))
    if num_gone := len(keys) - len(removals):
        raise UserError(
            f"{store.url}/{raw_removals_prefix(run_id)}: {num_gone} of {len(keys)} objects were deleted "
            "while they were read; find out who deletes from this store, then try again"
        )
    return sorted(removals, key=lambda removal: removal.at)


def index_removed_results(removals: Iterable[RawRemoval]) -> dict[str, RemovedResult]:
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
