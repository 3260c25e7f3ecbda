"""Load a run from a store, by its tables. What cannot count is named and skipped, never fatal."""

import difflib
from collections.abc import Iterable, Sequence

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc

from bench.errors import UserError
from bench.schema import (
    EARLIEST,
    LATEST,
    Environment,
    InvalidDocumentError,
    NodeFault,
    Run,
    read_document,
    read_node_fault,
    read_run,
)
from bench.store import (
    KeyMissing,
    Store,
    UnreadableObject,
    node_fault_key,
    node_faults_prefix,
    parse_result_key,
    run_key,
)
from bench.store.documents import read_runs
from collector.results.collection import Collection, StepTimes
from collector.results.documents import PLACEMENT_KIND, RESULT_KIND
from collector.results.frames import (
    ATTEMPT_COLUMNS,
    CELL_COLUMNS,
    IDENTITY,
    MISSING,
    MISSING_REASON,
    PLACEMENT_COLUMNS,
    PLACEMENTS,
    RESULT_COLUMNS,
    STEP_SERIES,
    TABLE_COLUMNS,
    TENANT_COLUMNS,
    UNREADABLE,
    describe_cell,
    make_frame,
)
from collector.results.hosts import name_machines, relate_to_hosts
from collector.results.stored_tables import RunTable, SkippedDocument, to_frame, update_table
from collector.results.summary import CENTER_RATES, SOUND_VERDICTS

UNDISTURBED, CONTAMINATED, FAILED = range(3)
"""How an attempt ended; of the attempts at a repeat, one of the first kind that there is counts."""
NUM_NEWEST_RUNS = 5


def load_run(store: Store, run_id: str, *, writes_tables: bool = False) -> Collection:
    """Return the run with all its results, after its tables were brought up to date.

    `writes_tables`: write few new results into the store's tables too, see `update_table`. Raises UserError where the
    run is not there or cannot be read.
    """
    run = _read_run(store, run_id)
    kinds = [RESULT_KIND, *([PLACEMENT_KIND] if run.executor == "kubernetes" else [])]
    return _assemble(store, run, *(update_table(store, kind, run_id, writes=writes_tables) for kind in kinds))


def load_runs(store: Store, run_ids: Sequence[str]) -> list[Collection]:
    """Return several runs, in this order and each once, to be compared across; raises as `load_run`."""
    return [load_run(store, run_id) for run_id in dict.fromkeys(run_ids)]


ENVIRONMENT_FACTS = {name: name for name in ("kernel", "cpu_quota_cores", "image")} | {"revision": "git_revision"}
"""What `join_results` adds of the environments, by column."""


def join_results(collections: Iterable[Collection], columns: Iterable[str] = RESULT_COLUMNS) -> pd.DataFrame:
    """Return the results of several runs, one after the other; no step times are read.

    Beside `columns`, those of `Place` and the id of the environment among them: ENVIRONMENT_FACTS, and when the run was
    planned (`run_started`) and by which revision of the tool (`tool_revision`). What `environment_id` leaves out is
    that of the first repeat of the run with this id. A host has one name in all of the rows.
    """
    frames = []
    for collection in collections:
        frame = collection.results[list(columns)]
        known, run = collection.environments, collection.run
        facts = {
            column: frame["environment_id"].map({id_: getattr(one, name) for id_, one in known.items()}).astype(object)
            for column, name in ENVIRONMENT_FACTS.items()
        }
        facts["image"] = frame["image_id"].astype(object).where(frame["image_id"].notna(), facts["image"])
        frames.append(frame.assign(**facts, run_started=run.created_at, tool_revision=run.git_revision))
    return name_machines(pd.concat(frames, ignore_index=True))


def _assemble(store: Store, run: Run, results: RunTable, *on_cluster: RunTable) -> Collection:
    plan = _tabulate_plan(run)
    attempts = name_machines(to_frame(results.rows, ATTEMPT_COLUMNS))
    repeats = pd.MultiIndex.from_frame(plan[["cell_id", "repeat"]])
    attempts["place"] = repeats.get_indexer(pd.MultiIndex.from_frame(attempts[["cell_id", "repeat"]]))
    planned, left_out = attempts[attempts["place"] >= 0], attempts[attempts["place"] < 0]
    chosen = choose_attempts(planned)
    counted, products = relate_to_hosts(unify_centers(planned.loc[chosen.index]), planned)
    counted["num_attempts"] = planned["place"].value_counts().reindex(counted["place"]).to_numpy()
    tenants, steps = _select_tenants(results.rows, counted)
    placements = make_frame([], TABLE_COLUMNS[PLACEMENTS])
    for table in on_cluster:
        placements = to_frame(table.rows, TABLE_COLUMNS[PLACEMENTS])
    faults, unread_faults = _read_node_faults(store, run.run_id) if on_cluster else ([], [])
    skipped = sorted([*results.skipped, *_explain_left_out(run, left_out)], key=lambda document: document.key)
    return Collection(
        run=run,
        results=tabulate_repeats(plan, counted, placements, results.skipped),
        tenants=tenants[list(TENANT_COLUMNS)],
        steps=steps,
        environments=_read_environments(results.rows, counted),
        skipped=(*skipped, *(document for table in on_cluster for document in table.skipped), *unread_faults),
        host_products=products,
        node_faults=tuple(sorted(faults, key=lambda fault: (fault.at, fault.cell_id, fault.repeat, fault.attempt))),
        notices=tuple(dict.fromkeys(notice for table in (results, *on_cluster) for notice in table.notices)),
        num_contaminated=int((chosen["ending"] == CONTAMINATED).sum()),
    )


def _tabulate_plan(run: Run) -> pd.DataFrame:
    cells = [describe_cell(plan.cell) | {"run_id": run.run_id, "cell_id": plan.cell.cell_id} for plan in run.cells]
    frame = make_frame(cells, {"run_id": "str", "cell_id": "str", **CELL_COLUMNS})
    frame = frame.loc[frame.index.repeat([plan.repeats for plan in run.cells])]
    frame = frame.assign(repeat=frame.groupby(level=0).cumcount() + 1)
    num_first = pd.Series([plan.stopping.first if plan.stopping else 0 for plan in run.cells])
    return frame.assign(is_first_stage=frame["repeat"] <= num_first.loc[frame.index]).reset_index(drop=True)


def _explain_left_out(run: Run, attempts: pd.DataFrame) -> Iterable[SkippedDocument]:
    repeats = {plan.cell.cell_id: plan.repeats for plan in run.cells}
    for key, cell_id, repeat in zip(attempts["key"], attempts["cell_id"], attempts["repeat"], strict=True):
        reason = f"cell '{cell_id}' is not in the run's plan"
        if cell_id in repeats:
            reason = f"repeat {repeat} of a cell that was planned with {repeats[cell_id]}"
        yield SkippedDocument(key=key, reason=reason)


def choose_attempts(attempts: pd.DataFrame) -> pd.DataFrame:
    """Return which attempt at each planned repeat (`place`) counts, by its row, in the order of places, and its ending.

    The earliest attempt counts that ended ok and was not contaminated; without one, the earliest that ended ok; without
    one, the latest. How an attempt ended and what others did meanwhile decides, never how long its steps took: others
    disturbed it where any reason of its verdict is `contaminated`, as graver ones, such as `over-peak`, are judged by
    step times. When an attempt started whose machine's clock was not set is not known: it is ordered after the others,
    and is not the latest where there is another.
    """
    faults = attempts["fault_verdicts"].fillna("").str.split()
    is_disturbed = (attempts["verdict"] == "contaminated") | faults.map(lambda own: "contaminated" in own).astype(bool)
    endings = np.select([attempts["status"] != "ok", is_disturbed], [FAILED, CONTAMINATED], UNDISTURBED)
    is_unset = attempts["started_at"].isin([EARLIEST, LATEST])
    order = attempts[["place", "started_at", "attempt"]].assign(ending=endings, is_unset=is_unset)
    by = ["place", "ending", "is_unset", "started_at", "attempt"]
    earliest = order.sort_values(by).drop_duplicates("place")
    latest = order.sort_values(by, ascending=[True, True, True, False, False]).drop_duplicates("place")
    found = pd.concat([earliest[earliest["ending"] != FAILED], latest[latest["ending"] == FAILED]])
    return found.sort_values("place")


def unify_centers(counted: pd.DataFrame) -> pd.DataFrame:
    """Return the attempts that count, those of one cell summarised by one statistic.

    A measuring process knows its own steps alone, so of a cell on two levels it summarises some repeats by the mean and
    others, whose window saw one level, by the median. Compared with each other these differ by more than their speed. A
    repeat under faulty conditions, which enters no figure where there are others, changes none of these.
    """
    is_mean = (counted["summarized_by"] == "mean") & counted["verdict"].isin(SOUND_VERDICTS)
    is_changed = counted["cell_id"].isin(counted.loc[is_mean, "cell_id"]) & (counted["summarized_by"] == "median")
    is_changed &= counted["mean_step_seconds"] > 0
    if not is_changed.any():
        return counted
    changed = counted[is_changed]
    means = changed["mean_step_seconds"]
    counted = counted.copy()
    for name in CENTER_RATES:
        counted.loc[is_changed, name] = changed[name] * changed["center_step_seconds"] / means
    counted.loc[is_changed, "center_step_seconds"], counted.loc[is_changed, "summarized_by"] = means, "mean"
    return counted


def tabulate_repeats(
    plan: pd.DataFrame, counted: pd.DataFrame, placements: pd.DataFrame, skipped: Iterable[SkippedDocument]
) -> pd.DataFrame:
    """Return one row per planned repeat with the columns RESULT_COLUMNS.

    `counted`: of the table of attempts, with `place` and `num_attempts`. `placements`: the table of placements.
    """
    chosen = counted.set_index("place").reindex(plan.index)
    chosen["num_attempts"] = chosen["num_attempts"].fillna(0)
    placed = placements.set_index("key").reindex(
        chosen["key"].str.replace("/results/", "/placements/", n=1, regex=False)
    )
    sources = {**dict.fromkeys(PLACEMENT_COLUMNS, placed.set_axis(plan.index)), **dict.fromkeys(plan.columns, plan)}
    frame = pd.DataFrame(
        {name: pd.Series(sources.get(name, chosen)[name], dtype=dtype) for name, dtype in RESULT_COLUMNS.items()}
    )
    is_absent = chosen["key"].isna()
    frame.loc[is_absent, ["status", "error_message"]] = MISSING, MISSING_REASON
    for document in skipped:
        if document.is_unread and (key := parse_result_key(document.key)) is not None:
            is_its = is_absent & (frame["cell_id"] == key.cell_id) & (frame["repeat"] == key.repeat)
            frame.loc[is_its, ["status", "error_message"]] = UNREADABLE, document.reason
    return frame


def _select_tenants(rows: pa.Table, counted: pd.DataFrame) -> tuple[pd.DataFrame, StepTimes]:
    """Return the tenants of the attempts that count (columns TENANT_COLUMNS), and the steps of both.

    `rows`: the table of attempts, whose rows `counted` has by their places there.
    """
    of_attempts = rows["tenant_records"].take(pa.array(counted.index)).combine_chunks()
    records = pa.Table.from_struct_array(pc.list_flatten(of_attempts))
    owners = pc.list_parent_indices(of_attempts).to_numpy()
    known = counted[list(IDENTITY)].iloc[owners].reset_index(drop=True)
    columns = {name: dtype for name, dtype in TENANT_COLUMNS.items() if name not in IDENTITY}
    tenants = pd.concat([known, to_frame(records, columns)], axis="columns")
    series = pd.concat(
        [
            counted.assign(tenant=0, row=counted.index),
            tenants.assign(
                place=counted["place"].to_numpy()[owners], row=rows.num_rows + np.arange(len(tenants))
            ).query("tenant > 0"),
        ],
        ignore_index=True,
    )
    numbers = series[["num_warmup_steps_taken", "num_steps_taken"]].fillna(0).sum(axis=1).astype("int64")
    names = ["row", "place", "tenant", "cell_id", "repeat"]
    steps = pa.concat_tables([one.select(STEP_SERIES) for one in (rows, records)])
    return tenants, StepTimes(owners=series[names].assign(num_steps=numbers), series=steps)


def _read_node_faults(store: Store, run_id: str) -> tuple[list[NodeFault], list[SkippedDocument]]:
    found, skipped = [], []
    for key, data in store.get_listed(store.list_keys(node_faults_prefix(run_id))):
        if isinstance(data, UnreadableObject):
            skipped.append(SkippedDocument(key=key, reason=f"cannot be read: {data}", is_unread=True))
            continue
        try:
            fault = read_node_fault(data)
            if node_fault_key(fault.run_id, fault.cell_id, fault.repeat, fault.attempt) != key:
                raise InvalidDocumentError("the node fault is of another attempt than its key says")
            found.append(fault)
        except InvalidDocumentError as error:
            skipped.append(SkippedDocument(key=key, reason=str(error)))
    return found, skipped


def _read_environments(rows: pa.Table, counted: pd.DataFrame) -> dict[str, Environment]:
    known = counted[counted["environment_id"].notna()].drop_duplicates("environment_id")
    texts = rows["environment"].take(pa.array(known.index)).to_pylist()
    return {
        name: read_document(Environment, text.encode())
        for name, text in zip(known["environment_id"], texts, strict=True)
        if text  # not so in a row of a removed result that an older version made
    }


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
