"""Compare two sides of what runs measured: pair the cells, find the noise, and put all into one document."""

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from bench.errors import UserError
from collector.results.cell_repeats import SOUND_VERDICTS
from collector.results.collection import Collection
from collector.results.frames import MISSING, UNREADABLE, WITHOUT_RECORD
from collector.results.hosts import name_machines_of_rows
from collector.units import count_things
from collector.versus.document import (
    AmbiguousCells,
    CompareDocument,
    InferredField,
    MetricDescription,
    Side,
    UnpairedCell,
)
from collector.versus.environments import list_differences
from collector.versus.noise import (
    Noise,
    RelatedRuns,
    RunDifference,
    estimate_noise,
    identify_kind,
    list_run_estimates,
)
from collector.versus.noise import list_differences as list_run_differences
from collector.versus.selections import METRICS, Condition, Metric, Selection, check_not_empty, infer_fields, select
from collector.versus.sides import (
    CellPair,
    Pairing,
    PoolKey,
    are_within_runs,
    describe_nearest,
    label_cells,
    label_pairs,
    list_measured,
    make_side,
    pair_cells,
    unify_centers,
)
from collector.versus.verdicts import Evaluation, compare_pairs, compare_pairs_by_range
from collector.versus.words import conclude

Row = dict[str, Any]
Rows = Sequence[Row]


@dataclass(frozen=True, kw_only=True)
class Question:
    """What is asked of the runs."""

    a: Selection
    b: Selection
    where: tuple[Condition, ...] = ()
    """What both sides are restricted to."""
    metric: Metric | None = None
    """None: the step time, and where the batches of the sides differ the time per sample."""
    floor: float | None = None
    """The relative difference that the user takes for none."""
    include_invalid: bool = False
    fails_undecided: bool = False
    """Whether undecided cells give exit code 2."""


def compare_sides(question: Question, collections: Sequence[Collection], related: RelatedRuns) -> CompareDocument:
    """Return the comparison of two sides of `collections`; `related`: further runs, to find identical ones among.

    Raises UserError if a side has no repeat, shares one with the other, or has no cell that the other has too.
    """
    rows, history = _list_rows(question, collections, related.collections)
    rows_a, rows_b = (select(rows, side.conditions) for side in (question.a, question.b))
    for side, selected in ((question.a, rows_a), (question.b, rows_b)):
        check_not_empty(f"--{side.name.lower()}", side.conditions, rows, selected)
    _check_disjoint(question, rows_a, rows_b)
    named = question.a.cell_fields | question.b.cell_fields
    inferred = infer_fields(rows_a, rows_b, named)
    free = named | inferred.keys()
    pairing = pair_cells(rows_a, rows_b, free)
    if not pairing.pairs:
        raise UserError(_explain_no_pair(question, pairing))
    metric = _choose_metric(question, pairing)
    pairs = [
        CellPair(
            label=label,
            a=make_side("A", a, metric, include_invalid=question.include_invalid),
            b=make_side("B", b, metric, include_invalid=question.include_invalid),
        )
        for label, (a, b) in zip(label_pairs(pairing, free), pairing.pairs, strict=True)
    ]
    found = _evaluate(question, metric, pairs, history)
    ran_a, ran_b = (
        [row for cell in side for row in cell if row["status"] == "ok"] for side in zip(*pairing.pairs, strict=True)
    )
    differences = list_differences(ran_a, ran_b, collections) if ran_a and ran_b else []
    is_within_runs = are_within_runs(pairs)
    exit_code, conclusion = conclude(
        found.cells, found.together, metric, is_within_runs=is_within_runs, fails_undecided=question.fails_undecided
    )
    names = ("name", "title", "base_unit", "reading", "worse", "better")
    return CompareDocument(
        metric=MetricDescription(**{name: getattr(metric, name) for name in names}),
        a=_describe_side(question.a, rows_a),
        b=_describe_side(question.b, rows_b),
        inferred=tuple(InferredField(field=name, a=a, b=b) for name, (a, b) in inferred.items()),
        is_between_machines=any(difference.is_hardware for difference in differences),
        environments_known=bool(ran_a and ran_b),
        differences=tuple(differences),
        noise=tuple(found.noise),
        is_within_runs=is_within_runs,
        families=tuple(found.families),
        cells=tuple(found.cells),
        together=tuple(found.together),
        only_in_a=tuple(_describe_unpaired(pairing.only_in_a, pairing.only_in_b, "B", free)),
        only_in_b=tuple(_describe_unpaired(pairing.only_in_b, pairing.only_in_a, "A", free)),
        ambiguous=tuple(_describe_ambiguous(pairing)),
        warnings=(*_list_warnings(collections, rows_a, rows_b), *related.list_warnings()),
        counts=dict(Counter(cell.verdict for cell in found.cells)),
        exit_code=exit_code,
        conclusion=conclusion,
    )


def _list_rows(question: Question, compared: Sequence[Collection], related: Sequence[Collection]) -> tuple[Rows, Rows]:
    """Return the repeats that the question is about, of the compared runs and of all, their machines known.

    Several runs are summarised alike. One run alone stays as its report has it, whatever else is in the store: all
    runs are summarised alike for the noise only.
    """
    rows, others = list_measured(compared), list_measured(related)
    name_machines_of_rows([*rows, *others])
    history = [*(map(dict, rows) if len(compared) == 1 else rows), *others]
    unify_centers(history)
    selected = select(rows, question.where)
    check_not_empty("--where", question.where, rows, selected)
    return selected, select(history, question.where)


def _check_disjoint(question: Question, rows_a: Rows, rows_b: Rows) -> None:
    shared = {id(row) for row in rows_a} & {id(row) for row in rows_b}
    if shared:
        raise UserError(
            f"A ({question.a.label}) and B ({question.b.label}) share {count_things(len(shared), 'repeat')}; "
            "make the conditions exclude each other"
        )


def _explain_no_pair(question: Question, pairing: Pairing) -> str:
    sides = f"A ({question.a.label}) and B ({question.b.label})"
    if pairing.ambiguities:
        one = pairing.ambiguities[0]
        differ = ", ".join(f"{name} ({', '.join(values)})" for name, values in one.fields.items())
        return (
            f"{sides} have no unique pair of cells: {count_things(len(one.cells), 'cell')} of {one.side} fit the "
            f"same cell of the other side and differ in {differ}; narrow it with --{one.side.lower()} KEY=VALUE"
        )
    free = question.a.cell_fields | question.b.cell_fields
    hint = next(filter(None, describe_nearest(pairing.only_in_a, pairing.only_in_b, "B", free)), "")
    if not hint:
        return f"{sides} have no cell in common"
    advice = "; a field may differ if both sides name it, as in --a mode=eager --b mode=graph" if free else ""
    return f"{sides} have no cell in common; of the most similar ones, {hint}{advice}"


def _choose_metric(question: Question, pairing: Pairing) -> Metric:
    """Return the metric of these pairs, whose title says whose it is where there are tenants."""
    has_equal_batches = all(a[0]["batch_size"] == b[0]["batch_size"] for a, b in pairing.pairs)
    metric = question.metric or METRICS["step-time" if has_equal_batches else "time-per-sample"]
    has_tenants = any(row["tenants"] > 1 for a, b in pairing.pairs for row in (a[0], b[0]))
    return metric.name_tenants() if has_tenants else metric


def _evaluate(question: Question, metric: Metric, pairs: Sequence[CellPair], history: Rows) -> Evaluation:
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
        return Evaluation(cells=compare_pairs_by_range(pairs, kept, metric, question.floor))
    estimates = list_run_estimates(history, metric, include_invalid=question.include_invalid)
    by_pool: defaultdict[PoolKey, list[RunDifference]] = defaultdict(list)
    for difference in list_run_differences(one for one in estimates if (one.run_id, one.kind) not in dropped):
        by_pool[difference.pool].append(difference)
    measured: Mapping[PoolKey, Noise] = {pool: estimate_noise(found) for pool, found in by_pool.items()}
    return compare_pairs(pairs, measured, metric, question.floor)


def _describe_side(side: Selection, rows: Rows) -> Side:
    statuses = Counter(row["status"] for row in rows)
    return Side(
        label=side.label,
        conditions=tuple(condition.text for condition in side.conditions),
        run_ids=tuple(sorted({row["run_id"] for row in rows})),
        num_planned=len(rows),
        num_ok=statuses["ok"],
        num_missing=statuses[MISSING],
        num_unreadable=statuses[UNREADABLE],
    )


def _describe_unpaired(
    cells: Sequence[Rows], others: Sequence[Rows], other: str, free: set[str]
) -> Iterator[UnpairedCell]:
    described = describe_nearest(cells, others, other, free)
    for label, rows, nearest in zip(label_cells(cells), cells, described, strict=True):
        yield UnpairedCell(label=label, cell_id=rows[0]["cell_id"], nearest=nearest)


def _describe_ambiguous(pairing: Pairing) -> Iterator[AmbiguousCells]:
    for one in pairing.ambiguities:
        yield AmbiguousCells(
            side="A" if one.side == "A" else "B",
            label=label_cells([one.cells])[0],
            cell_ids=tuple(cell["cell_id"] for cell in one.cells),
            differ_in=one.fields,
        )


def _list_warnings(collections: Sequence[Collection], rows_a: Rows, rows_b: Rows) -> Iterable[str]:
    compared = {row["run_id"] for row in (*rows_a, *rows_b)}
    for collection in collections:
        run_id, results = collection.run.run_id, collection.results
        if run_id not in compared:
            continue
        yield from (f"run {run_id}: {notice}" for notice in (*collection.notices, *collection.doubts))
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
