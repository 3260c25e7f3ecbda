"""Compare two sides of what runs measured, or a run with the last one of its matrix, in one document."""

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from bench.errors import TransientError, UserError
from bench.store import Store
from collector.results.collection import Collection
from collector.results.frames import CELL_COLUMNS, WITHOUT_RECORD, list_rows
from collector.results.hosts import describe_environment
from collector.results.load import join_results, load_run, unify_centers
from collector.results.summary import CENTER_RATES, SOUND_VERDICTS
from collector.units import NOT_THERE, count_things
from collector.versus.question import (
    METRICS,
    CompareDocument,
    EnvironmentDifference,
    Metric,
    MetricDescription,
    Question,
    Selection,
    Side,
    UnpairedCell,
    check_not_empty,
    describe_value,
    infer_fields,
    select,
    select_runs,
)
from collector.versus.sides import (
    CellPair,
    Pairing,
    PoolKey,
    RelatedRuns,
    Rows,
    RunDifference,
    describe_other_values,
    estimate_noise,
    identify_kind,
    label_cells,
    label_pairs,
    list_differences,
    list_run_estimates,
    load_related_runs,
    make_side,
    pair_cells,
    read_other_plans,
)
from collector.versus.verdicts import Found, compare_pairs, compare_pairs_by_range
from collector.versus.words import conclude

COLUMNS = (
    *("run_id", "cell_id", "repeat", "is_first_stage", "status", "started_at", *CELL_COLUMNS, "verdict"),
    *("environment_id", "hardware_id"),
    *("cpu_model", "num_threads", "gpu_name", "driver_version", "python_version", "framework_version"),
    *("instance_type", "region", "zone", "is_spot", "image_id", "kubelet_version"),
    *("hostname", "gpu_uuid", "boot_id", "booted_at", "lasting_ids"),
    *("center_step_seconds", "mean_step_seconds", "summarized_by", *CENTER_RATES),
    *("pipelined_step_seconds", "peak_rss_bytes", "cold_start_seconds", "warm_start_seconds"),
    *("peak_memory_allocated_bytes", "cpu_energy_per_sample_joules", "gpu_energy_per_sample_joules"),
    "gpu_power_limit_watts",
)
"""What is read of the results."""


def compare_sides(question: Question, collections: Sequence[Collection], related: RelatedRuns) -> CompareDocument:
    """Return the comparison of two sides of `collections`; `related`: further runs, to find identical ones among.

    Raises UserError if a side has no repeat, shares one with the other, or has no cell that the other has too.
    """
    rows, history = _list_rows(question, collections, related.collections)
    rows_a, rows_b = (select(rows, side.conditions) for side in (question.a, question.b))
    for side, selected in ((question.a, rows_a), (question.b, rows_b)):
        check_not_empty(f"--{side.name.lower()}", side.conditions, rows, selected)
    labels = f"A ({question.a.label}) and B ({question.b.label})"
    if shared := {id(row) for row in rows_a} & {id(row) for row in rows_b}:
        raise UserError(f"{labels} share {count_things(len(shared), 'repeat')}; make the conditions exclude each other")
    named = question.a.cell_fields | question.b.cell_fields
    inferred = infer_fields(rows_a, rows_b, named)
    free = named | inferred.keys()
    pairing = pair_cells(rows_a, rows_b, free)
    if not pairing.pairs:
        raise UserError(f"{labels} have {_explain_no_pair(pairing, named)}")
    metric = _choose_metric(question, pairing)
    pairs = [
        CellPair(
            label=label,
            a=make_side("A", a, metric, include_invalid=question.include_invalid),
            b=make_side("B", b, metric, include_invalid=question.include_invalid),
        )
        for label, (a, b) in zip(label_pairs(pairing, free), pairing.pairs, strict=True)
    ]
    cells, together, noise = _evaluate(question, metric, pairs, history)
    ran_a, ran_b = (
        [row for cell in side for row in cell if row["status"] == "ok"] for side in zip(*pairing.pairs, strict=True)
    )
    differences = list_environment_differences(ran_a, ran_b, collections) if ran_a and ran_b else []
    warnings = [*pairing.ambiguities, *_list_warnings(collections, rows_a, rows_b), *related.list_warnings()]
    document = CompareDocument(
        metric=MetricDescription.model_validate(metric, from_attributes=True),
        a=_describe_side(question.a, rows_a),
        b=_describe_side(question.b, rows_b),
        inferred=inferred,
        is_between_machines=any(difference.is_hardware for difference in differences),
        environments_known=bool(ran_a and ran_b),
        differences=tuple(differences),
        noise=tuple(noise),
        is_within_runs=all(pair.is_same_run for pair in pairs),
        cells=tuple(cells),
        together=tuple(together),
        only_in_a=_describe_unpaired(pairing.only_in_a),
        only_in_b=_describe_unpaired(pairing.only_in_b),
        warnings=tuple(warnings),
        counts=dict(Counter(cell.verdict for cell in cells)),
        exit_code=0,
        conclusion="",
    )
    exit_code, conclusion = conclude(document, fails_undecided=question.fails_undecided)
    return document.model_copy(update={"exit_code": exit_code, "conclusion": conclusion})


MAX_CELLS = 2000
"""Of a run with more, nothing is compared unasked."""


def compare_with_last(store: Store, collection: Collection) -> CompareDocument | None:
    """Return what changed since the last run of the matrix that was begun before this one.

    None where the store has no such run, or none that can be compared. TransientError if the store does not answer.
    """
    run = collection.run
    if len(run.cells) > MAX_CELLS:
        return None
    plans = read_other_plans(store, {run.run_id})
    former = [one for one in plans[0] if one.matrix == run.matrix and one.created_at < run.created_at]
    if not former:
        return None
    last = max(former, key=lambda one: one.created_at).run_id
    try:
        collections = load_run(store, last), collection
        a, b = select_runs(last, run.run_id)
        return compare_sides(Question(a=a, b=b), collections, load_related_runs(store, collections, plans))
    except TransientError:
        raise
    except UserError:  # that run cannot be read, or has no cell in common
        return None


def _list_rows(question: Question, compared: Sequence[Collection], related: Sequence[Collection]) -> tuple[Rows, Rows]:
    """Return the repeats that the question is about, of the compared runs and of all, their machines known.

    Several runs are summarised alike. One run alone stays as its report has it, whatever else is in the store: all
    runs are summarised alike for the noise only.
    """
    frame = join_results([*compared, *related], COLUMNS)
    number = sum(len(one.results) for one in compared)
    history = list_rows(unify_centers(frame))
    rows = list_rows(frame[:number]) if len(compared) == 1 else history[:number]
    selected = select(rows, question.where)
    check_not_empty("--where", question.where, rows, selected)
    return selected, select(history, question.where)


def _explain_no_pair(pairing: Pairing, named: set[str]) -> str:
    if pairing.ambiguities:
        return f"no pair of cells: {'; '.join(pairing.ambiguities)}"
    hint = describe_other_values(pairing, named)
    advice = "; a field may differ if both sides name it, as in --a mode=eager --b mode=graph" if named else ""
    return f"no cell in common{f': {hint}{advice}' if hint else ''}"


def _choose_metric(question: Question, pairing: Pairing) -> Metric:
    """Return the metric of these pairs, whose title says whose it is where there are tenants."""
    has_equal_batches = all(a[0]["batch_size"] == b[0]["batch_size"] for a, b in pairing.pairs)
    metric = question.metric or METRICS["step-time" if has_equal_batches else "time-per-sample"]
    has_tenants = any(row["tenants"] > 1 for a, b in pairing.pairs for row in (a[0], b[0]))
    return metric.name_tenants() if has_tenants else metric


def _evaluate(question: Question, metric: Metric, pairs: Sequence[CellPair], history: Rows) -> Found:
    """Return the verdicts on the pairs, held against what identical runs of the history differ by.

    Those of B's runs that are identical to runs of A say nothing of it: whether they are is the question.
    """
    a, b = (
        {(row["run_id"], identify_kind(row)) for pair in pairs for row in getattr(pair, side).counted} for side in "ab"
    )
    kinds_of_a = {kind for _, kind in a}
    dropped = {(run_id, kind) for run_id, kind in b - a if kind in kinds_of_a}
    if not metric.has_intervals:
        kept = [
            (kind, row)
            for row in history
            if row["status"] == "ok" and row["verdict"] in SOUND_VERDICTS
            if (row["run_id"], kind := identify_kind(row)) not in dropped
        ]
        return compare_pairs_by_range(pairs, kept, metric, question.floor)
    estimates = list_run_estimates(history, metric, include_invalid=question.include_invalid)
    by_pool: defaultdict[PoolKey, list[RunDifference]] = defaultdict(list)
    for difference in list_differences(one for one in estimates if (one.run_id, one.kind) not in dropped):
        by_pool[difference.pool].append(difference)
    measured = {pool: estimate_noise(found) for pool, found in by_pool.items()}
    return compare_pairs(pairs, measured, metric, question.floor)


def _describe_side(side: Selection, rows: Rows) -> Side:
    run_ids = tuple(sorted({row["run_id"] for row in rows}))
    return Side(
        label=side.label, run_ids=run_ids, num_planned=len(rows), num_ok=sum(row["status"] == "ok" for row in rows)
    )


def _describe_unpaired(cells: Sequence[Rows]) -> tuple[UnpairedCell, ...]:
    found = zip(label_cells(cells), cells, strict=True)
    return tuple(UnpairedCell(label=label, cell_id=rows[0]["cell_id"]) for label, rows in found)


def _list_warnings(collections: Sequence[Collection], rows_a: Rows, rows_b: Rows) -> Iterable[str]:
    compared = {row["run_id"] for row in (*rows_a, *rows_b)}
    for collection in collections:
        run_id, results = collection.run.run_id, collection.results
        if run_id not in compared:
            continue
        yield from (f"run {run_id}: {notice}" for notice in collection.notices)
        missing, unreadable = (int((results["status"] == status).sum()) for status in WITHOUT_RECORD)
        planned = count_things(len(results), "planned repeat")
        if missing:
            yield (f"run {run_id} is not finished: {missing} of {planned} have no result; compare again when it is")
        if unreadable:
            yield (
                f"run {run_id}: the store does not give the results of {unreadable} of {planned}: what they say is not "
                "known"
            )
        if collection.skipped:
            yield f"run {run_id}: {count_things(len(collection.skipped), 'document')} in the store did not count"


FROM_ROWS: Mapping[str, str] = {
    "power limit of the GPUs, W": "gpu_power_limit_watts",
    "machine type": "instance_type",
    "image": "image",
    "spot": "is_spot",
    "kubelet": "kubelet_version",
    "region": "region",
    "zone": "zone",
    "host": "host",
    "machine (host and GPUs)": "machine",
}
"""What each repeat says beside its environment, by the column that it is in."""
HARDWARE = (
    *("GPU name", "cpu model", "num visible cores", "cpu quota cores", "num threads", "machine type", "machine vendor"),
    *("machine product", "GPU mig profile", "GPU ecc enabled", "GPU pcie width"),
)
"""Facts that make a comparison one of machines. The power limit is none: it is a setting, and a lowered one makes a
measurement `throttled`."""
PASSING = ("GPU pcie generation", "machine visible cores")
"""What may be another one at each look at the same machine."""
OF_FRAMEWORKS = ("package ", "setting ")


def list_environment_differences(
    rows_a: Rows, rows_b: Rows, collections: Sequence[Collection]
) -> list[EnvironmentDifference]:
    """Return what differs between the repeats of two sides, hardware first, then what no framework has of its own.

    A fact differs where the sides have not the same values of it, be it one or several. A value that one repeat of
    several lacks is unknown and is no difference; one that a whole side lacks is named as not recorded. Settings and
    packages that only one of two frameworks has are left out: they cannot be alike.
    """
    facts = [_list_facts(rows, collections) for rows in (rows_a, rows_b)]
    are_others = {row["framework"] for row in rows_a}.isdisjoint(row["framework"] for row in rows_b)

    def rank(fact: str) -> tuple[int, str]:
        later = 2 if fact in FROM_ROWS else fact.startswith(OF_FRAMEWORKS)
        return (HARDWARE.index(fact) if fact in HARDWARE else len(HARDWARE) + later), fact

    return [
        EnvironmentDifference(fact=name, a=a, b=b, is_hardware=name in HARDWARE)
        for name in sorted(facts[0].keys() | facts[1].keys(), key=rank)
        for a, b in [[tuple(sorted(found.get(name, ()))) for found in facts]]
        if a != b and (a and b or not (are_others and name.startswith(OF_FRAMEWORKS)))
    ]


def _list_facts(rows: Rows, collections: Sequence[Collection]) -> dict[str, set[str]]:
    """Return each fact with the values that the repeats have of it; a fact that none of them says is left out."""
    facts: defaultdict[str, set[Any]] = defaultdict(set)
    for fact, column in FROM_ROWS.items():
        facts[fact].update(row[column] for row in rows)
    for collection in collections:
        own = {row["environment_id"] for row in rows if row["run_id"] == collection.run.run_id}
        for environment in (collection.environments[name] for name in own & collection.environments.keys()):
            for fact, value in describe_environment(environment).items():
                facts[fact].add(None if value == NOT_THERE else value)
        if own:
            facts["version of the tool"].add(collection.run.tool_version)
            facts["revision of the tool that planned"].add(collection.run.git_revision)
    known = {fact: {describe_value(value) for value in values - {None}} for fact, values in facts.items()}
    return {fact: values for fact, values in known.items() if values and fact not in PASSING}
