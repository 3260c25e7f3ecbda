"""Describe for the document both sides of a comparison, their environments, the verdict on each pair, other cells."""

import math
from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Any

from collector.labels import add_labels
from collector.machines import describe_scope
from collector.results.frames import CELL_COLUMNS, make_frame
from collector.results.statuses import MISSING, UNREADABLE
from collector.versus.cell_pairs import CellPair
from collector.versus.document import (
    AmbiguousCells,
    CellComparison,
    CellVerdict,
    EnvironmentDifference,
    GroupComparison,
    MetricDescription,
    Side,
    UnpairedCell,
)
from collector.versus.environments import Difference
from collector.versus.metrics import Metric
from collector.versus.pairing import Ambiguity, Pairing, describe_nearest
from collector.versus.selections import Selection
from collector.versus.side_names import describe_longer_side
from collector.versus.sides import estimate_ratio_of_sides, find_hours_apart
from collector.versus.verdicts import RatioTest, Verdict, advise

Rows = Sequence[dict[str, Any]]

NOISE_UNKNOWN = (
    "by how much identical runs differ in it is not known: measure one of the sides a second time, or give --floor"
)
CONFOUNDED = (
    "the machines differ, one side has a single one, and by how much machines differ is not known: measure both sides "
    "on one machine, or each on several"
)
MAX_HOURS_APART = 6.0
"""Beyond it a pair of one run says that its repeats are apart: the load and the heat of a machine follow the hours of
the day. A choice, nothing that was measured."""


def describe_metric(metric: Metric) -> MetricDescription:
    """Return what is compared, as the document has it."""
    names = ("name", "title", "base_unit", "reading", "worse", "better")
    return MetricDescription(**{name: getattr(metric, name) for name in names})


def describe_side(side: Selection, rows: Rows) -> Side:
    """Return which repeats a side selects, and how they ended."""
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


def describe_difference(one: Difference) -> EnvironmentDifference:
    """Return a fact that the environments of both sides differ in."""
    return EnvironmentDifference(
        fact=one.fact,
        a=one.values_a,
        b=one.values_b,
        is_hardware=one.is_hardware,
        is_of_one_framework=one.is_of_one_framework,
    )


def describe_unmatched(pairing: Pairing, free: set[str], rows: Rows) -> dict[str, Any]:
    """Return the fields of the document for cells without a partner, and with several."""
    return {
        "only_in_a": tuple(_describe_unpaired(pairing.only_in_a, pairing.only_in_b, "B", free)),
        "only_in_b": tuple(_describe_unpaired(pairing.only_in_b, pairing.only_in_a, "A", free)),
        "ambiguous": tuple(_describe_ambiguous(pairing.ambiguities, rows)),
    }


def label_cells(cells: Sequence[Rows]) -> list[str]:
    """Return a label for each cell, given by rows of it."""
    if not cells:
        return []
    return [str(label) for label in add_labels(make_frame([rows[0] for rows in cells], CELL_COLUMNS))["label"]]


def _describe_unpaired(
    cells: Sequence[Rows], others: Sequence[Rows], other: str, free: set[str]
) -> Iterable[UnpairedCell]:
    described = describe_nearest(cells, others, other, free)
    for label, rows, nearest in zip(label_cells(cells), cells, described, strict=True):
        yield UnpairedCell(label=label, cell_id=rows[0]["cell_id"], nearest=nearest)


def _describe_ambiguous(ambiguities: Iterable[Ambiguity], rows: Rows) -> Iterable[AmbiguousCells]:
    by_cell = {row["cell_id"]: row for row in rows}
    for one in ambiguities:
        label = label_cells([[by_cell[one.cell_ids[0]]]])[0]
        yield AmbiguousCells(
            side="A" if one.side == "A" else "B", label=label, cell_ids=one.cell_ids, differ_in=one.fields
        )


def describe_untested(pair: CellPair) -> CellComparison:
    """Return a pair without a ratio: it cannot be compared, or what identical runs differ by is not known."""
    verdict: CellVerdict = "not comparable" if pair.problem else "undecided"
    reason = pair.problem or NOISE_UNKNOWN
    if pair.b.is_broken and pair.a.counted:
        verdict = "fails"
    return CellComparison(
        label=pair.label,
        cell_id_a=pair.a.cell_id,
        cell_id_b=pair.b.cell_id,
        verdict=verdict,
        reason=reason,
        num_repeats_a=len(pair.a.counted),
        num_repeats_b=len(pair.b.counted),
        scope="" if pair.problem else describe_scope(pair.make_row(), pair.field),
        notes=tuple(_list_notes(pair)),
    )


def describe_confounded(pair: CellPair) -> CellComparison:
    """Return the ratio with its interval, and no verdict."""
    ratio = estimate_ratio_of_sides(pair.a, pair.b)
    low, high = ratio.interval or (None, None)
    update = {
        "reason": CONFOUNDED,
        "ratio": ratio.center,
        "ratio_low": low,
        "ratio_high": high,
        "value_a": pair.a.estimate().center,
        "value_b": pair.b.estimate().center,
    }
    return describe_untested(pair).model_copy(update=update)


def describe_judged(
    pair: CellPair, test: RatioTest, verdict: Verdict, num_tests: int, metric: Metric
) -> CellComparison:
    """Return a pair with its ratio, the verdict on it, and what would decide it; `num_tests`: of its family."""
    low, high = test.ratio.interval or (None, None)
    is_different = verdict.decision in ("worse", "better")
    update = {
        "verdict": verdict.decision,
        "reason": advise(test, num_tests) if verdict.decision == "undecided" else "",
        "ratio": test.ratio.center,
        "ratio_low": low,
        "ratio_high": high,
        "joint_low": verdict.joint_interval[0],
        "joint_high": verdict.joint_interval[1],
        "p_value": verdict.p_value,
        "p_adjusted": verdict.p_adjusted,
        "longer": describe_longer_side(pair.a, pair.b, test.ratio, metric) if is_different and metric.is_time else "",
        "floor": _read_floor(test),
        "value_a": pair.a.estimate().center,
        "value_b": pair.b.estimate().center,
    }
    return describe_untested(pair).model_copy(update=update)


def describe_judged_group(label: str, number: int, test: RatioTest, verdict: Verdict) -> GroupComparison:
    """Return the mean ratio of so many cells, and the verdict on it."""
    low, high = test.ratio.interval or (0.0, math.inf)
    return GroupComparison(
        label=label,
        num_cells=number,
        verdict=verdict.decision,
        ratio=test.ratio.center,
        ratio_low=low,
        ratio_high=high,
        joint_low=verdict.joint_interval[0],
        joint_high=verdict.joint_interval[1],
        p_value=verdict.p_value,
        p_adjusted=verdict.p_adjusted,
        floor=_read_floor(test),
    )


def _read_floor(test: RatioTest) -> float | None:
    """Return the floor as a relative difference; None where the verdict has none."""
    return math.expm1(test.log_floor) if test.log_floor else None


def _list_notes(pair: CellPair) -> list[str]:
    """Return what is to be known of the repeats of both sides; of one without any that counts, the reason says it.

    A repeat that was measured again days later (`run --retry-contaminated`) does not share its run's hour.
    """
    notes = []
    for side in (pair.a, pair.b):
        verdicts = Counter(row["verdict"] or row["status"] for row in side.rows if row["verdict"] != "valid")
        others = ", ".join(f"{number} {verdict}" for verdict, number in verdicts.most_common())
        if verdicts and 0 < len(side.counted) < len(side.rows):
            notes.append(f"{side.name}: {len(side.counted)} of {len(side.rows)} repeats count ({others})")
        elif verdicts and side.counted:
            notes.append(f"{side.name}: {others}")
    if pair.is_same_run and not pair.problem and (hours := find_hours_apart(pair.a, pair.b)) > MAX_HOURS_APART:
        notes.append(f"repeats of the same run {hours:.0f} h apart: what shifts a run is taken to cancel, and may not")
    return notes
