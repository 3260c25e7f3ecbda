"""Load a run from a store, by its tables. What cannot count is named and skipped, never fatal."""

import difflib
from collections.abc import Iterable, Sequence

import pandas as pd

from bench.errors import UserError
from bench.schema import Environment, InvalidDocumentError, NodeFault, Run, read_document, read_node_fault, read_run
from bench.store import KeyMissing, Store, run_key
from bench.store.documents import read_runs
from collector.results.attempts import (
    find_unread,
    order_attempts,
    tabulate_repeats,
    unify_centers,
)
from collector.results.collection import Collection, find_steps
from collector.results.documents import NODE_FAULT_KIND, PLACEMENT_KIND, Kind, make_result_kind
from collector.results.frames import (
    ATTEMPTS,
    ENVIRONMENTS,
    PLACEMENTS,
    TABLE_COLUMNS,
    TENANT_COLUMNS,
    TENANTS,
    make_frame,
)
from collector.results.hosts import name_machines, relate_to_hosts
from collector.results.stored_tables import DamagedTableError, RunTables, to_frame, update_tables

NUM_NEWEST_RUNS = 5


def load_run(store: Store, run_id: str, *, writes_tables: bool = False, rebuilds_tables: bool = False) -> Collection:
    """Return the run with all its results, after its tables were brought up to date.

    `writes_tables`: write few new results into the store's tables too, see `update_tables`. `rebuilds_tables`: read all
    results anew. Raises UserError where the run is not there or cannot be read.
    """
    run = _read_run(store, run_id)

    def update(kind: Kind) -> RunTables:
        return update_tables(store, kind, run_id, writes=writes_tables, rebuilds=rebuilds_tables)

    try:
        results = update(make_result_kind())
        on_cluster = (
            [update(kind) for kind in (PLACEMENT_KIND, NODE_FAULT_KIND)] if run.executor == "kubernetes" else []
        )
        return _assemble(store, run, results, on_cluster)
    except DamagedTableError as error:
        raise UserError(
            f"{error}; `benchmatrix report {run_id} --store {store.url} --rebuild` makes the tables anew"
        ) from error


def load_runs(store: Store, run_ids: Sequence[str]) -> list[Collection]:
    """Return several runs, in this order and each once, to be compared across; raises as `load_run`."""
    return [load_run(store, run_id) for run_id in dict.fromkeys(run_ids)]


def join_results(collections: Iterable[Collection]) -> pd.DataFrame:
    """Return the results of several runs, one after the other, columns RESULT_COLUMNS; no step times are read."""
    return name_machines(pd.concat([collection.results for collection in collections], ignore_index=True))


def _assemble(store: Store, run: Run, results: RunTables, on_cluster: Sequence[RunTables]) -> Collection:
    attempts = to_frame(results.rows, TABLE_COLUMNS[ATTEMPTS])
    ordered, left_out = order_attempts(attempts, run.cells)
    counted = ordered.counted[ordered.counted >= 0]
    skipped = (
        *sorted([*results.skipped, *left_out], key=lambda document: document.key),
        *(document for table in on_cluster for document in table.skipped),
    )
    attempts = name_machines(unify_centers(attempts, counted))
    attempts, products = relate_to_hosts(attempts, ordered.order)
    tenants = _select_tenants(results, attempts.iloc[counted])
    placements = make_frame([], TABLE_COLUMNS[PLACEMENTS])
    if on_cluster:
        placements = to_frame(on_cluster[0].rows, TABLE_COLUMNS[PLACEMENTS])
    return Collection(
        run=run,
        results=tabulate_repeats(run, attempts, ordered, placements, find_unread(results.skipped)),
        tenants=tenants[list(TENANT_COLUMNS)],
        steps=find_steps(results, attempts.iloc[counted], tenants),
        environments=_read_environments(results, attempts.iloc[counted]),
        skipped=skipped,
        host_products=products,
        node_faults=_read_node_faults(on_cluster[1]) if on_cluster else (),
        notices=tuple(dict.fromkeys(notice for table in (results, *on_cluster) for notice in table.notices)),
        num_contaminated=ordered.num_contaminated,
    )


def _select_tenants(results: RunTables, counted: pd.DataFrame) -> pd.DataFrame:
    """Return the rows of the table of tenants of the attempts that count, in their order.

    A column `owner` says which of the counted attempts a row is of, from 0.
    """
    names = ["key", "object_version"]
    if not (counted["tenants"] > 1).any():  # as in most runs, whose table is not read then
        return make_frame([], {**TABLE_COLUMNS[TENANTS], "owner": "int64"})
    found = to_frame(results.read(TENANTS), TABLE_COLUMNS[TENANTS])
    owners = counted[names].reset_index(drop=True).rename_axis("owner").reset_index()
    return found.merge(owners, on=names).sort_values(["owner", "tenant"], ignore_index=True)


def _read_node_faults(table: RunTables) -> tuple[NodeFault, ...]:
    try:
        faults = [read_node_fault(text.encode()) for text in table.rows["document"].to_pylist()]
    except InvalidDocumentError as error:
        raise DamagedTableError(f"a node fault of the tables cannot be read ({error})") from None
    return tuple(sorted(faults, key=lambda fault: (fault.at, fault.cell_id, fault.repeat, fault.attempt)))


def _read_environments(results: RunTables, counted: pd.DataFrame) -> dict[str, Environment]:
    known = counted[counted["environment_id"].notna()].drop_duplicates("environment_id")
    if known.empty:
        return {}
    rows = results.read(ENVIRONMENTS)
    texts = dict(zip(rows["environment_document"].to_pylist(), rows["document"].to_pylist(), strict=True))
    found = {}
    for name, document in zip(known["environment_id"], known["environment_document"], strict=True):
        try:
            found[name] = read_document(Environment, texts[document].encode())
        except (KeyError, InvalidDocumentError) as error:
            raise DamagedTableError(f"the environment {document} of the tables cannot be read ({error})") from None
    return found


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
    runs, unreadable = read_runs(store, run_ids)
    by_start = [run.run_id for run in sorted(runs, key=lambda run: (run.created_at, run.run_id), reverse=True)]
    newest = ", ".join([*by_start, *unreadable][:NUM_NEWEST_RUNS])
    return f"store {store.url}: has no run '{run_id}'; did you mean '{nearest}'? The newest are {newest}"
