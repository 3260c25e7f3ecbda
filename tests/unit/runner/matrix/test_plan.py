"""What a run of a matrix measures, in which order, and what is left out of it."""

import os
import re
from pathlib import Path

import pytest

from bench.capabilities import GpuKind
from bench.errors import UserError
from bench.schema import Cell, PlannedCell
from factories import make_cell
from runner.local.planning import plan_local_run
from runner.matrix.expansion import Matrix
from runner.matrix.plan import order_repeats
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

    order = [(repeat.planned.cell.batch_size, repeat.number) for repeat in order_repeats(planned)]

    assert order == [(1, 1), (2, 1), (4, 1), (1, 2), (4, 2), (1, 3)]


def test_cells_for_a_gpu_are_left_out_with_the_reason_where_there_is_none() -> None:
    gpu = make_cell(device="gpu")

    run = plan_local_run(make_matrix(CELL_A, gpu, CELL_B), gpu=None, run_id=None)

    assert [planned.cell for planned in run.cells] == [CELL_A, CELL_B]
    assert [(left.cell, left.reason) for left in run.left_out] == [(gpu, "no NVIDIA GPU is visible on this machine")]


def test_where_a_gpu_is_visible_what_it_can_do_is_planned_and_the_rest_left_out() -> None:
    plain, bf16, two = (make_cell(device="gpu", **fields) for fields in ({}, {"precision": "bf16"}, {"num_gpus": 2}))

    run = plan_local_run(make_matrix(CELL_A, bf16, plain, two), gpu=T4, run_id=None)

    assert [planned.cell for planned in run.cells] == [CELL_A, plain]
    assert [left.cell for left in run.left_out] == [bf16, two]
    assert run.left_out[0].reason == "bf16 needs a GPU of compute capability 8.0 or higher; Tesla T4 has 7.5"


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

    match = re.fullmatch(r"(.*[^-])-(\d{8}-\d{6})-[0-9a-f]{4}", run.run_id)
    assert match is not None
    assert name.startswith(match[1])
    assert match[2] == f"{run.created_at:%Y%m%d-%H%M%S}"


def test_two_runs_begun_at_once_have_different_ids() -> None:
    ids = {plan_local_run(make_matrix(CELL_A), gpu=None, run_id=None).run_id for _ in range(3)}

    assert len(ids) == 3


def test_a_user_without_a_name_is_named_by_number(monkeypatch: pytest.MonkeyPatch) -> None:
    for variable in ("LOGNAME", "USER", "LNAME", "USERNAME"):
        monkeypatch.delenv(variable, raising=False)
    monkeypatch.setattr(os, "getuid", lambda: 54_321)  # as in a container started with `--user 54321`

    assert plan_local_run(make_matrix(CELL_A), gpu=None, run_id=None).user == "54321"
