"""Finds the runs of a store that keep their raw results, whatever the policy: the newest, and those under question."""

from collections.abc import Mapping, Sequence

from bench.errors import UserError
from bench.schema import InvalidDocumentError, Run, read_run
from bench.store import LATEST_RUN_KEY, KeyMissing, Store


def find_protected_runs(store: Store, runs: Sequence[Run]) -> Mapping[str, str]:
    """Return the reason why a run keeps its raw results, by run id. `runs`: those of the store.

    Raise UserError if the newest report does not say which run it is of: that run could not be kept.
    """
    protected = {}
    if runs:
        newest = max(runs, key=lambda run: run.created_at)
        protected[newest.run_id] = "the newest run"
    if (reported := _find_reported_run(store)) is not None:
        protected[reported] = f"{LATEST_RUN_KEY} names it"
    return protected


def _find_reported_run(store: Store) -> str | None:
    try:
        return read_run(store.get(LATEST_RUN_KEY)).run_id
    except KeyMissing:
        return None
    except InvalidDocumentError as error:
        raise UserError(
            f"{store.url}/{LATEST_RUN_KEY}: which run the newest report is of cannot be read ({error}), so nothing is "
            "removed; use the version of benchmatrix that published it"
        ) from error
