"""Finds the runs of a store that keep their raw results, whatever the policy: the newest, and those under question."""

import re
from collections.abc import Mapping, Sequence

from bench.errors import UserError
from bench.foreign_json import decode_object
from bench.schema import InvalidDocumentError, Run, read_run
from bench.store import LATEST_RUN_KEY, KeyMissing, Store, UnreadableObject, is_confirmation
from bench.stored_runs import find_future_runs

SUSPICION_KEY = re.compile(r"(?P<change>nights/[^/]+/changes/[^/]+)/suspicion\.json")
"""A change that was suspected over nights; `decision.json` beside it says that nothing is pending any more."""


def find_protected_runs(store: Store, runs: Sequence[Run]) -> Mapping[str, str]:
    """Return the reason why a run keeps its raw results, by run id. `runs`: those of the store.

    Raise UserError if the newest report, or a change that waits for its confirmation, does not say which runs it is
    about: they could not be kept.
    """
    protected = dict.fromkeys(_find_questioned_runs(store), "a change that is not decided is about it")
    nights = [run for run in runs if not is_confirmation(run.run_id)]
    future = find_future_runs(nights)  # the newest of them would take the place of the one that people look at
    if dated := [run for run in nights if run.run_id not in future]:
        newest = max(dated, key=lambda run: run.created_at)
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


def _find_questioned_runs(store: Store) -> set[str]:
    """Return the runs that suspected changes without a decision name.

    The documents are read as JSON, whatever version of the tool wrote them: every run that they name counts.
    """
    keys = set(store.list_keys("nights"))
    found = {key: match["change"] for key in keys if (match := SUSPICION_KEY.fullmatch(key))}
    decisions = {f"{change}/decision.json" for change in found.values()} & keys
    if store.checks_signatures:  # one that is not signed rightly decides nothing
        decisions = {key for key, data in store.get_listed(sorted(decisions)) if isinstance(data, bytes)}
    pending = [key for key, change in found.items() if f"{change}/decision.json" not in decisions]
    return {run_id for key, data in store.get_listed(pending) for run_id in _read_run_ids(store, key, data)}


def _read_run_ids(store: Store, key: str, data: bytes | UnreadableObject) -> set[str]:
    try:
        if isinstance(data, UnreadableObject):
            raise ValueError(str(data))
        document = decode_object(data)
    except ValueError as error:
        raise UserError(
            f"{store.url}/{key}: which runs the suspected change is about cannot be read ({error}), so nothing is "
            "removed; use the version of benchmatrix that wrote it, or delete it"
        ) from error
    if document.get("confirmation_run_id", "") is None:  # a change to the better needs none
        return set()
    return {str(value) for name, value in document.items() if name.endswith("run_id") and value}
