"""The results under docs/results/: every document counts, and is of the matrix beside it."""

from pathlib import Path

import pytest

from bench.store import Store
from collector.results.load import load_runs
from runner.matrix import load_matrix

RESULTS = Path(__file__).parents[4] / "docs" / "results"
H100, H200 = "2026-11-21-h100", "2026-11-21-h200"
H100_GPU, H100_CPU = "study-gpu-20261121-072659-442c", "study-cpu-20261121-070906-59bf"
SCALING = "scaling-20261121-065706-e88e"
H200_GPU = "study-h200-2"


@pytest.mark.parametrize(
    ("folder", "matrix", "run_id"),
    [
        (H100, "gpu.yaml", H100_GPU),
        (H100, "cpu.yaml", H100_CPU),
        (H100, "scaling.yaml", SCALING),
        (H200, "gpu.yaml", H200_GPU),
    ],
)
def test_a_committed_matrix_has_the_cells_of_its_committed_run(folder: str, matrix: str, run_id: str) -> None:
    (collection,) = load_runs(Store.open((RESULTS / folder).as_uri()), (run_id,))
    assert collection.run.cells == load_matrix(str(RESULTS / folder / matrix)).cells
