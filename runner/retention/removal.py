"""Removes the raw results of a plan: first it is recorded which, then they are deleted, so any point is a safe end."""

from collections.abc import Callable, Iterator
from datetime import datetime
from itertools import islice
from uuid import uuid4

from bench.raw_removals import index_removed_results, read_raw_removals
from bench.schema import RawRemoval, RemovedResult
from bench.store import Store, raw_removal_key, result_key
from runner import __version__
from runner.retention.held_results import HeldResults
from runner.retention.plan import RemovableResult, RemovalPlan, RunPlan, plan_removal
from runner.retention.policy import Policy

RESULTS_PER_RECORD = 5_000
"""A record of about 1 MB, and five requests of S3's DeleteObjects between it and the next one."""


def remove_raw_results(
    store: Store,
    held: HeldResults,
    policy: Policy,
    shown: RemovalPlan,
    now: datetime,
    report: Callable[[RunPlan], None],
) -> None:
    """Delete the raw results that the plan shows and that may still be removed; call `report` after each run.

    Everything is looked at again first: somebody may have resumed a run while the plan was read.
    StoreError if the store cannot be used: what is not deleted stays, and the same call later goes on.
    """
    named = {run.run_id: {result.key for result in run.removable} for run in shown.runs}
    for run in plan_removal(store, held, policy, now).runs:
        results = tuple(result for result in run.removable if result.key in named.get(run.run_id, ()))
        if results:
            _remove_results(store, policy, run.run_id, results, now)
            report(RunPlan(run_id=run.run_id, last_write=run.last_write, removable=results, kept=run.kept))


def _remove_results(
    store: Store, policy: Policy, run_id: str, results: tuple[RemovableResult, ...], now: datetime
) -> None:
    recorded = index_removed_results(read_raw_removals(store, run_id))
    for chunk in _split(results):
        new = [entry for entry in map(_describe, chunk) if recorded.get(_find_key(run_id, entry)) != entry]
        if new:
            document = RawRemoval(
                run_id=run_id, at=now, tool_version=__version__, policy=policy.text, results=tuple(new)
            )
            store.put(raw_removal_key(run_id, uuid4().hex), document.to_json())
        store.delete_many(result.key for result in chunk)


def _split(results: tuple[RemovableResult, ...]) -> Iterator[list[RemovableResult]]:
    left = iter(results)
    while chunk := list(islice(left, RESULTS_PER_RECORD)):
        yield chunk


def _describe(result: RemovableResult) -> RemovedResult:
    return RemovedResult(
        cell_id=result.parts.cell_id,
        repeat=result.parts.repeat,
        attempt=result.parts.attempt,
        status=result.held.status,
        attempt_seconds=result.held.attempt_seconds,
        verdict=result.held.verdict,
        is_contaminated=result.held.is_contaminated,
        num_bytes=result.held.num_bytes,
        version=result.held.version,
    )


def _find_key(run_id: str, entry: RemovedResult) -> str:
    return result_key(run_id, entry.cell_id, entry.repeat, entry.attempt)
