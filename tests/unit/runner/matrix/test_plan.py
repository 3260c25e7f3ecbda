"""What a run of a matrix measures, in which order, and what is left out of it."""

import hashlib
import re
from collections.abc import Sequence
from pathlib import Path

import pytest

from bench.errors import UserError
from bench.schema import Cell, PlannedCell
from factories import make_cell, present
from runner.local.hardware import plan_local_run
from runner.matrix import GpuKind, Matrix, order_repeats
from stored_runs import CELL_A, CELL_B

T4 = GpuKind(name="Tesla T4", compute_capability=(7, 5), num_gpus=1)


def make_matrix(*cells: Cell, name: str = "smoke", repeats: int = 3) -> Matrix:
    planned = tuple(PlannedCell(cell=cell, repeats=repeats, timeout_seconds=60.0) for cell in cells)
    return Matrix(name=name, description="", cells=planned, source=f"{name}.yaml")


def test_repeats_are_interleaved_also_where_cells_have_different_numbers() -> None:
    planned = [
        PlannedCell(cell=make_cell(batch_size=size), repeats=repeats, timeout_seconds=1.0)
        for size, repeats in ((1, 3), (2, 1), (4, 2))
    ]

    order = [(repeat.planned.cell.batch_size, repeat.number) for repeat in order_repeats(planned, None)]

    assert order == [(1, 1), (2, 1), (4, 1), (1, 2), (4, 2), (1, 3)]


def plan_cells(number: int) -> list[PlannedCell]:
    return [
        PlannedCell(cell=make_cell(batch_size=size), repeats=3, timeout_seconds=1.0) for size in range(1, number + 1)
    ]


def name_rounds(planned: Sequence[PlannedCell], seed: int) -> list[list[int]]:
    """Return the batch sizes of each round, in their order."""
    rounds: dict[int, list[int]] = {}
    for repeat in order_repeats(planned, seed):
        rounds.setdefault(repeat.number, []).append(repeat.planned.cell.batch_size)
    return list(rounds.values())


def test_the_order_does_not_depend_on_python_nor_on_the_other_cells() -> None:
    planned = plan_cells(8)

    # What anybody can compute from run.json: SHA-256 of "SEED ROUND CELL_ID", the smallest first.
    digests = {
        plan.cell.batch_size: hashlib.sha256(f"7 1 {plan.cell.cell_id}".encode()).hexdigest() for plan in planned
    }
    assert name_rounds(planned, 7)[0] == sorted(digests, key=digests.__getitem__)
    assert len({tuple(sizes) for sizes in (*name_rounds(planned, 7), *name_rounds(planned, 8))}) == 6
    of_all = [size for size in name_rounds(planned, 7)[1] if size % 2]
    assert name_rounds([plan for plan in planned if plan.cell.batch_size % 2], 7)[1] == of_all


def test_a_run_is_planned_with_a_seed_of_its_own() -> None:
    seeds = {plan_local_run(make_matrix(CELL_A, CELL_B), gpu=None, run_id=None).order_seed for _ in range(3)}

    assert None not in seeds
    assert len(seeds) == 3


def test_compiled_cells_are_left_out_where_there_is_no_compiler(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.delenv("CXX", raising=False)
    compiled = make_cell(mode="compiled")

    run = plan_local_run(make_matrix(CELL_A, compiled), gpu=None, run_id=None)

    assert [left.cell for left in run.left_out] == [compiled]
    assert "there is no g++ on PATH; install one" in run.left_out[0].reason


def test_a_matrix_of_which_nothing_can_run_is_refused_with_every_reason_once() -> None:
    cells = (make_cell(device="gpu"), make_cell(device="gpu", seed=1), make_cell(precision="tf32"))
    with pytest.raises(UserError) as caught:
        plan_local_run(make_matrix(*cells), gpu=None, run_id=None)
    assert str(caught.value) == (
        "smoke.yaml: no cell can run here: no NVIDIA GPU is visible on this machine; tf32 is a mode of NVIDIA GPUs, a "
        "CPU has none; leave it to cells with device gpu; add cells to the matrix that can, with `device: cpu` "
        "for example"
    )


@pytest.mark.parametrize("name", ["smoke", "a", "x" * 63, "x" * 39 + "-" + "y" * 23])
def test_the_id_of_a_new_run_holds_name_and_time_and_fits(name: str) -> None:
    run = plan_local_run(make_matrix(CELL_A, name=name), gpu=None, run_id=None)

    match = present(re.fullmatch(r"(.*[^-])-(\d{8}-\d{6})-[0-9a-f]{4}", run.run_id))
    assert name.startswith(match[1])
    assert match[2] == f"{run.created_at:%Y%m%d-%H%M%S}"
