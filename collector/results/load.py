"""Load a run from a store. What cannot count is named and skipped, never fatal."""

import difflib
from collections import defaultdict
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime

from bench.errors import UserError
from bench.schema import Environment, InvalidDocumentError, PlannedCell, Result, Run, read_result, read_run
from bench.store import KeyMissing, ResultKey, Store, parse_result_key, results_prefix, run_key
from collector.results.collection import Collection, SkippedDocument
from collector.results.frames import tabulate_results, tabulate_samples
from collector.results.host_peaks import HostPeaks
from collector.results.identity import identify_environment
from collector.results.node_faults import read_node_faults
from collector.results.placements import read_placements

__all__ = ["Collection", "SkippedDocument", "load_run", "load_runs"]

NUM_NEWEST_RUNS = 5
NUM_PARALLEL_READS = 32


def load_run(store: Store, run_id: str) -> Collection:
    """Return the run with all its results. Raises UserError where the run is not there or cannot be read."""
    run = _read_run(store, run_id)
    results, skipped = _read_results(store, run)
    placements, skipped_placements = read_placements(store, run)
    node_faults, skipped_faults = read_node_faults(store, run)
    attempts = {
        planned.cell.cell_id: [
            order_attempts(results[planned.cell.cell_id, repeat]) for repeat in range(1, planned.repeats + 1)
        ]
        for planned in run.cells
    }
    host_peaks = HostPeaks(attempts)
    attempts = host_peaks.relate(attempts)
    counted = [found[0] for repeats in attempts.values() for found in repeats if found]
    return Collection(
        run=run,
        results=tabulate_results(run.run_id, run.cells, attempts, placements),
        samples=tabulate_samples(counted),
        environments=_collect_environments(counted),
        skipped=(*skipped, *skipped_placements, *skipped_faults),
        host_drifts=host_peaks.list_drifts(),
        node_faults=node_faults,
    )


def load_runs(store: Store, run_ids: Sequence[str]) -> list[Collection]:
    """Return several runs, in this order and each once, to be compared across; raises as `load_run`."""
    return [load_run(store, run_id) for run_id in dict.fromkeys(run_ids)]


def order_attempts(attempts: list[Result]) -> list[Result]:
    """Return the attempts of one repeat, the one that counts first: the earliest ok one, else the latest of all."""
    by_start = sorted(attempts, key=lambda result: (result.started_at, result.attempt))
    ok = [result for result in by_start if result.status == "ok"]
    counted = ok[0] if ok else by_start[-1] if by_start else None
    return [result for result in by_start if result is counted] + [r for r in by_start if r is not counted]


def _read_run(store: Store, run_id: str) -> Run:
    run_ids = store.list_run_ids()
    if run_id not in run_ids:
        raise UserError(_describe_missing_run(store, run_id, run_ids))
    key = run_key(run_id)
    try:
        run = read_run(store.get(key))
    except KeyMissing:
        raise UserError(f"store {store.url}: {key} is missing, without it the plan of the run is unknown") from None
    except InvalidDocumentError as error:
        raise UserError(f"store {store.url}: {key} cannot be read: {error}") from None
    if run.run_id != run_id:
        raise UserError(f"store {store.url}: {key} holds the run '{run.run_id}'; was its folder renamed or copied?")
    return run


def _describe_missing_run(store: Store, run_id: str, run_ids: list[str]) -> str:
    if not run_ids:
        return f"store {store.url}: holds no runs; `benchmatrix run` makes one, --store names another store"
    nearest = difflib.get_close_matches(run_id, run_ids, n=1, cutoff=0.0)[0]
    with ThreadPoolExecutor(NUM_PARALLEL_READS) as pool:
        starts = list(pool.map(lambda name: _read_start(store, name), run_ids))
    by_start = sorted(zip(starts, run_ids, strict=True), reverse=True)
    newest = ", ".join(name for _, name in by_start[:NUM_NEWEST_RUNS])
    return f"store {store.url}: has no run '{run_id}'; did you mean '{nearest}'? The newest are {newest}"


def _read_start(store: Store, run_id: str) -> datetime:
    try:
        return read_run(store.get(run_key(run_id))).created_at
    except (KeyMissing, InvalidDocumentError):
        return datetime.min.replace(tzinfo=UTC)


def _read_results(store: Store, run: Run) -> tuple[Mapping[tuple[str, int], list[Result]], list[SkippedDocument]]:
    planned = {plan.cell.cell_id: plan for plan in run.cells}
    results: defaultdict[tuple[str, int], list[Result]] = defaultdict(list)
    skipped = []
    keys: dict[str, ResultKey] = {}
    for key in store.list_keys(results_prefix(run.run_id)):
        parsed = parse_result_key(key)
        if parsed is None:
            skipped.append(SkippedDocument(key=key, reason="the key is not one of a result"))
        else:
            keys[key] = parsed
    for key, data in store.get_many(keys):
        try:
            result = read_planned_result(data, keys[key], planned)
        except InvalidDocumentError as error:
            skipped.append(SkippedDocument(key=key, reason=str(error)))
        else:
            results[result.cell_id, result.repeat].append(result)
    return results, sorted(skipped, key=lambda document: document.key)


def read_planned_result(data: bytes, key: ResultKey, planned: Mapping[str, PlannedCell]) -> Result:
    """Return the Result in `data`. Raise InvalidDocumentError if it is none, is not its key's, or was not planned."""
    result = read_result(data)
    for name in ("run_id", "cell_id", "repeat", "attempt"):
        held, expected = getattr(result, name), getattr(key, name)
        if held != expected:
            raise InvalidDocumentError(f"{name} is '{held}' inside, '{expected}' in its key")
    plan = planned.get(result.cell_id)
    if plan is None:
        raise InvalidDocumentError(f"cell '{result.cell_id}' is not in the run's plan")
    if result.repeat > plan.repeats:
        raise InvalidDocumentError(f"repeat {result.repeat} of a cell that was planned with {plan.repeats}")
    return result


def _collect_environments(results: list[Result]) -> dict[str, Environment]:
    environments: dict[str, Environment] = {}
    for result in results:
        if result.environment is not None:
            environments.setdefault(identify_environment(result.environment), result.environment)
    return environments
