"""Runs of two cells, as the tool names them, and the records that a test puts into the store for them."""

from datetime import UTC, datetime
from typing import Any

from bench.schema import Cell, Result, Run
from bench.store import Store
from factories import make_cell, make_failed_result, make_result, make_run, make_validity
from runner.matrix import Repeat
from runner.runs import NO_RETRIES, Records, Retries, select_missing

NOW = datetime(2026, 3, 1, 12, 0, tzinfo=UTC)
CELL_A, CELL_B = make_cell(), make_cell(framework="tensorflow")


def make_own_run(*, begun: datetime = NOW, number: str = "ab12", **overrides: Any) -> Run:
    """Return a run of two cells whose id is made as the tool makes ids: matrix, time of its begin, four characters."""
    run_id = f"smoke-{begun:%Y%m%d-%H%M%S}-{number}"
    defaults: dict[str, Any] = {"cells": (CELL_A, CELL_B), "repeats": 1, "run_id": run_id, "created_at": begun}
    return make_run(**(defaults | overrides))


def make_ok(run: Run, cell: Cell, repeat: int = 1, attempt: str = "a1") -> Result:
    """Return a record that says ok."""
    return make_result(cell, run_id=run.run_id, repeat=repeat, attempt=attempt)


def make_contaminated(run: Run, cell: Cell, attempt: str = "a1") -> Result:
    """Return a record that says ok, of a measurement that others disturbed."""
    return make_ok(run, cell, attempt=attempt).model_copy(update={"validity": make_validity("contaminated", "noisy")})


def make_failed(run: Run, cell: Cell, repeat: int = 1, attempt: str = "a1") -> Result:
    """Return a record that says that the attempt failed."""
    return make_failed_result(cell, run_id=run.run_id, repeat=repeat, attempt=attempt)


def name_repeats(repeats: list[Repeat]) -> list[tuple[str, int]]:
    """Return framework and number of every repeat."""
    return [(repeat.planned.cell.framework, repeat.number) for repeat in repeats]


def list_missing_repeats(store: Store, run: Run, retries: Retries = NO_RETRIES) -> list[Repeat]:
    """Return the repeats that the run lacks by what the store holds now."""
    return select_missing(run, Records(store, run.run_id).read_snapshot(), retries)
