"""Compare two sides of what runs measured: pair the cells, find the noise, and put all into one document."""

from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from bench.errors import UserError
from collector.facts import count_things
from collector.labels import add_labels, label_shared
from collector.results.cell_repeats import SOUND_VERDICTS
from collector.results.collection import Collection
from collector.results.frames import CELL_COLUMNS, make_frame
from collector.results.hosts import name_machines_of_rows
from collector.versus.conclusion import conclude
from collector.versus.document import (
    AmbiguousCells,
    CellComparison,
    CompareDocument,
    EnvironmentDifference,
    GroupComparison,
    MetricDescription,
    NoiseDescription,
    Side,
    UnpairedCell,
)
from collector.versus.environments import list_differences_of_sides
from collector.versus.evaluation import CellPair, NoisePools, compare_pairs, compare_pairs_by_range
from collector.versus.identical_runs import drop_compared, identify_kind, list_run_estimates
from collector.versus.measured import list_measured, unify_centers
from collector.versus.metrics import Metric
from collector.versus.noise import Noise, PoolKey, RunDifference, estimate_noise, list_differences
from collector.versus.pairing import Ambiguity, Pairing, describe_nearest, pair_cells
from collector.versus.ranges import find_identical_ranges
from collector.versus.selections import Condition, Selection, check_not_empty
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
    floor: float | None = None
    """The relative difference that the user takes for none."""
    include_invalid: bool = False
    fails_undecided: bool = False
    """Whether undecided cells give exit code 2."""


def compare_sides(
    question: Question, collections: Sequence[Collection], related: Sequence[Collection]
) -> CompareDocument:
    """Return the comparison of two sides of `collections`; `related`: further runs, to find identical ones among.

    Raises UserError if a side has no repeat, shares one with the other, or has no cell that the other has too.
    """
    rows, others = _list_rows(question, collections, related)
    rows_a, rows_b = (_select_side(side, rows) for side in (question.a, question.b))
    _check_disjoint(question, rows_a, rows_b)
    free = question.a.cell_fields | question.b.cell_fields
    pairing = pair_cells(rows_a, rows_b, free)
    if not pairing.pairs:
        raise UserError(_explain_no_pair(question, pairing))
    pairs = _make_pairs(question, pairing)
    cells, together, noise = _evaluate(question, pairs, [*rows, *others])
    ran_a, ran_b = ([row for pair in pairs for row in side(pair).list_ok()] for side in (_get_a, _get_b))
    differences = list_differences_of_sides(ran_a, ran_b, collections) if ran_a and ran_b else []
    exit_code, conclusion = conclude(cells, together, question.metric, fails_undecided=question.fails_undecided)
    return CompareDocument(
        metric=_describe_metric(question.metric),
        a=_describe_side(question.a, rows_a),
        b=_describe_side(question.b, rows_b),
        is_between_machines=any(difference.is_hardware for difference in differences),
        environments_known=bool(ran_a and ran_b),
        differences=tuple(
            EnvironmentDifference(fact=one.fact, a=one.values_a, b=one.values_b, is_hardware=one.is_hardware)
            for one in differences
        ),
        noise=tuple(noise),
        cells=tuple(cells),
        together=tuple(together),
        only_in_a=tuple(_describe_unpaired(pairing.only_in_a, pairing.only_in_b, "B", free)),
        only_in_b=tuple(_describe_unpaired(pairing.only_in_b, pairing.only_in_a, "A", free)),
        ambiguous=tuple(_describe_ambiguous(pairing.ambiguities, rows)),
        warnings=tuple(_list_warnings(collections, rows_a, rows_b)),
        counts=dict(Counter(cell.verdict for cell in cells)),
        exit_code=exit_code,
        conclusion=conclusion,
    )


def _list_rows(question: Question, *runs: Sequence[Collection]) -> list[Rows]:
    """Return the repeats of each of `runs` that the question is about, all summarised alike, their machines known."""
    measured = [list_measured(collections) for collections in runs]
    name_machines_of_rows(row for rows in measured for row in rows)
    unify_centers(row for rows in measured for row in rows)
    return [_select(rows, question.where) for rows in measured]


def _evaluate(
    question: Question, pairs: Sequence[CellPair], history: Rows
) -> tuple[list[CellComparison], list[GroupComparison], list[NoiseDescription]]:
    compared = [
        {(row["run_id"], identify_kind(row)) for pair in pairs for row in side(pair).counted}
        for side in (_get_a, _get_b)
    ]
    if not question.metric.has_intervals:
        kept = _drop_compared_rows(history, compared[0], compared[1])
        return compare_pairs_by_range(pairs, find_identical_ranges(kept, question.metric), question.floor), [], []
    estimates = list_run_estimates(history, question.metric, include_invalid=question.include_invalid)
    by_pool: defaultdict[PoolKey, list[RunDifference]] = defaultdict(list)
    for difference in list_differences(drop_compared(estimates, *compared)):
        by_pool[difference.pool].append(difference)
    measured: dict[PoolKey, Noise] = {pool: estimate_noise(found) for pool, found in by_pool.items()}
    return compare_pairs(pairs, NoisePools(measured, question.metric, question.floor), question.floor)


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
    nearest = (describe_nearest(cell, pairing.only_in_b, "B", free) for cell in pairing.only_in_a)
    hint = next(filter(None, nearest), "")
    if not hint:
        return f"{sides} have no cell in common"
    advice = "; a field may differ if both sides name it, as in --a mode=eager --b mode=graph" if free else ""
    return f"{sides} have no cell in common; of the most similar ones, {hint}{advice}"


def _make_pairs(question: Question, pairing: Pairing) -> list[CellPair]:
    labels = _label_pairs(pairing, question.a.cell_fields | question.b.cell_fields)
    return [
        CellPair(
            label=label,
            a=make_side("A", a, question.metric, include_invalid=question.include_invalid),
            b=make_side("B", b, question.metric, include_invalid=question.include_invalid),
        )
        for label, (a, b) in zip(labels, pairing.pairs, strict=True)
    ]


def _label_pairs(pairing: Pairing, free: set[str]) -> list[str]:
    """Return the names of the pairs: what both cells share, or both names where too little is shared for one."""
    if free & {"model", "phase", "batch_size", "input_size"}:
        names = zip(*(_label_cells([pair[side] for pair in pairing.pairs]) for side in (0, 1)), strict=True)
        return [f"{a} / {b}" for a, b in names]
    shared = {name: dtype for name, dtype in CELL_COLUMNS.items() if name not in free}
    return label_shared(make_frame([a[0] for a, _ in pairing.pairs], shared))


def _label_cells(cells: Sequence[Rows]) -> list[str]:
    if not cells:
        return []
    return [str(label) for label in add_labels(make_frame([rows[0] for rows in cells], CELL_COLUMNS))["label"]]


def _describe_metric(metric: Metric) -> MetricDescription:
    names = ("name", "title", "base_unit", "reading", "worse", "better")
    return MetricDescription(**{name: getattr(metric, name) for name in names})


def _describe_side(side: Selection, rows: Rows) -> Side:
    statuses = Counter(row["status"] for row in rows)
    return Side(
        label=side.label,
        conditions=tuple(condition.text for condition in side.conditions),
        run_ids=tuple(sorted({row["run_id"] for row in rows})),
        num_planned=len(rows),
        num_ok=statuses["ok"],
        num_missing=statuses["missing"],
    )


def _describe_unpaired(
    cells: Sequence[Rows], others: Sequence[Rows], other: str, free: set[str]
) -> Iterable[UnpairedCell]:
    for label, rows in zip(_label_cells(cells), cells, strict=True):
        nearest = describe_nearest(rows, others, other, free)
        yield UnpairedCell(label=label, cell_id=rows[0]["cell_id"], nearest=nearest)


def _describe_ambiguous(ambiguities: Iterable[Ambiguity], rows: Rows) -> Iterable[AmbiguousCells]:
    by_cell = {row["cell_id"]: row for row in rows}
    for one in ambiguities:
        label = _label_cells([[by_cell[one.cell_ids[0]]]])[0]
        yield AmbiguousCells(
            side="A" if one.side == "A" else "B", label=label, cell_ids=one.cell_ids, differ_in=one.fields
        )


def _list_warnings(collections: Sequence[Collection], rows_a: Rows, rows_b: Rows) -> Iterable[str]:
    compared = {row["run_id"]: True for row in [*rows_a, *rows_b]}
    for collection in collections:
        run_id, results = collection.run.run_id, collection.results
        if run_id not in compared:
            continue
        yield from (f"run {run_id}: {notice}" for notice in collection.notices)
        missing = int((results["status"] == "missing").sum())
        if missing:
            yield (
                f"run {run_id} is not finished: {missing} of {count_things(len(results), 'planned repeat')} "
                "have no result; compare again when it is"
            )
        if collection.skipped:
            yield f"run {run_id}: {count_things(len(collection.skipped), 'document')} in the store did not count"


def _get_a(pair: CellPair) -> Any:
    return pair.a


def _get_b(pair: CellPair) -> Any:
    return pair.b
