"""Runs: plan ids and the number of planned repeats."""

import tracemalloc

import pytest

from bench.schema import PlannedCell, Run
from factories import make_cell, make_run


def test_equal_plans_have_equal_ids_whatever_their_order_and_limits() -> None:
    cells = [make_cell(seed=seed) for seed in range(3)]
    run = make_run(cells, timeout_seconds=600.0)
    other = make_run(reversed(cells), timeout_seconds=60.0, run_id="another", hostname="elsewhere")
    assert run.plan_id == other.plan_id


@pytest.mark.parametrize(
    "other",
    [
        make_run([make_cell()], repeats=4),
        make_run([make_cell(seed=1)]),
        make_run([make_cell(), make_cell(seed=1)]),
        make_run([]),
    ],
    ids=["repeats", "cell", "more", "none"],
)
def test_other_plans_have_other_ids(other: Run) -> None:
    assert make_run([make_cell()]).plan_id != other.plan_id


def test_a_planned_cell_that_is_read_takes_less_than_a_kilobyte() -> None:
    cells = [make_cell(batch_size=size) for size in range(1, 1001)]
    texts = [PlannedCell(cell=cell, repeats=5, timeout_seconds=60.0).to_json() for cell in cells]
    tracemalloc.start()
    try:
        planned = [PlannedCell.model_validate_json(text) for text in texts]
        assert tracemalloc.get_traced_memory()[0] < 1024 * len(planned)
    finally:
        tracemalloc.stop()
