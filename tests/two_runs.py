"""Stores runs for `benchmatrix compare`, each with the repeats of some cells, and compares two of them."""

from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any
from zlib import crc32

from bench.schema import Cell, Result
from bench.store import Store
from collector.results.load import load_run
from collector.versus.comparison import compare_sides
from collector.versus.question import (
    METRICS,
    CellComparison,
    CompareDocument,
    MetricName,
    Question,
    Selection,
    parse_condition,
    select_runs,
)
from collector.versus.sides import load_related_runs
from factories import START, make_cell, make_run, put_documents
from measured_runs import make_repeats

TRAIN, INFER = make_cell(), make_cell(phase="infer")
EVEN = (0.100, 0.101, 0.099)
"""Repeats that differ by 1 %."""


def put_run(
    directory: Path,
    run_id: str,
    medians: Mapping[Cell, Sequence[float]],
    *results: Result,
    day: int = 0,
    **overrides: Any,
) -> None:
    """Store a run that was planned on `day` and measured each cell with these medians (seconds), and `results`.

    `overrides`: fields of all results, such as `environment`.
    """
    cells = list(dict.fromkeys([*medians, *(result.cell for result in results)]))
    run = make_run(cells, run_id=run_id, created_at=START + timedelta(days=day))
    start = START + timedelta(days=day, microseconds=crc32(run_id.encode()) % 10**6)  # each run has its own times
    times = {"started_at": start, "finished_at": start + timedelta(seconds=10)}
    overrides = times | overrides
    timed = [_move(result, start) if result.started_at == START else result for result in results]
    measured = [
        result for cell, own in medians.items() for result in make_repeats(cell, *own, run_id=run_id, **overrides)
    ]
    put_documents(Store.open(f"file://{directory}"), run, [*measured, *timed])


def _move(result: Result, start: datetime) -> Result:
    """Return the result of an attempt that started at `start` and took as long."""
    duration = result.finished_at - result.started_at
    return result.model_copy(update={"started_at": start, "finished_at": start + duration})


def scale(medians: Sequence[float], factor: float) -> tuple[float, ...]:
    return tuple(factor * median for median in medians)


def compare_runs(
    directory: Path, run_a: str = "a", run_b: str = "b", *, metric: MetricName = "step-time", **overrides: Any
) -> CompareDocument:
    """Return the comparison of two stored runs, with the noise of the others; `overrides`: fields of the question."""
    store = Store.open(f"file://{directory}")
    collections = load_run(store, run_a), load_run(store, run_b)
    a, b = select_runs(run_a, run_b)
    question = Question(a=a, b=b, metric=METRICS[metric], **overrides)
    return compare_sides(question, collections, load_related_runs(store, collections))


def select_sides(directory: Path, run_ids: Sequence[str], a: Sequence[str], b: Sequence[str]) -> CompareDocument:
    """Return the comparison of two selections of stored runs; `a`, `b`: conditions such as `framework=pytorch`."""
    store = Store.open(f"file://{directory}")
    collections = [load_run(store, run_id) for run_id in run_ids]
    sides = [
        Selection(name=name, conditions=tuple(parse_condition(text, f"--{name.lower()}") for text in texts))
        for name, texts in (("A", a), ("B", b))
    ]
    question = Question(a=sides[0], b=sides[1])
    return compare_sides(question, collections, load_related_runs(store, collections))


def find_cell(document: CompareDocument, cell: Cell) -> CellComparison:
    """Return what the comparison says of A's cell."""
    return next(found for found in document.cells if found.cell_id_a == cell.cell_id)
