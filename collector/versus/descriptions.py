"""Describe the sides of a comparison, their environments and the cells without a partner, for its document."""

from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Any

from collector.labels import add_labels
from collector.results.frames import CELL_COLUMNS, make_frame
from collector.results.statuses import MISSING, UNREADABLE
from collector.versus.document import AmbiguousCells, EnvironmentDifference, MetricDescription, Side, UnpairedCell
from collector.versus.environments import Difference
from collector.versus.metrics import Metric
from collector.versus.pairing import Ambiguity, Pairing, describe_nearest
from collector.versus.selections import Selection

Rows = Sequence[dict[str, Any]]


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
    for label, rows in zip(label_cells(cells), cells, strict=True):
        nearest = describe_nearest(rows, others, other, free)
        yield UnpairedCell(label=label, cell_id=rows[0]["cell_id"], nearest=nearest)


def _describe_ambiguous(ambiguities: Iterable[Ambiguity], rows: Rows) -> Iterable[AmbiguousCells]:
    by_cell = {row["cell_id"]: row for row in rows}
    for one in ambiguities:
        label = label_cells([[by_cell[one.cell_ids[0]]]])[0]
        yield AmbiguousCells(
            side="A" if one.side == "A" else "B", label=label, cell_ids=one.cell_ids, differ_in=one.fields
        )
