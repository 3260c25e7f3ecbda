"""Removes the raw results of old runs from a store, once the data set in it has their rows.

Whole runs only: one that is over, of which every raw result is held, and that nobody asks about any more. First it is
recorded what is removed, then it is deleted, so that any point is a safe end.
"""

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from uuid import uuid4

from bench.errors import UserError
from bench.schema import InvalidDocumentError, RawRemoval, RemovedResult, Run, read_run
from bench.store import (
    LATEST_RUN_KEY,
    KeyMissing,
    Store,
    StoredObject,
    cancelled_prefix,
    is_confirmation,
    parse_result_key,
    raw_removal_key,
    raw_removals_prefix,
    report_key,
    results_prefix,
)
from bench.store.documents import index_removed_results, read_raw_removals, read_runs
from runner import __version__
from runner.runs import find_future_runs, measure_attempt

MIN_AGE = "1d"
"""A run is resumed by itself for a day (`runner.runs.RESUME_WITHIN`), so nothing younger is removed."""
SUSPICION_KEY = re.compile(r"(?P<change>nights/[^/]+/changes/[^/]+)/suspicion\.json")
"""A change that was suspected over nights; `decision.json` beside it says that nothing is pending any more."""
COLUMNS = ("key", "object_version", "num_bytes", "status", "verdict", "fault_verdicts", "started_at", "finished_at")


@dataclass(frozen=True, kw_only=True)
class RunPlan:
    """A run whose raw results are removed."""

    run_id: str
    last_write: datetime
    """When the newest object of the run was written, by the store's clock, or when the run began, if that is later."""
    results: Mapping[str, RemovedResult]
    """By key."""

    @property
    def num_bytes(self) -> int:
        return sum(result.num_bytes for result in self.results.values())


def plan_removal(store: Store, older_than: timedelta, now: datetime) -> tuple[list[RunPlan], Mapping[str, str]]:
    """Return whose raw results are removed at `now`, of runs in which nothing was written for so long; writes nothing.

    The oldest first; and the runs old enough that keep theirs, with the reason.
    """
    runs, unreadable = read_runs(store, store.list_run_ids())
    protected = _find_protected_runs(store, runs)
    kept = {run_id: f"its run.json cannot be read ({reason})" for run_id, reason in unreadable.items()}
    planned = []
    for run in sorted(runs, key=lambda run: run.created_at):
        objects = list(store.list_objects(results_prefix(run.run_id).removesuffix("results/")))
        # What an earlier removal wrote does not count: an interrupted one goes on.
        own = raw_removals_prefix(run.run_id)
        times = [found.modified_at for found in objects if not found.key.startswith(own)]
        last_write = max([run.created_at, *filter(None, times)])
        raw = [found for found in objects if found.key.startswith(results_prefix(run.run_id))]
        if last_write > now - older_than or (not raw and run.run_id not in protected):
            continue
        if run.run_id in protected:
            kept[run.run_id] = protected[run.run_id]
        elif None in times:
            kept[run.run_id] = "how old it is is not known: the store says no time at which its objects were written"
        elif not _is_over(store, run, objects):
            kept[run.run_id] = "it may go on: repeats have no record, and it has no report in the store"
        else:
            held = _read_held_results(store, run.run_id)
            places = {found.key: (found.key, found.num_bytes, found.version) for found in raw}
            removable = {key: held[place] for key, place in places.items() if place in held}
            if num_not_held := len(raw) - len(removable):
                kept[run.run_id] = (
                    f"{num_not_held} of its {len(raw)} raw results are not in the data set as they are now "
                    "(`benchmatrix report` brings them in)"
                )
            else:
                planned.append(RunPlan(run_id=run.run_id, last_write=last_write, results=removable))
    return planned, kept


def remove_raw_results(store: Store, run: RunPlan, policy: str, now: datetime) -> None:
    """Record that options (`policy`) remove raw results of a run, and delete them; a later call deletes the rest."""
    document = RawRemoval(
        run_id=run.run_id, at=now, tool_version=__version__, policy=policy, results=tuple(run.results.values())
    )
    store.put(raw_removal_key(run.run_id, uuid4().hex), document.to_json())
    store.delete_many(run.results)


def _is_over(store: Store, run: Run, objects: Sequence[StoredObject]) -> bool:
    """Return whether a run is complete, cancelled, or reported in the store.

    A confirmation has no report, and a deadline may have cut it: it is over when nothing waits for it any more, which
    `_find_protected_runs` has looked at.
    """
    keys = {found.key for found in objects}
    if is_confirmation(run.run_id) or report_key(run.run_id) in keys:
        return True
    marks = [key for key in keys if key.startswith(cancelled_prefix(run.run_id))]
    if any(isinstance(data, bytes) for _, data in store.get_listed(marks)):
        return True
    keys |= index_removed_results(read_raw_removals(store, run.run_id)).keys()  # of a removal that was interrupted
    ended = {(parts.cell_id, parts.repeat) for parts in map(parse_result_key, keys) if parts}
    return all(
        (planned.cell.cell_id, repeat) in ended for planned in run.cells for repeat in range(1, planned.repeats + 1)
    )


def _find_protected_runs(store: Store, runs: Sequence[Run]) -> Mapping[str, str]:
    """Return the reason why a run keeps its raw results whatever its age, by run id.

    Raise UserError if the newest report, or a change that waits for its confirmation, does not say which runs it is
    about: they could not be kept.
    """
    protected = dict.fromkeys(_find_questioned_runs(store), "a change that is not decided is about it")
    nights = [run for run in runs if not is_confirmation(run.run_id)]
    future = find_future_runs(nights)  # the newest of them would take the place of the one that people look at
    if dated := [run for run in nights if run.run_id not in future]:
        protected[max(dated, key=lambda run: run.created_at).run_id] = "the newest run"
    try:
        protected[read_run(store.get(LATEST_RUN_KEY)).run_id] = f"{LATEST_RUN_KEY} names it"
    except KeyMissing:
        pass
    except InvalidDocumentError as error:
        raise UserError(
            f"{store.url}/{LATEST_RUN_KEY}: which run the newest report is of cannot be read ({error}), so nothing is "
            "removed; use the version of benchmatrix that published it"
        ) from error
    return protected


def _find_questioned_runs(store: Store) -> set[str]:
    """Return the runs that are named by suspected changes on which nothing was decided yet.

    The documents are read as JSON, whatever version of the tool wrote them: every run that they name counts.
    """
    keys = set(store.list_keys("nights"))
    found = {key: match["change"] for key in keys if (match := SUSPICION_KEY.fullmatch(key))}
    run_ids = set()
    for key, data in store.get_listed([key for key, change in found.items() if f"{change}/decision.json" not in keys]):
        try:
            document = dict(json.loads(data)) if isinstance(data, bytes) else {}
            if not document:
                raise ValueError(str(data))
        except (ValueError, TypeError) as error:
            raise UserError(
                f"{store.url}/{key}: which runs the suspected change is about cannot be read ({error}), so nothing is "
                "removed; use the version of benchmatrix that wrote it, or delete it"
            ) from error
        if document.get("confirmation_run_id", "") is not None:  # a change for the better needs no confirmation
            run_ids |= {str(value) for name, value in document.items() if name.endswith("run_id") and value}
    return run_ids


def _read_held_results(store: Store, run_id: str) -> Mapping[tuple[str, int, str], RemovedResult]:
    """Return the results of a run of which the tables in the store have every row.

    By key, size and version of the raw result that the rows were made from. Only rows of this version of the tool
    count: those of an older one may lack what the raw result still has. They are read from the rows themselves, not
    from a list beside them. UserError if they cannot be read.
    """
    from collector.results.stored_tables import read_current

    held = {}
    for row in read_current(store, run_id).select(COLUMNS).to_pylist():
        if (parts := parse_result_key(row["key"])) is not None:
            faults = row["fault_verdicts"]
            held[row["key"], row["num_bytes"], row["object_version"]] = RemovedResult(
                cell_id=parts.cell_id,
                repeat=parts.repeat,
                attempt=parts.attempt,
                status=row["status"],
                attempt_seconds=measure_attempt(row["started_at"], row["finished_at"]),
                verdict=row["verdict"],
                is_contaminated=None if faults is None else "contaminated" in faults.split(),
                num_bytes=row["num_bytes"],
                version=row["object_version"],
            )
    return held
