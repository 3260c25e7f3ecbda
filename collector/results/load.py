"""Load a run from a store, by its data set. What cannot count is named and skipped, never fatal."""

import difflib
from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc

from bench.errors import UserError
from bench.raw_removals import check_raw_removals
from bench.schema import Environment, InvalidDocumentError, NodeFault, Run, read_document, read_node_fault, read_run
from bench.store import KeyMissing, Store, run_key
from bench.stored_runs import read_runs
from collector.results.attempts import IntArray, order_attempts
from collector.results.centers import unify_centers
from collector.results.collection import Collection, SignatureCheck, SkippedDocument
from collector.results.copied_runs import drop_copies
from collector.results.dataset.columns import ENVIRONMENTS, PLACEMENTS, make_schema
from collector.results.dataset.digests import DamagedPartError
from collector.results.dataset.documents import NODE_FAULT_KIND, PLACEMENT_KIND, make_result_kind
from collector.results.dataset.places import Places
from collector.results.dataset.selection import SelectedRows, select_rows
from collector.results.dataset.update import RunTable, list_quarantined, update_table
from collector.results.dates import describe_odd_dates
from collector.results.host_peaks import HostPeaks
from collector.results.hosts import name_machines, name_machines_of_attempts
from collector.results.repeats import select_counted, tabulate_repeats
from collector.results.steps import StepTimes, name_series
from collector.results.tenants import read_tenants, tabulate_tenants
from collector.results.unread import UnreadRecords

__all__ = ["Collection", "SkippedDocument", "join_results", "load_run", "load_runs"]

NUM_NEWEST_RUNS = 5
# A part may be merged into another and deleted between its listing and its reading; hardly twice in a row.
MAX_LOADS = 3


def load_run(store: Store, run_id: str, *, writes_tables: bool = False, rebuilds_tables: bool = False) -> Collection:
    """Return the run with all its results, after the data set was brought up to date.

    `writes_tables`: write few new results into the data set too, see `update_table`. `rebuilds_tables`: read all
    results anew. Raises UserError where the run is not there or cannot be read.
    """
    run = _read_run(store, run_id)
    for attempt in range(MAX_LOADS):
        try:
            return _Loader(store, run, writes_all=writes_tables, rebuilds=rebuilds_tables).load()
        except KeyMissing as error:
            if attempt == MAX_LOADS - 1:
                raise UserError(explain_damage(store, run_id, str(error))) from error
        except DamagedPartError as error:
            raise UserError(explain_damage(store, run_id, str(error))) from error
    raise AssertionError("the loop returns or raises")


def explain_damage(store: Store, run_id: str, error: str) -> str:
    """Return in words that the data set of a run is damaged, and how to mend it."""
    return f"{error}; `benchmatrix collect {run_id} --store {store.url} --rebuild` makes the tables anew"


def load_runs(store: Store, run_ids: Sequence[str]) -> list[Collection]:
    """Return several runs, in this order and each once, to be compared across; raises as `load_run`."""
    return [load_run(store, run_id) for run_id in dict.fromkeys(run_ids)]


def load_distinct_runs(store: Store, run_ids: Sequence[str]) -> list[Collection]:
    """Return several runs as `load_runs` does, to count their repeats together: without those that are copies."""
    return drop_copies(load_runs(store, run_ids))


def join_results(collections: Iterable[Collection]) -> pd.DataFrame:
    """Return the results of several runs, one after the other, columns RESULT_COLUMNS; no step times are read."""
    return name_machines(pd.concat([collection.results for collection in collections], ignore_index=True))


class _Loader:
    """Loads one run once."""

    def __init__(self, store: Store, run: Run, *, writes_all: bool, rebuilds: bool) -> None:
        self._store = store
        self._run = run
        self._places = Places(store)
        self._options = {"writes_all": writes_all, "rebuilds": rebuilds}

    def load(self) -> Collection:
        # Arrow's own pool keeps what is freed: of 100,000 results, 80 MB more at the end of their loading.
        pa.set_memory_pool(pa.system_memory_pool())
        pa.default_memory_pool().release_unused()  # of the JSON of 20,000 cells, 33 MB
        run, kind = self._run, make_result_kind()
        results = update_table(self._places, self._store, kind, run.run_id, **self._options)
        attempts = select_rows(self._store, run.run_id, results)
        num_read = attempts.rows.num_rows
        quarantined = list_quarantined(results)
        results.objects = {}  # a listing of 100,000 results takes 36 MB
        pa.default_memory_pool().release_unused()
        ordered, left_out = order_attempts(attempts.rows, run.cells)
        placements, skipped_placements = self._load_placements()
        node_faults, skipped_faults = self._load_node_faults()
        counted = select_counted(ordered)
        skipped = sorted([*results.skipped, *quarantined, *left_out], key=lambda found: found.key)
        doubts, tenants = describe_odd_dates(attempts.rows, run), read_tenants(results, attempts, counted)
        unread = UnreadRecords.among(results.skipped)
        all_skipped = (*skipped, *skipped_placements, *skipped_faults, *_list_refused_removals(self._store, run.run_id))
        steps = _find_steps(attempts, counted, tenants)
        environments = _read_environments(results, attempts, counted)
        rows = name_machines_of_attempts(unify_centers(attempts.rows, counted))
        host_peaks = HostPeaks(rows, ordered.order)
        related = host_peaks.relate(ordered.counted)
        columns = dict(zip(rows.column_names, rows.columns, strict=True))
        del results, attempts, rows  # each column goes when it is converted: they would be in memory twice
        return Collection(
            run=run,
            results=tabulate_repeats(run.run_id, run.cells, columns, ordered, related, placements, unread),
            tenants=tabulate_tenants(tenants),
            steps=steps,
            environments=environments,
            skipped=all_skipped,
            host_products=host_peaks.list_products(),
            node_faults=node_faults,
            signatures=_count_signatures(self._store, num_read, all_skipped),
            notices=tuple(self._places.notices),
            doubts=doubts,
            num_contaminated=ordered.num_contaminated,
        )

    def _load_placements(self) -> tuple[pa.Table, list[SkippedDocument]]:
        """Return the rows of a run's placements; a local run has none."""
        if self._run.executor != "kubernetes":
            return make_schema(PLACEMENTS).empty_table(), []
        table = update_table(self._places, self._store, PLACEMENT_KIND, self._run.run_id, **self._options)
        rows = select_rows(self._store, self._run.run_id, table).rows
        return rows, [*table.skipped, *list_quarantined(table)]

    def _load_node_faults(self) -> tuple[tuple[NodeFault, ...], list[SkippedDocument]]:
        """Return the node faults of a run, the oldest first; a local run has none."""
        if self._run.executor != "kubernetes":
            return (), []
        table = update_table(self._places, self._store, NODE_FAULT_KIND, self._run.run_id, **self._options)
        documents = select_rows(self._store, self._run.run_id, table).rows["document"].to_pylist()
        try:
            faults = [read_node_fault(text.encode()) for text in documents]
        except InvalidDocumentError as error:
            raise DamagedPartError(f"a node fault of the tables cannot be read ({error})") from None
        faults.sort(key=lambda fault: (fault.at, fault.cell_id, fault.repeat, fault.attempt))
        return tuple(faults), [*table.skipped, *list_quarantined(table)]


def _list_refused_removals(store: Store, run_id: str) -> list[SkippedDocument]:
    """Return what says that results were removed and is not signed rightly, where that is checked."""
    if not store.checks_signatures:
        return []
    refused = check_raw_removals(store, run_id).refused
    return [
        SkippedDocument(key=key, reason=error.reason, signature_problem=error.problem)
        for key, error in sorted(refused.items())
    ]


def _count_signatures(store: Store, num_read: int, skipped: Sequence[SkippedDocument]) -> SignatureCheck | None:
    """Return what was found of the signatures; None where the store does not check them."""
    if not store.checks_signatures:
        return None
    problems = Counter(document.signature_problem for document in skipped if document.signature_problem)
    return SignatureCheck(num_right=num_read, problems={str(name): count for name, count in problems.most_common()})


def _find_steps(attempts: SelectedRows, counted: IntArray, tenants: pa.Table) -> StepTimes:
    """Return where the series of steps are: of each counted attempt, and after them of its further `tenants`."""
    names = ["key", "object_version", "cell_id", "repeat", "num_warmup_steps_taken", "num_steps_taken"]
    rows = attempts.rows.select(names).take(counted)
    rows = rows.append_column("tenant", pa.array(np.zeros(len(counted), dtype=np.int64)))
    others = tenants.filter(pc.greater(tenants["tenant"], 0))
    places = others["place"].to_numpy()
    series = [rows, others]
    numbers = (_count_steps(found) for found in series)

    def join(name: str) -> list[Any]:
        return [value for found in series for value in found[name].to_pylist()]

    return StepTimes(
        documents=pa.concat_arrays([name_series(found).combine_chunks() for found in series]),
        tenants=join("tenant"),
        owners=[*range(len(counted)), *places.tolist()],
        cell_ids=pa.concat_tables([found.select(["cell_id"]) for found in series])["cell_id"]
        .combine_chunks()
        .dictionary_encode(),
        repeats=join("repeat"),
        num_steps=np.concatenate(list(numbers)),
        part_numbers=np.concatenate([attempts.part_numbers[counted], attempts.part_numbers[counted][places]]),
        parts=attempts.parts,
    )


def _count_steps(rows: pa.Table) -> IntArray:
    """Return how many steps each row has, warm-up included."""
    numbers = [pc.fill_null(rows[name], 0).to_numpy() for name in ("num_warmup_steps_taken", "num_steps_taken")]
    counts: IntArray = np.add(*numbers)
    return counts


def _read_environments(results: RunTable, attempts: SelectedRows, counted: IntArray) -> dict[str, Environment]:
    """Return the first environment that has each id, in the order of the plan."""
    names = attempts.rows.select(["environment_id", "environment_document"]).take(counted)
    first: dict[str, str] = {}
    for environment_id, document in zip(*(column.to_pylist() for column in names.columns), strict=True):
        if environment_id is not None:
            first.setdefault(environment_id, document)
    texts: dict[str, str] = {}
    for content in results.contents:
        if set(first.values()) - set(texts) and ENVIRONMENTS in content.other_tables:
            rows = content.part.read(ENVIRONMENTS)
            texts |= zip(rows["environment_document"].to_pylist(), rows["document"].to_pylist(), strict=True)
    return {name: _read_environment(texts, document) for name, document in first.items()}


def _read_environment(texts: dict[str, str], document: str) -> Environment:
    """Return an environment of the data set; DamagedPartError where the data set has none of this id."""
    try:
        return read_document(Environment, texts[document].encode())
    except (KeyError, InvalidDocumentError) as error:
        raise DamagedPartError(f"the environment {document} of the tables cannot be read ({error})") from None


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
