"""Plans which raw results are removed from a store, run by run, and says why others are not."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime

from bench.raw_removals import index_removed_results, read_raw_removals
from bench.schema import Run
from bench.store import (
    ResultKey,
    Store,
    StoredObject,
    cancelled_prefix,
    is_confirmation,
    parse_result_key,
    raw_removals_prefix,
    report_key,
    results_prefix,
)
from bench.stored_runs import read_runs
from runner.retention.held_results import HeldResult, HeldResults
from runner.retention.policy import Policy
from runner.retention.protection import find_protected_runs

NOT_HELD = "not in the data set (`benchmatrix collect` brings them in)"
CHANGED = "changed since they were collected (`benchmatrix collect` brings them in)"
FOREIGN = "with a key that is none of a result"


@dataclass(frozen=True, kw_only=True)
class RemovableResult:
    """A raw result that the policy names and whose rows the data set holds."""

    key: str
    parts: ResultKey
    held: HeldResult


@dataclass(frozen=True, kw_only=True)
class RunPlan:
    """What is removed of a run."""

    run_id: str
    last_write: datetime
    """When the newest object of the run was written, by the store's clock, or when the run began, if that is later."""
    removable: tuple[RemovableResult, ...]
    kept: Counter[str]
    """How many raw results stay, by reason."""

    @property
    def num_bytes(self) -> int:
        """Bytes of the raw results that are removed."""
        return sum(result.held.num_bytes for result in self.removable)


@dataclass(frozen=True, kw_only=True)
class RemovalPlan:
    """What is removed from a store."""

    runs: tuple[RunPlan, ...]
    """Those with raw results to remove, the oldest first."""
    kept_runs: Mapping[str, str]
    """Runs old enough that keep all their raw results, with the reason."""
    num_younger: int
    num_removed_before: int
    """Runs old enough whose raw results are all gone already."""
    signed_run_ids: tuple[str, ...] = ()
    """Those of `runs` whose plan has a signature, right or not."""

    @property
    def num_results(self) -> int:
        """Raw results that are removed."""
        return sum(len(run.removable) for run in self.runs)

    @property
    def num_bytes(self) -> int:
        """Bytes that are removed."""
        return sum(run.num_bytes for run in self.runs)


def plan_removal(store: Store, held: HeldResults, policy: Policy, now: datetime) -> RemovalPlan:
    """Return what the policy removes at `now`. Nothing is written. StoreError if the store cannot be used."""
    runs, unreadable = read_runs(store, store.list_run_ids())
    protected = find_protected_runs(store, runs)
    signed = {run.run_id for run in runs if run.signature is not None}
    kept = {run_id: f"its run.json cannot be read ({reason})" for run_id, reason in unreadable.items()}
    planned, num_younger, num_removed_before = [], 0, 0
    for run in sorted(runs, key=lambda run: run.created_at):
        if run.created_at > now - policy.older_than:
            num_younger += 1
            continue
        objects = list(store.list_objects(results_prefix(run.run_id).removesuffix("results/")))
        if find_last_write(run, objects) > now - policy.older_than:
            num_younger += 1
        elif reason := (
            protected.get(run.run_id)
            or explain_undated(run, objects)
            or explain_unfinished(store, run, objects, policy)
        ):
            kept[run.run_id] = reason
        elif (plan := plan_run(run, objects, held)).removable:
            planned.append(plan)
        elif plan.kept:
            kept[run.run_id] = describe_kept(plan.kept)
        else:
            num_removed_before += 1
    return RemovalPlan(
        runs=tuple(planned),
        kept_runs=kept,
        num_younger=num_younger,
        num_removed_before=num_removed_before,
        signed_run_ids=tuple(plan.run_id for plan in planned if plan.run_id in signed),
    )


def plan_run(run: Run, objects: Sequence[StoredObject], held: HeldResults) -> RunPlan:
    """Return which raw results of a run can be removed, from a listing of all its objects."""
    prefix = results_prefix(run.run_id)
    raw = sorted((found for found in objects if found.key.startswith(prefix)), key=lambda found: found.key)
    rows = held.read_held(run.run_id) if raw else {}
    removable, kept = [], Counter[str]()
    for found in raw:
        parts, versions = parse_result_key(found.key), rows.get(found.key, ())
        row = next((row for row in versions if (row.num_bytes, row.version) == (found.num_bytes, found.version)), None)
        if parts is None:
            kept[FOREIGN] += 1
        elif row is not None:
            removable.append(RemovableResult(key=found.key, parts=parts, held=row))
        else:
            kept[CHANGED if versions else NOT_HELD] += 1
    return RunPlan(run_id=run.run_id, last_write=find_last_write(run, objects), removable=tuple(removable), kept=kept)


def find_last_write(run: Run, objects: Sequence[StoredObject]) -> datetime:
    """Return when the newest object of a run was written, or when the run began, if that is later.

    Objects without a time do not count (`explain_undated`), nor does what earlier removals wrote: an interrupted one
    goes on.
    """
    return max([run.created_at, *filter(None, _list_times(run, objects))])


def explain_undated(run: Run, objects: Sequence[StoredObject]) -> str | None:
    """Return why it is not known how old a run is; None if each of its objects has a time."""
    if not (num_undated := _list_times(run, objects).count(None)):
        return None
    return f"how old it is is not known: the store says no time at which {num_undated} of its objects were written"


def _list_times(run: Run, objects: Sequence[StoredObject]) -> list[datetime | None]:
    own = raw_removals_prefix(run.run_id)
    return [found.modified_at for found in objects if not found.key.startswith(own)]


def explain_unfinished(store: Store, run: Run, objects: Sequence[StoredObject], policy: Policy) -> str | None:
    """Return why a run may still be going on; None if it is over: complete, cancelled, or reported in the store.

    A confirmation has no report, and a deadline may have cut it: it is over when nothing waits for it any more, which
    `find_protected_runs` has looked at.
    """
    if is_confirmation(run.run_id):
        return None
    keys = {found.key for found in objects}
    marks = [key for key in keys if key.startswith(cancelled_prefix(run.run_id))]
    is_cancelled = any(isinstance(data, bytes) for _, data in store.get_listed(marks))
    if policy.include_unfinished or is_cancelled or report_key(run.run_id) in keys:
        return None
    removed = index_removed_results(read_raw_removals(store, run.run_id))
    ended = {(parts.cell_id, parts.repeat) for parts in map(parse_result_key, keys | removed.keys()) if parts}
    planned = {(cell.cell.cell_id, repeat) for cell in run.cells for repeat in range(1, cell.repeats + 1)}
    if not (missing := len(planned - ended)):
        return None
    return f"it may go on: {missing} of {len(planned)} repeats have no record (--include-unfinished takes it as over)"


def describe_kept(kept: Counter[str]) -> str:
    """Return how many raw results are kept, and why."""
    return ", ".join(f"{number} raw results {reason}" for reason, number in sorted(kept.items()))
