"""Compare two sides of what runs measured: pair the cells, find the noise, and put all into one document."""

from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any

from bench.errors import UserError
from collector.facts import count_things
from collector.results.cell_repeats import SOUND_VERDICTS
from collector.results.collection import Collection
from collector.results.hosts import name_machines_of_rows
from collector.results.statuses import WITHOUT_RECORD
from collector.versus.cell_pairs import CellPair, are_within_runs
from collector.versus.conclusion import conclude
from collector.versus.descriptions import (
    describe_difference,
    describe_metric,
    describe_side,
    describe_unmatched,
)
from collector.versus.document import CellComparison, CompareDocument, ExitCode, GroupComparison, ReportTable
from collector.versus.environments import Difference, list_differences_of_sides
from collector.versus.evaluation import Evaluation, NoisePools, compare_pairs, compare_pairs_by_range
from collector.versus.identical_runs import RelatedRuns, drop_compared, identify_kind, list_run_estimates
from collector.versus.inferred_fields import infer_fields
from collector.versus.measured import list_measured, unify_centers
from collector.versus.metrics import METRICS, Metric
from collector.versus.noise import Noise, PoolKey, RunDifference, estimate_noise, list_differences
from collector.versus.pair_labels import label_pairs
from collector.versus.pairing import Pairing, describe_nearest, pair_cells
from collector.versus.ranges import find_identical_ranges
from collector.versus.report_tables import find_report_tables
from collector.versus.selections import Condition, Selection, check_not_empty, check_restriction
from collector.versus.side_names import name_sides
from collector.versus.sides import make_side

Row = dict[str, Any]
Rows = Sequence[Row]


@dataclass(frozen=True, kw_only=True)
class Question:
    """What is asked of the runs."""

    a: Selection
    b: Selection
    where: tuple[Condition, ...] = ()
    """What both sides are restricted to."""
    metric: Metric
    is_metric_named: bool = True
    """Whether somebody asked for this metric; else of equal batches the step time is compared."""
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
    rows_a, rows_b = (_select_side(side, rows) for side in (question.a, question.b))
    _check_disjoint(question, rows_a, rows_b)
    inferred = infer_fields(rows_a, rows_b, question.a.cell_fields | question.b.cell_fields)
    free = question.a.cell_fields | question.b.cell_fields | {one.field for one in inferred}
    pairing = pair_cells(rows_a, rows_b, free)
    if not pairing.pairs:
        raise UserError(_explain_no_pair(question, pairing))
    question = _settle_metric(question, pairing)
    pairs = _make_pairs(question, pairing, free)
    found = _evaluate(question, pairs, history)
    cells, is_within_runs = _name_cells(found.cells, pairs), are_within_runs(pairs)
    differences = _list_differences(pairs, collections)
    exit_code, conclusion = _conclude(question, cells, found.together, is_within_runs=is_within_runs)
    return CompareDocument(
        metric=describe_metric(question.metric),
        a=describe_side(question.a, rows_a),
        b=describe_side(question.b, rows_b),
        inferred=inferred,
        is_between_machines=any(difference.is_hardware for difference in differences or ()),
        environments_known=differences is not None,
        differences=tuple(map(describe_difference, differences or ())),
        noise=tuple(found.noise),
        is_within_runs=is_within_runs,
        families=tuple(found.families),
        report_tables=tuple(_find_report_tables(question, pairs, collections)),
        cells=tuple(cells),
        together=tuple(found.together),
        **describe_unmatched(pairing, free, rows),
        warnings=(*_list_warnings(collections, rows_a, rows_b), *related.list_warnings()),
        counts=dict(Counter(cell.verdict for cell in cells)),
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
    selected = _select(rows, question.where)
    check_restriction(question.where, rows, selected)
    return selected, _select(history, question.where)


def _find_report_tables(
    question: Question, pairs: Sequence[CellPair], collections: Sequence[Collection]
) -> list[ReportTable]:
    """Return the tables with these pairs in the report on the one run that they are of."""
    runs = {run for pair in pairs for run in (*pair.a.run_ids, *pair.b.run_ids)}
    if question.metric.name not in ("step-time", "time-per-sample") or len(runs) != 1:
        return []
    collection = next(one for one in collections if {one.run.run_id} == runs)
    return find_report_tables(pairs, collection, include_invalid=question.include_invalid)


def _evaluate(question: Question, pairs: Sequence[CellPair], history: Rows) -> Evaluation:
    compared = [
        {(row["run_id"], identify_kind(row)) for pair in pairs for row in side(pair).counted}
        for side in (_get_a, _get_b)
    ]
    if not question.metric.has_intervals:
        kept = _drop_compared_rows(history, compared[0], compared[1])
        cells = compare_pairs_by_range(pairs, find_identical_ranges(kept, question.metric), question.floor)
        return Evaluation(cells=cells, together=[], noise=[], families=[])
    estimates = list_run_estimates(history, question.metric, include_invalid=question.include_invalid)
    by_pool: defaultdict[PoolKey, list[RunDifference]] = defaultdict(list)
    for difference in list_differences(drop_compared(estimates, *compared)):
        by_pool[difference.pool].append(difference)
    measured: dict[PoolKey, Noise] = {pool: estimate_noise(found) for pool, found in by_pool.items()}
    pools = NoisePools(measured, question.metric, question.floor)
    return compare_pairs(pairs, pools, question.metric, question.floor)


def _drop_compared_rows(history: Rows, a: set[Any], b: set[Any]) -> Iterable[tuple[Any, Row]]:
    kinds_of_a = {kind for _, kind in a}
    for row in history:
        if row["status"] != "ok" or row["verdict"] not in SOUND_VERDICTS:
            continue
        kind = identify_kind(row)
        if not (kind in kinds_of_a and (row["run_id"], kind) in b - a):
            yield kind, row


def _select(rows: Rows, where: Iterable[Condition]) -> list[Row]:
    return [row for row in rows if all(condition.holds(row) for condition in where)]


def _select_side(side: Selection, rows: Rows) -> list[Row]:
    selected = side.select(rows)
    check_not_empty(side, rows, selected)
    return selected


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
            f"{sides} have no unique pair of cells: {count_things(len(one.cell_ids), 'cell')} of {one.side} fit the "
            f"same cell of the other side and differ in {differ}; narrow it with --{one.side.lower()} KEY=VALUE"
        )
    free = question.a.cell_fields | question.b.cell_fields
    hint = next(filter(None, describe_nearest(pairing.only_in_a, pairing.only_in_b, "B", free)), "")
    if not hint:
        return f"{sides} have no cell in common"
    advice = "; a field may differ if both sides name it, as in --a mode=eager --b mode=graph" if free else ""
    return f"{sides} have no cell in common; of the most similar ones, {hint}{advice}"


def _settle_metric(question: Question, pairing: Pairing) -> Question:
    """Return the question about the metric of these pairs, whose title says whose it is where there are tenants.

    It is the step time where nobody named a metric and the batches of all pairs are equal.
    """
    has_equal_batches = all(a[0]["batch_size"] == b[0]["batch_size"] for a, b in pairing.pairs)
    takes_step = not question.is_metric_named and has_equal_batches
    metric = METRICS["step-time"] if takes_step else question.metric
    has_tenants = any(row["tenants"] > 1 for a, b in pairing.pairs for row in (a[0], b[0]))
    return replace(question, metric=metric.name_tenants() if has_tenants else metric)


def _make_pairs(question: Question, pairing: Pairing, free: set[str]) -> list[CellPair]:
    labels = label_pairs(pairing, free)
    return [
        CellPair(
            label=label,
            a=make_side("A", a, question.metric, include_invalid=question.include_invalid),
            b=make_side("B", b, question.metric, include_invalid=question.include_invalid),
        )
        for label, (a, b) in zip(labels, pairing.pairs, strict=True)
    ]


def _name_cells(cells: Sequence[CellComparison], pairs: Sequence[CellPair]) -> list[CellComparison]:
    """Return the cells with the names of their sides."""
    names = (name_sides(pair.a, pair.b) for pair in pairs)
    return [cell.model_copy(update={"name_a": a, "name_b": b}) for cell, (a, b) in zip(cells, names, strict=True)]


def _conclude(
    question: Question, cells: Sequence[CellComparison], together: Sequence[GroupComparison], *, is_within_runs: bool
) -> tuple[ExitCode, str]:
    undecided = question.fails_undecided
    return conclude(cells, together, question.metric, is_within_runs=is_within_runs, fails_undecided=undecided)


def _list_differences(pairs: Sequence[CellPair], collections: Sequence[Collection]) -> list[Difference] | None:
    """Return what differs between the environments of both sides; None where one has no repeat that ended ok."""
    ran_a, ran_b = ([row for pair in pairs for row in side(pair).list_ok()] for side in (_get_a, _get_b))
    return list_differences_of_sides(ran_a, ran_b, collections) if ran_a and ran_b else None


def _list_warnings(collections: Sequence[Collection], rows_a: Rows, rows_b: Rows) -> Iterable[str]:
    compared = {row["run_id"]: True for row in [*rows_a, *rows_b]}
    for collection in collections:
        run_id, results = collection.run.run_id, collection.results
        if run_id not in compared:
            continue
        yield from (f"run {run_id}: {notice}" for notice in (*collection.notices, *collection.doubts))
        missing, unreadable = (int((results["status"] == status).sum()) for status in WITHOUT_RECORD)
        if missing:
            yield (
                f"run {run_id} is not finished: {missing} of {count_things(len(results), 'planned repeat')} "
                "have no result; compare again when it is"
            )
        if unreadable:
            yield (
                f"run {run_id}: the store does not give the results of {unreadable} of "
                f"{count_things(len(results), 'planned repeat')}: what they say is not known"
            )
        if collection.skipped:
            yield f"run {run_id}: {count_things(len(collection.skipped), 'document')} in the store did not count"


def _get_a(pair: CellPair) -> Any:
    return pair.a


def _get_b(pair: CellPair) -> Any:
    return pair.b
