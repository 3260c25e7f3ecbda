"""The matrix that measures cells again has exactly these cells, whatever they are."""

from pathlib import Path

import yaml

from bench.schema import Cell, PlannedCell
from factories import make_cell, make_run
from runner.matrix.expansion import load_matrix
from runner.nights import describe_matrix
from schema_cases import make_neighbour

CELLS = (
    make_cell(),
    make_cell(batch_size=8),
    make_cell(framework="tensorflow", mode="graph", phase="infer"),
    make_cell(device="gpu", precision="bf16", mode="compiled", num_gpus=2, sustain_seconds=5.0),
    make_cell(device="gpu", tenants=4, sharing="mps"),
    make_cell(tenants=2, neighbour=make_neighbour(1).model_copy(update={"mode": "eager"})),
    make_cell(tenants=2, neighbour=make_neighbour(8).model_copy(update={"mode": "eager"})),
    Cell(
        model="cyclegan", framework="jax", device="cpu", phase="train", mode="compiled", batch_size=1, input_size=128,
        num_classes=None,
    ),
)  # fmt: skip


def test_the_matrix_expands_to_the_same_cells_in_any_order(tmp_path: Path) -> None:
    for start in range(len(CELLS)):
        cells = CELLS[start:] + CELLS[:start]
        planned = [
            PlannedCell(cell=cell, repeats=number, timeout_seconds=60.0 + number)
            for number, cell in enumerate(cells, start=10)
        ]
        path = tmp_path / "again.yaml"
        path.write_text(yaml.safe_dump(describe_matrix(make_run(cells), planned)))

        assert list(load_matrix(str(path)).cells) == planned
